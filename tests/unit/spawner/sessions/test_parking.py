"""Accounts whose usage limit is reached: who is not started, until when, and who insists."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from services.spawner.sessions.decision import KeepRules, LookAgain, NoteDeath, ReportGaveUp, Start, decide
from services.spawner.sessions.memory import AgentMemory, Ended, Paused
from services.spawner.sessions.parking import park, parked, remove_past, unpark
from services.spawner.view import SpawnerView
from shared.contract.commands import Park, Unpark
from shared.contract.states import Desired
from shared.fleet import RestartPolicy, load_fleet
from shared.messaging.intake import request_of
from shared.runtime.memory import Memory
from shared.runtime.turn import PendingCommand, Turn
from tests.unit.spawner.samples import ended, remembered
from tests.unit.spawner.sessions.test_decision import pane

NOW = datetime(2030, 1, 1, tzinfo=UTC)
UNTIL = datetime(2030, 1, 1, 3, tzinfo=UTC)
AGENTS: dict[str, Any] = {
    "one": {"account": "acme", "model": "opus-5"},
    "two": {"account": "acme"},
    "other": {"account": "else"},
}


def view(directory: Path, memory: Mapping[str, Any] | None = None, now: datetime = NOW) -> SpawnerView:
    path = directory / "fleet.yaml"
    path.write_text(json.dumps({"host": "box", "agents": AGENTS, "services": {"web": {"argv": ["true"]}}}))
    return SpawnerView(Turn("spawner", now, False, [], [], Memory(memory or {})), load_fleet(path), {}, ())


def carried_out(now: SpawnerView, command: Park | Unpark) -> SpawnerView:
    pending = PendingCommand(request_of(now.fleet.space, command.model_copy(update={"id": "c1"}), now.now), command)
    park(now, pending, command) if isinstance(command, Park) else unpark(now, pending, command)
    assert now.turn.replies["c1"][1].ok
    return now


def who(now: SpawnerView) -> list[str]:
    return [agent for agent in (*AGENTS, "web", "stranger") if parked(now, agent) is not None]


def test_an_account_is_parked_until_its_time_or_until_it_is_free(tmp_path: Path) -> None:
    now = carried_out(view(tmp_path), Park(account="acme", until=UNTIL))
    assert who(now) == ["one", "two"]
    later = view(tmp_path, now.turn.memory.changes, UNTIL)
    assert who(later) == []
    remove_past(later)
    assert later.turn.memory.changes == {"park:acme": None}
    assert who(carried_out(now, Unpark(account="acme"))) == []


def test_a_model_is_parked_alone(tmp_path: Path) -> None:
    now = carried_out(view(tmp_path), Park(account="acme", until=UNTIL, models=["opus"]))
    assert who(now) == ["one"]
    assert parked(now, "two", {"model": "Opus"}) is not None, "as it is to be started this once"
    assert who(carried_out(now, Unpark(account="acme"))) == ["one"]
    assert who(carried_out(now, Unpark(account="acme", models=["opus"]))) == []


def test_of_several_the_longest_counts(tmp_path: Path) -> None:
    now = carried_out(view(tmp_path), Park(account="acme", until=UNTIL, reason="one hit its limit"))
    carried_out(now, Park(account="acme", until=UNTIL.replace(hour=5), models=["opus"]))
    first, second = parked(now, "one"), parked(now, "two")
    assert first is not None
    assert second is not None
    assert (first.until - second.until) == 2 * 3600
    assert "(one hit its limit)" in second.says


# --- what the keeper does about it ---

RULES = KeepRules(RestartPolicy())
ALIVE, DOWN = remembered(), ended()


def actions(known: AgentMemory, until: float | None, seen: Any = None, now: float = 1_000.0) -> list[Any]:
    return list(decide(known, Desired.RUNNING, seen, RULES, now, None, until))


def test_nobody_is_started_while_its_account_is_parked() -> None:
    assert actions(AgentMemory(), 5_000.0) == [LookAgain(5_000.0)]
    assert actions(DOWN, 5_000.0) == [LookAgain(5_000.0)]
    assert [type(each) for each in actions(DOWN, None)] == [Start]


def test_nobody_is_blamed_for_ending_then() -> None:
    noted, waits = actions(ALIVE, 5_000.0)
    assert isinstance(noted, NoteDeath)
    assert (noted.known.deaths, noted.known.phase, waits) == ((), Ended(), LookAgain(5_000.0))
    noted, *_ = actions(ALIVE, None)
    assert noted.known.deaths == (1_000.0,)


def test_what_runs_is_left_alone() -> None:
    assert actions(ALIVE, 5_000.0, pane()) == []


@pytest.mark.parametrize("until", [None, 5_000.0])
def test_an_agent_that_needs_a_login_is_given_up_at_once(until: float | None) -> None:
    reason = "its program ended: it is not logged in; log it in, then start it again"
    assert actions(remembered(phase=Paused(reason)), until) == [ReportGaveUp(reason)]
