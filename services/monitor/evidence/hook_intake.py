"""Takes the hooks' calls from the spool, each once, and gives each to the agent that it belongs to.

An agent is known by its spawn id, else by its conversation or its pane. The file of a call is removed after what it
said is in the journal.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from registry import AgentRecord
from services.monitor.evidence.hooks import GOES_ON, HOOKS, HookState
from services.monitor.subject import Subject
from shared.agents.hooks.spool import AT_MOST, HookEvent, Spool
from shared.runtime.effects import EffectHandler
from shared.runtime.turn import Turn
from shared.system.tmux import Pane

UNOWNED_KEPT_S = 120.0
"""How long a call that belongs to no known agent is kept: an agent that was started by hand may soon be adopted."""
DROP_CALLS = "drop_hook_calls"


@dataclass(frozen=True)
class HookOwners:
    """What the agents of a fleet can be known by."""

    socket: str
    """The tmux server that they are in."""
    spawns: Mapping[str, str]
    panes: Mapping[str, tuple[str, int]]
    """The agent in each pane, and when the pane was made: a new tmux server uses the same pane ids again."""
    conversations: Mapping[str, str]

    @classmethod
    def of(cls, panes: Mapping[str, Pane], records: Mapping[str, AgentRecord], socket: str) -> "HookOwners":
        return cls(
            socket,
            {pane.spawn: agent for agent, pane in panes.items() if pane.spawn},
            {pane.pane_id: (agent, pane.created) for agent, pane in panes.items()},
            {record.conversation: agent for agent, record in records.items() if agent in panes and record.conversation},
        )

    def owner_of(self, event: HookEvent) -> str | None:
        """The agent that a call belongs to; None if it is not known (yet)."""
        if event.spawn:
            return self.spawns.get(event.spawn)  # the spawn id of an earlier session belongs to no agent that runs
        conversation = event.payload.get("session_id")
        if isinstance(conversation, str) and conversation in self.conversations:
            return self.conversations[conversation]
        if not event.pane or event.socket != self.socket:
            return None
        agent, created = self.panes.get(event.pane, (None, 0))
        return agent if agent is not None and event.at >= created and self._may_own(agent, event) else None

    def _may_own(self, agent: str, event: HookEvent) -> bool:
        """Whether the agent in a call's pane made it, by the conversation.

        A call in another conversation than the recorded one is the agent's only if it begins that conversation. Codex
        calls hooks from a server of its own, which has the variables of the first pane that it was started for.
        """
        begins = event.name == "SessionStart" and event.payload.get("source") in GOES_ON
        return agent not in self.conversations.values() or not event.payload.get("session_id") or begins


def is_late(at: float, now: float) -> bool:
    """Whether a call without an owner is given up. A call that came during the turn is younger than the turn."""
    return abs(now - at) > UNOWNED_KEPT_S


class HookIntake:
    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._taken: list[str] = []
        """The files of the calls of this turn."""
        self._unowned: dict[str, float] = {}
        """The files of calls without a known owner, and when they were made. Hooks that a user has installed are called
        by all agents of that user."""
        self._owners: HookOwners | None = None

    def take(self, turn: Turn, owners: HookOwners, subjects: Mapping[str, Subject]) -> None:
        """Give each watched agent the calls of its hooks."""
        self._taken = []
        for result in turn.effect_results:
            if result.error:
                turn.degrade(f"calls of hooks could not be removed: {result.error}")
        if owners != self._owners:
            self._owners = owners
            self._unowned.clear()  # their owners may be known now
        now = turn.now.timestamp()
        events = self._spool.read(but=self._unowned)
        if len(events) == AT_MOST:
            turn.look_again_at(turn.now)  # there are more
        for event in events:
            made_at = turn.corrected(event.at)
            agent = owners.owner_of(replace(event, at=made_at))
            subject = subjects.get(agent) if agent is not None else None
            if subject is None:
                self._unowned[event.file.name] = made_at
                continue
            subject.take_hook(event.payload, min(event.at, now), event.pid, now)
            self._taken.append(event.file.name)
        late = [name for name, at in self._unowned.items() if is_late(at, now)]
        self._spool.drop(late)
        for name in late:
            del self._unowned[name]

    @property
    def effects(self) -> Mapping[str, EffectHandler]:
        return {DROP_CALLS: EffectHandler(lambda payload: self._spool.drop(payload["files"]))}

    def remember(self, turn: Turn, subjects: Mapping[str, Subject], panes: Mapping[str, Pane]) -> None:
        """Remember what hooks told, have the taken calls removed, and forget agents that are gone."""
        for agent, subject in subjects.items():
            if subject.hooks != HookState() or turn.memory.find(HOOKS, agent) is not None:
                turn.memory.put(HOOKS, subject.memory, agent)
        if self._taken:
            turn.perform(DROP_CALLS, self._taken[0], {"files": self._taken})
        for agent in turn.memory.all(HOOKS).keys() - panes.keys():
            turn.memory.put(HOOKS, None, agent)
