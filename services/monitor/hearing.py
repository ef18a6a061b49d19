"""Whose hook was called: by the spawn id that the agent was given, else by its pane or its conversation. Pure."""

from collections.abc import Mapping

from registry import AgentRecord
from services.monitor.evidence.hooks import GOES_ON
from shared.hooks.spool import HookEvent
from shared.tmux import Pane

WAITS_S = 120.0
"""So long a call is kept of which nobody knows whose it is: an agent that was started by hand is adopted soon."""


def whose(event: HookEvent, panes: Mapping[str, Pane], records: Mapping[str, AgentRecord], socket: str) -> str | None:
    """The agent that it is about; None if that is not known (yet). `socket`: the tmux server that the panes are of."""
    if event.spawn:
        # One that was started for an earlier session is of nobody who runs.
        return next((agent for agent, pane in panes.items() if pane.spawn == event.spawn), None)
    conversation = event.payload.get("session_id")
    known = {record.conversation: agent for agent, record in records.items() if agent in panes and record.conversation}
    if isinstance(conversation, str) and conversation in known:
        return known[conversation]
    if event.pane and event.socket == socket:
        found = next((agent for agent, pane in panes.items() if pane.pane_id == event.pane), None)
        return found if found is not None and _may_be_in(records.get(found), event) else None
    return None


def _may_be_in(record: AgentRecord | None, event: HookEvent) -> bool:
    """Whether a pane's agent may be in another conversation than is recorded: it went on to it with this very call.
    Codex calls hooks from a server of its own, which has the variables of the first pane that it was started for."""
    goes_on = event.name == "SessionStart" and event.payload.get("source") in GOES_ON
    return record is None or record.conversation is None or not event.payload.get("session_id") or goes_on


def is_late(event: HookEvent, now: float) -> bool:
    """Whether nobody will come any more whose it could be. One that comes during a turn is younger than the turn."""
    return abs(now - event.at) > WAITS_S
