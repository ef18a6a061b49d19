"""Each drift is told once, again only when it changes, across restarts; what is over is taken back."""

from typing import Any

from services.reconciler import classification as table
from services.reconciler.classification import Drift
from services.reconciler.comparison import Company, ConversationState, ProgramState
from services.reconciler.reporting import ReportedDrifts, forget_gone
from shared.contract.envelope import AgentEvent
from shared.contract.events.drift import DriftResolved, DuplicateId, PaneDead, SessionMissing, StaleId, WrongBackend
from shared.runtime.memory import Memory
from shared.runtime.turn import Turn
from tests.unit.reconciler.samples import NOW

WRONG = WrongBackend(agent="builder", spawn="s1", expected="claude", found=None, command="bash")
MISSING = SessionMissing(agent="builder", spawn="s1", session="builder")
STALE = StaleId(agent="builder", spawn="s1", conversation="c1", transcript="/t")


def turn(memory: dict[str, Any]) -> Turn:
    return Turn("reconciler", NOW, poll=False, events=[], commands=[], memory=Memory(memory))


class Life:
    """Turn after turn on one memory, as a service has it over its restarts."""

    def __init__(self, **memory: Any) -> None:
        self.memory: dict[str, Any] = memory

    def say(self, kind: Drift, event: AgentEvent, spawn: str | None = "s1") -> bool:
        now = turn(self.memory)
        told = ReportedDrifts(now, "builder", spawn)
        if news := told.is_news(kind, event):
            told.tell(kind, event)
        self.memory |= now.remembered
        return news

    def settle(self, *seen: Any, present: tuple[Drift, ...] = (), spawn: str | None = "s1") -> list[Any]:
        now = turn(self.memory)
        ReportedDrifts(now, "builder", spawn).settle(list(present), seen)
        self.memory |= now.remembered
        return [event for event, _ in now.emitted]


def test_a_drift_is_told_once_and_again_for_the_next_session() -> None:
    life = Life()
    assert life.say(table.MISSING, MISSING)
    assert not life.say(table.MISSING, MISSING)
    assert life.say(table.MISSING, MISSING.model_copy(update={"spawn": "s2"}), "s2")


def test_a_drift_that_changed_is_told_again() -> None:
    life = Life()
    assert life.say(table.DUPLICATE_ID, DuplicateId(agent="builder", spawn="s1", conversation="c1", others=["a"]))
    more = DuplicateId(agent="builder", spawn="s1", conversation="c1", others=["a", "b"])
    assert life.say(table.DUPLICATE_ID, more)
    assert not life.say(table.DUPLICATE_ID, more)


def test_another_shell_in_the_same_pane_is_no_news() -> None:
    life = Life()
    assert life.say(table.WRONG_BACKEND, WRONG)
    assert not life.say(table.WRONG_BACKEND, WRONG.model_copy(update={"command": "vim"}))
    assert life.say(table.WRONG_BACKEND, WRONG.model_copy(update={"found": "codex"}))


def test_a_session_whose_program_ended_and_that_then_went_away_is_told_once() -> None:
    life = Life()
    assert life.say(table.PANE_DEAD, PaneDead(agent="builder", spawn="s1", session="builder", exit_status=1))
    assert not life.say(table.PANE_DEAD, PaneDead(agent="builder", spawn="s1", session="builder", exit_status=2))
    assert not life.say(table.MISSING, MISSING)


def test_what_is_over_is_told_once_and_can_come_again() -> None:
    life = Life()
    life.say(table.WRONG_BACKEND, WRONG)
    assert life.settle(ProgramState.WRONG, present=(table.WRONG_BACKEND,)) == []
    assert life.settle(ProgramState.UNKNOWN) == []
    (over,) = life.settle(ProgramState.RIGHT)
    assert isinstance(over, DriftResolved)
    assert (over.drift, over.spawn) == ("wrong_backend", "s1")
    assert life.settle(ProgramState.RIGHT) == []
    assert life.say(table.WRONG_BACKEND, WRONG)


def test_what_passes_by_itself_is_taken_back_in_silence() -> None:
    life = Life()
    life.say(table.IDENTIFIED, STALE)
    assert life.settle(ConversationState.SAME) == []
    assert life.say(table.IDENTIFIED, STALE)


def test_the_end_of_a_session_is_never_taken_back() -> None:
    life = Life()
    life.say(table.MISSING, MISSING)
    assert life.settle(Company.ALONE) == []
    assert not life.say(table.MISSING, MISSING)


def test_a_stale_conversation_stays_told_over_a_new_session() -> None:
    life = Life()
    life.say(table.STALE_ID, STALE)
    life.say(table.WRONG_BACKEND, WRONG)
    assert not life.say(table.STALE_ID, STALE, "s2")
    (over,) = life.settle(ConversationState.SAME, spawn="s2")
    assert over.drift == "stale_id"


def test_what_was_told_of_whom_there_is_nothing_any_more_is_forgotten() -> None:
    now = turn(
        {"told:gone": {"spawn": "s1", "drifts": {}}, "told:builder": {"spawn": "s1", "drifts": {}}, "found:1": {}}
    )
    forget_gone(now, {"builder"})
    assert now.remembered == {"told:gone": None}
