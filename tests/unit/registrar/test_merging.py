"""A person's edit and what has become of the agent meanwhile."""

from datetime import UTC, datetime
from typing import Any

import pytest

from registry import AgentRecord
from services.registrar.merging import merge
from shared.states import Desired, Status

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


V1 = record()
V2 = record(status=Status.TERMINATED, pid=None, reason="gone")
V3 = record(spawn="s2", pid=8)


def test_nothing_edited_is_what_we_have() -> None:
    assert merge([V1], V1, V3).record == V3


def test_a_wish_is_taken_up() -> None:
    merged = merge([V1], record(desired=Desired.STOPPED), V1)
    assert (merged.wish, merged.record.desired, merged.put_back) == (Desired.STOPPED, Desired.STOPPED, ())


def test_a_wish_stays_a_wish_though_the_editor_began_long_ago() -> None:
    """The editor was opened at the first version; its facts are old, and only what was typed counts."""
    merged = merge([V1, V2, V3], record(desired=Desired.STOPPED), V3)
    assert merged.wish is Desired.STOPPED
    assert merged.record == V3.model_copy(update={"desired": Desired.STOPPED})
    assert merged.put_back == ()


def test_a_save_of_an_old_version_changes_nothing() -> None:
    stopped = record(desired=Desired.STOPPED, status=Status.STOPPED)
    merged = merge([V1, stopped], V1, stopped)
    assert (merged.record, merged.wish, merged.put_back) == (stopped, None, ())


def test_what_has_become_so_already_is_no_wish() -> None:
    stopped = record(desired=Desired.STOPPED, status=Status.STOPPED)
    assert merge([V1], record(desired=Desired.STOPPED), stopped).wish is None


@pytest.mark.parametrize(
    ("name", "value"), [("role", "builds"), ("reason", "mine"), ("parent", "boss"), ("level", 2), ("job", "j1")]
)
def test_what_people_may_write_is_taken_up(name: str, value: Any) -> None:
    merged = merge([V1], record(**{name: value}), V2)
    assert merged.record == V2.model_copy(update={name: value})
    assert merged.put_back == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [("status", Status.STOPPED), ("pid", 9), ("spawn", "s9"), ("workspace", "/else"), ("conversation", "c1")],
)
def test_a_fact_is_put_back_and_told(name: str, value: Any) -> None:
    merged = merge([V1], record(**{name: value}), V1)
    assert (merged.record, merged.put_back) == (V1, (name,))


def test_a_fact_that_came_true_needs_no_word() -> None:
    assert merge([V1], record(pid=8), record(pid=8)).put_back == ()


def test_without_an_earlier_version_what_we_have_is_what_it_began_with() -> None:
    merged = merge([], record(desired=Desired.STOPPED, pid=9), V1)
    assert (merged.wish, merged.put_back) == (Desired.STOPPED, ("pid",))
