"""Effects after the commit: at least once, remembered over a crash, tried again, and told to the service."""

import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from shared.contract.envelope import Data
from shared.contract.services import ServiceEntry
from shared.contract.topics import Space
from shared.errors import MusterError, Retryable
from shared.messaging.inbox import LookRequest
from shared.messaging.journal import Effect, Journal
from shared.runtime.effects import EffectHandler, EffectResult
from shared.runtime.loop import ServiceLoop
from shared.runtime.poll_timer import PollIntervals
from shared.runtime.turn import Turn
from shared.system.log import Log
from tests.fakes.bus import FakeBus, FakeInbox
from tests.fixtures.broker import wait_until

ENTRY = ServiceEntry("monitor", "does what a test says", writes=())
EFFECT = Effect("knock", "k1", {"door": "green"})


class Knocker:
    """Wants one effect in its first turn, and notes what became of it."""

    name: ClassVar[str] = "monitor"

    def __init__(self, *, at_once: int = 0) -> None:
        self.effects = {"knock": EffectHandler(self.knock, at_once)}
        self.wants = [EFFECT]
        self.knocked: list[Mapping[str, Any]] = []
        self.results: list[EffectResult] = []
        self.raises: list[Exception] = []
        self.fails = False

    def knock(self, payload: Mapping[str, Any]) -> None:
        self.knocked.append(payload)
        if self.raises:
            raise self.raises.pop(0)

    def states(self) -> Iterable[Data]:
        return ()

    def step(self, turn: Turn) -> None:
        for effect in self.wants:
            turn.perform(effect.kind, effect.key, effect.payload)
        self.wants = []
        if self.fails:
            raise Retryable("not now")
        self.results += turn.effect_results


class Rig:
    def __init__(self, path: Path, service: Knocker) -> None:
        self.service, self.inbox = service, FakeInbox()
        self.journal = Journal(path, "monitor")
        polls = PollIntervals(connected_s=1_000.0, alone_s=1_000.0)
        log = Log("monitor", io.StringIO())
        self.loop = ServiceLoop(service, ENTRY, self.journal, FakeBus(), self.inbox, Space("box"), polls, log)

    def turn(self) -> bool:
        """Always False, so that a condition can stand behind it."""
        self.inbox.put(LookRequest("test"))
        self.loop.once()
        return False


def test_an_effect_runs_after_the_commit_and_the_next_turn_gets_its_result(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "journal.db", Knocker())
    rig.turn()
    assert rig.service.knocked == [{"door": "green"}]
    assert rig.journal.effects() == [EFFECT]
    rig.turn()
    assert rig.service.results == [EffectResult(EFFECT)]
    assert rig.journal.effects() == []
    rig.turn()
    assert len(rig.service.knocked) == 1


def test_a_turn_that_fails_wants_nothing(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "journal.db", Knocker())
    rig.service.fails = True
    rig.turn()
    assert rig.service.knocked == []
    assert rig.journal.effects() == []


def test_after_a_crash_it_is_done_again(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    Rig(path, Knocker()).turn()
    after = Rig(path, Knocker())
    after.service.wants = []
    assert after.service.knocked == [{"door": "green"}]
    after.turn()
    assert after.service.results == [EffectResult(EFFECT)]
    assert Rig(path, Knocker()).service.knocked == []


@pytest.mark.parametrize("error", ["", "the door is walled up"])
def test_the_result_of_a_failed_turn_is_given_to_the_next_one(tmp_path: Path, error: str) -> None:
    rig = Rig(tmp_path / "journal.db", Knocker())
    rig.service.raises = [MusterError(error)] if error else []
    rig.turn()
    rig.service.fails = True
    rig.turn()
    assert rig.journal.effects() == [EFFECT]
    rig.service.fails = False
    wait_until(lambda: rig.turn() or bool(rig.service.results), "the turn comes again")
    assert rig.service.results == [EffectResult(EFFECT, error)]
    assert len(rig.service.knocked) == 1


def test_a_retryable_error_is_tried_again_and_any_other_is_the_result(tmp_path: Path) -> None:
    service = Knocker(at_once=1)
    service.raises = [Retryable("nobody opens"), MusterError("the door is walled up")]
    rig = Rig(tmp_path / "journal.db", service)
    wait_until(lambda: rig.turn() or bool(service.results), "it has failed for good")
    assert service.knocked == [{"door": "green"}] * 2
    assert service.results == [EffectResult(EFFECT, "the door is walled up")]
    assert rig.journal.effects() == []


def test_the_same_key_is_the_same_effect(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "journal.db", Knocker())
    rig.service.wants = [EFFECT, EFFECT]
    rig.turn()
    assert len(rig.service.knocked) == 1


def test_an_effect_of_an_unknown_kind_fails(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal(path, "monitor").transaction() as transaction:
        transaction.add_effect(Effect("sing", "s", {}))
    rig = Rig(path, Knocker())
    rig.turn()
    assert [each.error for each in rig.service.results] == ["LookupError: nobody knows an effect 'sing'"]


@pytest.mark.parametrize("at_once", [0, 1])
def test_two_effects_do_not_wait_for_each_others_turn(tmp_path: Path, at_once: int) -> None:
    service = Knocker(at_once=at_once)
    service.wants = [EFFECT, Effect("knock", "k2", {"door": "blue"})]
    rig = Rig(tmp_path / "journal.db", service)
    wait_until(lambda: rig.turn() or len(service.results) == 2, "both are told")
    assert {each.effect.key for each in service.results} == {"k1", "k2"}
