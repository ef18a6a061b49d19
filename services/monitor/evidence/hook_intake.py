"""Takes the hooks' calls from the spool, each once, and finds the agent that each belongs to.

The agent is known by its spawn id, else by its conversation or its pane. A call's file is removed when what it said is
in the journal, and not before.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from registry import AgentRecord
from services.monitor.evidence.hooks import GOES_ON
from services.monitor.subject import Subject
from shared.agents.hooks.spool import AT_MOST, HookEvent, Spool
from shared.runtime.effects import EffectHandler
from shared.runtime.turn import Turn
from shared.system.tmux import Pane

WAITS_S = 120.0
"""So long a call is kept of which nobody knows whose it is: an agent that was started by hand is adopted soon."""


@dataclass(frozen=True)
class HookOwners:
    """By what the agents of a fleet can be known."""

    socket: str
    """The tmux server that they are in."""
    spawns: Mapping[str, str]
    panes: Mapping[str, tuple[str, int]]
    """With when each was made: a new server gives their numbers again."""
    conversations: Mapping[str, str]

    @classmethod
    def of(cls, panes: Mapping[str, Pane], records: Mapping[str, AgentRecord], socket: str) -> "HookOwners":
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


HOOKED = "hooked:"
DROP_CALLS = "drop_hook_calls"


class HookIntake:
    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._taken: dict[str, list[HookEvent]] = {}
        """The calls of this turn, by agent: their files go when what they said is committed."""
        self._strangers: dict[str, float] = {}
        """The files of calls of which it is not known whose they are, and when they were: hooks that a user has
        installed are called by all agents of that user, and some are adopted soon."""
        self._whereabouts: HookOwners | None = None

    def hear(self, turn: Turn, known: HookOwners, subjects: Mapping[str, Subject]) -> None:
        """Let each agent that is watched hear what its hooks told."""
        self._taken = {}
        for result in turn.effect_results:
            if result.error:
                turn.degrade(f"calls of hooks could not be removed: {result.error}")
        if known != self._whereabouts:
            self._whereabouts = known
            self._strangers.clear()  # somebody may be known by now
        now = turn.now.timestamp()
        events = self._spool.read(but=self._strangers)
        if len(events) == AT_MOST:
            turn.look_again_at(turn.now)  # there are more
        for event in events:
            agent = known.whose(event)
            subject = subjects.get(agent) if agent is not None else None
            if subject is None:
                self._strangers[event.file.name] = event.at
                continue
            subject.hear(event.payload, min(event.at, now), event.pid, now)
            self._taken.setdefault(subject.agent, []).append(event)
        late = [name for name, at in self._strangers.items() if is_late(at, now)]
        self._spool.drop(late)
        for name in late:
            del self._strangers[name]

    @property
    def effects(self) -> Mapping[str, EffectHandler]:
        return {DROP_CALLS: EffectHandler(lambda payload: self._spool.drop(payload["files"]))}

    def remember(self, turn: Turn, subjects: Mapping[str, Subject], panes: Mapping[str, Pane]) -> None:
        """Keep what was heard, over restarts; nothing of those who are gone."""
        for agent, subject in subjects.items():
            if subject.hooked_anew or agent in self._taken:
                kept = document(subject)
                if turn.recall(f"{HOOKED}{agent}") != kept:
                    turn.remember(f"{HOOKED}{agent}", kept)
                subject.hooked_anew = False
        if files := [event.file.name for events in self._taken.values() for event in events]:
            turn.perform(DROP_CALLS, files[0], {"files": files})
        for key in [key for key, kept in turn.memory.items() if key.startswith(HOOKED) and kept]:
            if key.removeprefix(HOOKED) not in panes:
                turn.remember(key, None)


def document(subject: Subject) -> dict[str, Any]:
    return {"spawn": subject.spawn, "hooked": subject.hooked.document(), "program": subject.program()}
