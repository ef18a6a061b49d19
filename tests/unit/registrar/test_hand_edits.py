"""A person's edit, merged with what happened to the agent meanwhile."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from registry import AgentRecord
from services.registrar.hand_edits import merge
from shared.contract.states import Desired, Status

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def record(**changes: Any) -> AgentRecord:
    known: dict[str, Any] = {
        "status": Status.RUNNING,
        "since": NOW,
        "reason": "spawned",
        "desired": Desired.RUNNING,
        "backend": "claude",
        "workspace": "/work",
        "spawn": "s1",
        "pid": 7,
    }
    return AgentRecord(**{**known, **changes})


def later(seconds: int) -> datetime:
    return NOW + timedelta(seconds=seconds)


V1 = record()
V2 = record(status=Status.TERMINATED, since=later(1), pid=None, reason="gone")
V3 = record(spawn="s2", since=later(2), pid=8)


def test_a_save_without_an_edit_changes_nothing() -> None:
    assert merge([V1], V1, V3).record == V3


def test_a_changed_desired_is_a_wish() -> None:
    merged = merge([V1], record(desired=Desired.STOPPED), V1)
    assert (merged.wish, merged.record.desired, merged.put_back) == (Desired.STOPPED, Desired.STOPPED, ())


def test_a_changed_desired_is_a_wish_even_in_an_old_version() -> None:
    """The editor was opened at the first version; its facts are old, and only what was typed counts."""
    merged = merge([V1, V2, V3], record(desired=Desired.STOPPED), V3)
    assert merged.wish is Desired.STOPPED
    assert merged.record == V3.model_copy(update={"desired": Desired.STOPPED})
    assert merged.put_back == ()


STOPPED = record(desired=Desired.STOPPED, status=Status.STOPPED, since=later(1))


def test_a_save_of_an_old_version_changes_nothing() -> None:
    merged = merge([V1, STOPPED], V1, STOPPED)
    assert (merged.record, merged.wish, merged.put_back) == (STOPPED, None, ())


def test_an_edit_can_be_undone() -> None:
    """The last version that was seen is the one that an editor has, though an earlier one is closer."""
    wished = record(desired=Desired.STOPPED, role="tests")
    merged = merge([V1, wished], V1, wished)
    assert (merged.wish, merged.record.role) == (Desired.RUNNING, "")


def test_nothing_is_taken_up_from_an_unknown_version() -> None:
    """It may be hours old: what it says of `desired` may have been undone since."""
    merged = merge([STOPPED], record(role="mine"), STOPPED)
    assert (merged.unknown, merged.wish, merged.record) == (True, None, STOPPED)
    assert "status" in merged.put_back


def test_a_desired_that_holds_already_is_no_wish() -> None:
    assert merge([V1], record(desired=Desired.STOPPED), STOPPED).wish is None


@pytest.mark.parametrize(
    ("name", "value"), [("role", "builds"), ("reason", "mine"), ("parent", "boss"), ("level", 2), ("job", "j1")]
)
def test_an_editable_field_is_taken_up(name: str, value: Any) -> None:
    merged = merge([V1], record(**{name: value}), V2)
    assert merged.record == V2.model_copy(update={name: value})
    assert merged.put_back == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [("pid", 9), ("session", "x"), ("workspace", "/else"), ("conversation", "c1"), ("backend", "codex")],
)
def test_an_observed_field_is_put_back_and_reported(name: str, value: Any) -> None:
    merged = merge([V1], record(**{name: value}), V1)
    assert (merged.record, merged.put_back) == (V1, (name,))


def test_an_observed_field_that_came_true_is_not_reported() -> None:
    assert merge([V1], record(pid=8), record(pid=8)).put_back == ()


@pytest.mark.parametrize(("name", "value"), [("status", Status.STOPPED), ("spawn", "s9"), ("since", later(9))])
def test_an_edit_of_what_identifies_a_version_is_put_back_whole(name: str, value: Any) -> None:
    merged = merge([V1], record(**{name: value, "desired": Desired.STOPPED}), V1)
    assert (merged.record, merged.unknown, merged.put_back) == (V1, True, (name,))
