"""Which agent a call of a hook belongs to, and how long a call without an owner is kept."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from services.monitor.evidence.hook_intake import UNOWNED_KEPT_S, HookOwners, is_late
from shared.agents.hooks.spool import HookEvent
from tests.unit.monitor.samples import NOW, pane, record

SOCKET = "/tmp/tmux-0/fleet"  # noqa: S108
PANES = {"builder": pane("builder", "s1", pane_id="%1"), "tester": pane("tester", "s2", pane_id="%2")}
RECORDS = {
    "builder": record(conversation="c1"),
    "tester": record(spawn="s2", conversation="c2"),
    "gone": record(spawn="s3", conversation="c3"),
    "silent": record(spawn="s4"),
}


def call(spawn: str | None = None, at: str | None = None, socket: str | None = SOCKET, **payload: Any) -> HookEvent:
    return HookEvent(NOW, spawn, at, socket if at else None, 7, payload, Path("x"))


def before(event: HookEvent) -> HookEvent:
    """From before its pane was made."""
    return replace(event, at=PANES["tester"].created - 1.0)


CALLS: dict[str, tuple[HookEvent, str | None]] = {
    "by its spawn": (call("s2"), "tester"),
    "by its spawn, whatever pane it is in": (call("s2", "%1", session_id="c1"), "tester"),
    "of an earlier session": (call("s0"), None),
    "of an earlier session, in a pane and a conversation of now": (call("s0", "%1", session_id="c1"), None),
    "by its pane": (call(at="%2"), "tester"),
    "by its conversation, though the pane is another's": (call(at="%2", session_id="c1"), "builder"),
    "in a pane whose agent is in another conversation": (call(at="%2", session_id="c9"), None),
    "in a pane whose agent just went on to another one": (
        call(at="%2", session_id="c9", hook_event_name="SessionStart", source="clear"),
        "tester",
    ),
    "in a pane whose agent has just been started": (
        call(at="%2", session_id="c9", hook_event_name="SessionStart", source="startup"),
        None,
    ),
    "in a pane of nobody": (call(at="%9", session_id="c9"), None),
    "in a pane of its number before there was this one": (before(call(at="%2")), None),
    "in a pane of another tmux server": (call(at="%2", socket="/elsewhere"), None),
    "of another tmux server, in a known conversation": (call(at="%2", socket="/elsewhere", session_id="c1"), "builder"),
    "by its conversation": (call(session_id="c2"), "tester"),
    "in the conversation of one who does not run": (call(session_id="c3"), None),
    "in an unknown conversation": (call(session_id="c9"), None),
    "in no conversation": (call(), None),
    "in one that is no text": (call(session_id=["c1"]), None),
    "in one that is nothing, as is that of some": (call(session_id=None), None),
}


@pytest.mark.parametrize(("event", "agent"), CALLS.values(), ids=CALLS)
def test_a_call_belongs_to_the_expected_agent(event: HookEvent, agent: str | None) -> None:
    assert HookOwners.of(PANES, RECORDS, SOCKET).owner_of(event) == agent


@pytest.mark.parametrize(
    ("age", "late"),
    [(0.0, False), (UNOWNED_KEPT_S, False), (UNOWNED_KEPT_S + 0.1, True), (-0.05, False), (-3600.0, True)],
)
def test_a_call_without_an_owner_is_kept_for_a_while(age: float, late: bool) -> None:
    """One that came while the turn was under way is younger than it; one of another day has a clock that was set."""
    assert is_late(NOW, NOW + age) is late
