"""An agent's activity in its record: of the session that runs, until that ends."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from registry import AgentRecord
from registry.records import ACTIVITY_FIELDS
from services.registrar.fold import fold
from shared.contract.envelope import Envelope, Event
from shared.contract.events.activity import StatusChanged
from shared.contract.events.drift import PaneDead, SessionMissing
from shared.contract.events.lifecycle import AgentExited, AgentGaveUp, AgentSpawned, AgentStopped
from shared.contract.states import Activity, Desired, Status

START = datetime(2030, 1, 1, tzinfo=UTC)
LATER = START + timedelta(seconds=9)


def at(event: Event, time: datetime = LATER) -> Envelope[Any]:
    known = {"type": "muster.test", "subject": "builder", "source": "/box/x", "seq": 1, "epoch": "e", "id": "e-1"}
    return Envelope[Any](time=time, data=event, **known)


def record(**changes: Any) -> AgentRecord:
    known: dict[str, Any] = {
        "status": Status.RUNNING,
        "since": START,
        "reason": "spawned",
        "desired": Desired.RUNNING,
        "backend": "demo",
        "workspace": "/work",
        "spawn": "s1",
    }
    return AgentRecord(**{**known, **changes})


def changed(spawn: str = "s1") -> StatusChanged:
    return StatusChanged(
        agent="builder", spawn=spawn, status=Activity.WORKING, since=LATER, reason="it uses Bash", decided_by="hooks"
    )


def doing(found: AgentRecord | None) -> tuple[Any, ...]:
    assert found is not None
    return tuple(getattr(found, name) for name in ACTIVITY_FIELDS)


NOTHING = (None, None, "", "")
WORKS = record(activity=Activity.WORKING, activity_since=START, activity_reason="it uses Bash", decided_by="hooks")


def test_an_activity_is_recorded_and_nothing_else_changes() -> None:
    after = fold(record(), at(changed()))
    assert doing(after) == (Activity.WORKING, LATER, "it uses Bash", "hooks")
    assert after is not None
    assert after.differs_in_activity_only(record())
    assert fold(after, at(changed())) == after, "an event may come twice"


def test_the_activity_of_another_session_is_not_recorded() -> None:
    assert fold(record(), at(changed("s2"))) == record()
    assert fold(None, at(changed())) is None


@pytest.mark.parametrize("status", [each for each in Status if each is not Status.RUNNING])
def test_the_activity_of_an_ended_session_is_not_recorded(status: Status) -> None:
    assert fold(record(status=status), at(changed())) == record(status=status)


ENDS: dict[str, tuple[Event, tuple[Any, ...]]] = {
    "well": (
        AgentExited(agent="builder", spawn="s1", exit_status=0),
        (Activity.DONE, LATER, "its program ended with status 0", "processes"),
    ),
    "badly": (
        AgentExited(agent="builder", spawn="s1", exit_status=3),
        (Activity.FAILED, LATER, "its program ended with status 3", "processes"),
    ),
    "nobody knows how": (
        AgentExited(agent="builder", spawn="s1"),
        (Activity.FAILED, LATER, "its program ended", "processes"),
    ),
    "in its pane, well": (
        PaneDead(agent="builder", spawn="s1", session="builder", exit_status=0),
        (Activity.DONE, LATER, "auto-detected: its program ended with status 0", "processes"),
    ),
    "with its session": (
        SessionMissing(agent="builder", spawn="s1", session="builder"),
        (Activity.FAILED, LATER, "auto-detected: its tmux session is gone", "processes"),
    ),
    "too often": (
        AgentGaveUp(agent="builder", spawn="s1", reason="it died too often", restarts=5),
        (Activity.FAILED, LATER, "it died too often", "processes"),
    ),
    "by somebody's wish": (AgentStopped(agent="builder", spawn="s1", reason="asked for"), NOTHING),
}


@pytest.mark.parametrize(("event", "does"), ENDS.values(), ids=ENDS)
def test_an_end_sets_the_last_activity(event: Event, does: tuple[Any, ...]) -> None:
    assert doing(fold(WORKS, at(event))) == does


def test_a_new_session_has_no_activity_yet() -> None:
    known = {"backend": "demo", "workspace": "/", "session": "builder", "pane": "%1", "pid": 7}
    assert doing(fold(WORKS, at(AgentSpawned(agent="builder", spawn="s2", **known)))) == NOTHING


# --- what differs ---


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("activity", Activity.WAITING),
        ("activity_since", LATER),
        ("activity_reason", "it waits"),
        ("decided_by", "screen"),
    ],
)
def test_records_that_differ_only_in_activity_are_recognised(name: str, value: Any) -> None:
    other = WORKS.model_copy(update={name: value})
    assert WORKS.differs_in_activity_only(other)
    assert not WORKS.differs_in_activity_only(other.model_copy(update={"role": "tester"}))


@pytest.mark.parametrize("other", [None, record(status=Status.STOPPED), record(spawn="s2"), record(reason="x")])
def test_records_that_differ_in_anything_else_are_not(other: AgentRecord | None) -> None:
    assert not WORKS.differs_in_activity_only(other)
