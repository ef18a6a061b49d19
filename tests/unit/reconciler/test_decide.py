"""Which difference is a drift: every combination has a row, and each drift is told once."""

from datetime import UTC, datetime
from itertools import product

import pytest

from registry import AgentRecord
from services.reconciler.decide import CLASSIFY, DriftKind, Recorded, Seen, drift_of, is_news, recorded, seen
from shared.states import Desired, Status
from shared.tmux import Pane


def record(status: Status = Status.RUNNING, spawn: str | None = "s1") -> AgentRecord:
    return AgentRecord(
        status=status,
        since=datetime(2030, 1, 1, tzinfo=UTC),
        reason="",
        desired=Desired.RUNNING,
        backend="demo",
        workspace="/",
        spawn=spawn,
    )


def pane(spawn: str | None = "s1", *, dead: bool = False) -> Pane:
    return Pane("builder", "$1", "%1", 7, "run", dead, None, "/", "", 1, 1, "builder", spawn, "f")


def test_every_combination_has_a_row() -> None:
    assert set(CLASSIFY) == set(product(Recorded, Seen))


def test_only_what_is_recorded_as_running_can_drift() -> None:
    assert {pair for pair, kind in CLASSIFY.items() if kind} == {
        (Recorded.RUNNING, Seen.ABSENT),
        (Recorded.RUNNING, Seen.DEAD),
    }


def test_every_drift_can_happen() -> None:
    assert {kind for kind in CLASSIFY.values() if kind} == set(DriftKind)


@pytest.mark.parametrize("status", Status)
def test_a_status_is_running_or_ended(status: Status) -> None:
    assert recorded(record(status)) is (Recorded.RUNNING if status is Status.RUNNING else Recorded.ENDED)


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (None, Seen.ABSENT),
        (pane(), Seen.ALIVE),
        (pane(dead=True), Seen.DEAD),
        (pane("s2"), Seen.OTHER),
        (pane("s2", dead=True), Seen.OTHER),
        (pane(None), Seen.OTHER),
    ],
)
def test_what_tmux_shows_is_told_by_the_spawn_stamp(found: Pane | None, says: Seen) -> None:
    assert seen(record(), found) is says


@pytest.mark.parametrize(
    ("status", "found", "drift"),
    [
        (Status.RUNNING, None, DriftKind.MISSING),
        (Status.RUNNING, pane(dead=True), DriftKind.PANE_DEAD),
        (Status.RUNNING, pane(), None),
        (Status.RUNNING, pane("s2", dead=True), None),
        (Status.STOPPED, None, None),
        (Status.EXITED, pane(dead=True), None),
        (Status.TERMINATED, pane(), None),
    ],
)
def test_a_drift_is_where_record_and_world_differ(status: Status, found: Pane | None, drift: DriftKind | None) -> None:
    assert drift_of(record(status), found) is drift


@pytest.mark.parametrize(
    ("kind", "spawn", "told", "news"),
    [
        (DriftKind.MISSING, "s1", None, True),
        (DriftKind.MISSING, "s1", {"spawn": "s1", "kind": "missing"}, False),
        (DriftKind.MISSING, "s2", {"spawn": "s1", "kind": "missing"}, True),
        (DriftKind.PANE_DEAD, "s1", {"spawn": "s1", "kind": "pane_dead"}, False),
        (DriftKind.MISSING, "s1", {"spawn": "s1", "kind": "pane_dead"}, False),  # it ended, then went away
        (DriftKind.PANE_DEAD, "s1", {"spawn": "s1", "kind": "missing"}, True),  # it came back to die
        (DriftKind.PANE_DEAD, "s2", {"spawn": "s1", "kind": "pane_dead"}, True),
    ],
)
def test_a_drift_is_told_once_for_each_session(
    kind: DriftKind, spawn: str, told: dict[str, str] | None, news: bool
) -> None:
    assert is_news(kind, spawn, told) is news
