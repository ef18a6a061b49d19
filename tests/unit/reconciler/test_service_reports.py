"""Each drift is reported once, across restarts, and again only when it changes; its end is reported."""

from typing import Any

from services.reconciler import classification as table
from services.reconciler.classification import ConversationState, ConversationUse, Drift, ProgramState
from services.reconciler.service import REPORTED, DriftReports, ReportedDrifts, forget_gone
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

    def report(self, kind: Drift, event: AgentEvent, spawn: str | None = "s1") -> bool:
        now = turn(self.memory)
        reports = DriftReports(now, "builder", spawn)
        if news := reports.is_news(kind, event):
            reports.report(kind, event)
        self.memory |= now.memory.changes
        return news

    def resolve(self, *seen: Any, present: tuple[Drift, ...] = (), spawn: str | None = "s1") -> list[Any]:
        now = turn(self.memory)
        DriftReports(now, "builder", spawn).resolve(list(present), seen)
        self.memory |= now.memory.changes
        return [event for event, _ in now.emitted]


def test_a_drift_is_reported_once_and_again_for_the_next_session() -> None:
    life = Life()
    assert life.report(table.MISSING, MISSING)
    assert not life.report(table.MISSING, MISSING)
    assert life.report(table.MISSING, MISSING.model_copy(update={"spawn": "s2"}), "s2")


def test_a_drift_that_changed_is_reported_again() -> None:
    life = Life()
    assert life.report(table.DUPLICATE_ID, DuplicateId(agent="builder", spawn="s1", conversation="c1", others=["a"]))
    more = DuplicateId(agent="builder", spawn="s1", conversation="c1", others=["a", "b"])
    assert life.report(table.DUPLICATE_ID, more)
    assert not life.report(table.DUPLICATE_ID, more)


def test_another_shell_in_the_same_pane_is_no_news() -> None:
    life = Life()
    assert life.report(table.WRONG_BACKEND, WRONG)
    assert not life.report(table.WRONG_BACKEND, WRONG.model_copy(update={"command": "vim"}))
    assert life.report(table.WRONG_BACKEND, WRONG.model_copy(update={"found": "codex"}))


def test_a_dead_pane_that_then_goes_away_is_reported_once() -> None:
    life = Life()
    assert life.report(table.PANE_DEAD, PaneDead(agent="builder", spawn="s1", session="builder", exit_status=1))
    assert not life.report(table.PANE_DEAD, PaneDead(agent="builder", spawn="s1", session="builder", exit_status=2))
    assert not life.report(table.MISSING, MISSING)


def test_the_end_of_a_drift_is_reported_once_and_it_can_come_again() -> None:
    life = Life()
    life.report(table.WRONG_BACKEND, WRONG)
    assert life.resolve(ProgramState.WRONG, present=(table.WRONG_BACKEND,)) == []
    assert life.resolve(ProgramState.UNKNOWN) == []
    (over,) = life.resolve(ProgramState.RIGHT)
    assert isinstance(over, DriftResolved)
    assert (over.drift, over.spawn) == ("wrong_backend", "s1")
    assert life.resolve(ProgramState.RIGHT) == []
    assert life.report(table.WRONG_BACKEND, WRONG)


def test_the_end_of_a_drift_that_the_registrar_records_is_not_reported() -> None:
    life = Life()
    life.report(table.IDENTIFIED, STALE)
    assert life.resolve(ConversationState.SAME) == []
    assert life.report(table.IDENTIFIED, STALE)


def test_the_end_of_a_session_is_never_resolved() -> None:
    life = Life()
    life.report(table.MISSING, MISSING)
    assert life.resolve(ConversationUse.EXCLUSIVE) == []
    assert not life.report(table.MISSING, MISSING)


def test_a_stale_conversation_stays_reported_over_a_new_session() -> None:
    life = Life()
    life.report(table.STALE_ID, STALE)
    life.report(table.WRONG_BACKEND, WRONG)
    assert not life.report(table.STALE_ID, STALE, "s2")
    (over,) = life.resolve(ConversationState.SAME, spawn="s2")
    assert over.drift == "stale_id"


def test_reports_about_an_agent_without_record_and_session_are_forgotten() -> None:
    stored = REPORTED.dump(ReportedDrifts("s1", {}))
    now = turn({REPORTED.key("gone"): stored, REPORTED.key("builder"): stored, "foreign:1": {}})
    forget_gone(now, {"builder"})
    assert now.memory.changes == {REPORTED.key("gone"): None}
