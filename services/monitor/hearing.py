"""Whose hook was called: by the spawn id that the agent was given, else by its conversation or its pane. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from registry import AgentRecord
from services.monitor.evidence.hooks import GOES_ON
from shared.hooks.spool import HookEvent
from shared.tmux import Pane

WAITS_S = 120.0
"""So long a call is kept of which nobody knows whose it is: an agent that was started by hand is adopted soon."""


@dataclass(frozen=True)
class Whereabouts:
    """By what the agents of a fleet can be known."""

    socket: str
    """The tmux server that they are in."""
    spawns: Mapping[str, str]
    panes: Mapping[str, tuple[str, int]]
    """With when each was made: a new server gives their numbers again."""
    conversations: Mapping[str, str]

    @classmethod
    def of(cls, panes: Mapping[str, Pane], records: Mapping[str, AgentRecord], socket: str) -> "Whereabouts":
        recorded = {
            record.conversation: agent for agent, record in records.items() if agent in panes and record.conversation
        }
        return cls(
            socket,
            {pane.spawn: agent for agent, pane in panes.items() if pane.spawn},
            {pane.pane_id: (agent, pane.created) for agent, pane in panes.items()},
            recorded,
        )

    def whose(self, event: HookEvent) -> str | None:
        """The agent that it is about; None if that is not known (yet)."""
        if event.spawn:
            return self.spawns.get(event.spawn)  # one that was started for an earlier session is of nobody who runs
        conversation = event.payload.get("session_id")
        if isinstance(conversation, str) and conversation in self.conversations:
            return self.conversations[conversation]
        if not event.pane or event.socket != self.socket:
            return None
        agent, created = self.panes.get(event.pane, (None, 0))
        return agent if agent is not None and event.at >= created and self._may_be(agent, event) else None

    def _may_be(self, agent: str, event: HookEvent) -> bool:
        """Whether a pane's agent may be in another conversation than is recorded: it went on to it with this very call.
        Codex calls hooks from a server of its own, which has the variables of the first pane it was started for."""
        goes_on = event.name == "SessionStart" and event.payload.get("source") in GOES_ON
        return agent not in self.conversations.values() or not event.payload.get("session_id") or goes_on


def is_late(at: float, now: float) -> bool:
    """Whether nobody will come any more whose it could be. One that comes during a turn is younger than the turn."""
    return abs(now - at) > WAITS_S
