"""Agents in panes without a stamp, which a person started: reported once, then adopted unless people object."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path

from services.reconciler.classification import unregistered
from services.reconciler.examination import ReadProcesses
from shared.agents.identity import ConversationIdentity, identify
from shared.agents.recognition import agent_in
from shared.contract.commands import Adopt
from shared.contract.events.drift import Unregistered
from shared.contract.ids import as_id
from shared.fleet import Fleet
from shared.runtime.memory import MemoryTable
from shared.runtime.moments import Moment
from shared.runtime.turn import Turn
from shared.system.processes import Process
from shared.system.tmux import Pane

SETTLES_S = 3.0
"""How long a program must have run in a person's pane before it counts as an agent."""
LOOK_VALID_S = 2.5
"""How long a look into an unstamped pane is valid."""


@dataclass(frozen=True)
class ForeignAgent:
    """An agent that runs in a pane without a stamp."""

    pane: Pane
    backend: str
    process: Process
    alone: bool
    """Whether its session has no other pane."""
    identity: ConversationIdentity | None = None

    @property
    def key(self) -> str:
        """Unique to its process. Counted in ticks since boot where known: the wall clock may be set meanwhile."""
        process = self.process
        return f"{process.pid}-{f'{process.started:.2f}' if process.ticks is None else process.ticks}"


PaneKey = tuple[str, int, str]
"""Pane, process and program: when one changes, the pane is looked into again."""


@dataclass
class UnstampedPanes:
    _seen: dict[PaneKey, tuple[float, ForeignAgent | None]] = field(default_factory=dict)
    next_look: float | None = None
    """When a program that has just started is to be looked at again."""

    def look(
        self, fleet: Fleet, panes: Sequence[Pane], read_processes: ReadProcesses, now: float
    ) -> Iterator[ForeignAgent]:
        self.next_look = None
        # A pane that a fleet was told to forget (`left`) is ignored until a person adopts it.
        unstamped = [pane for pane in panes if not (pane.fleet or pane.dead or pane.left)]
        keys = {_key(pane) for pane in unstamped}
        self._seen = {key: seen for key, seen in self._seen.items() if key in keys}
        for pane in unstamped:
            at, agent = self._seen.get(_key(pane), (float("-inf"), None))
            if not 0 <= now - at < LOOK_VALID_S:
                alone = sum(other.session_id == pane.session_id for other in panes) == 1
                agent = self._look_into(fleet, pane, read_processes, now, alone=alone)
            if agent is not None:
                yield agent

    def _look_into(
        self, fleet: Fleet, pane: Pane, read_processes: ReadProcesses, now: float, *, alone: bool
    ) -> ForeignAgent | None:
        processes = read_processes()
        found = agent_in(processes, fleet.backends, pane.pid)
        if found is not None and abs(now - found[1].started) < SETTLES_S:
            self._look_again(found[1].started + SETTLES_S)
            return None
        agent = None
        if found is None and _key(pane) not in self._seen:
            self._look_again(now + SETTLES_S)  # a shell may be about to start an agent
        if found is not None:
            backend, process = found
            identity = identify(backend, fleet.backends[backend], processes, process, Path(pane.path))
            agent = ForeignAgent(pane, backend, process, alone, identity)
        self._seen[_key(pane)] = (now, agent)
        return agent

    def _look_again(self, at: float) -> None:
        self.next_look = at if self.next_look is None else min(at, self.next_look)

    def expire(self) -> None:
        """Have every pane looked into again."""
        self._seen.clear()


def _key(pane: Pane) -> PaneKey:
    return (pane.pane_id, pane.pid, pane.command)


# --- reporting and adopting them ---

STAMP_LOST_S, REFUSED_TWICE_S = 60.0, 600.0
"""When to ask again: after an adoption that left no stamp, and after a second name was refused too."""
REFUSED_NAMES_AT_MOST = 5
"""So many refused names are remembered; then the first is tried again."""


@dataclass(frozen=True)
class ReportedForeignAgent:
    """A foreign agent that was reported, and the latest command to adopt it."""

    agent: str
    """The name that it was reported under."""
    command_id: str = ""
    asked_at: Moment = 0.0
    refused: tuple[str, ...] = ()
    """Names under which the spawner did not adopt it."""

    def was_asked_within(self, seconds: float, now: datetime) -> bool:
        return now.timestamp() - self.asked_at < seconds


FOREIGN_AGENTS = MemoryTable("foreign:", ReportedForeignAgent)
"""By the key of the agent's process."""


@dataclass(frozen=True)
class AdoptionCandidate:
    """A foreign agent, the event that reports it, and whether to ask for its adoption now."""

    found: ForeignAgent
    event: Unregistered
    reported: ReportedForeignAgent | None
    """None: it was not reported yet."""
    asks: bool
    refused: tuple[str, ...] = ()


def candidates(
    turn: Turn, fleet: Fleet, found: Sequence[ForeignAgent], taken: Collection[str]
) -> Iterator[AdoptionCandidate]:
    """The foreign agents that the fleet file does not ignore, each with a name that is free."""
    settings = fleet.declared.adoption
    names = set(taken)
    for agent in found:
        if any(fnmatchcase(agent.pane.session, pattern) for pattern in settings.ignore):
            continue
        reported = turn.memory.find(FOREIGN_AGENTS, agent.key)
        asks, refused = _next_request(turn, reported) if reported is not None else (True, ())
        keeps_name = reported is not None and reported.agent not in refused
        name = reported.agent if reported and keeps_name else name_for(agent, fleet, names | {*refused})
        names.add(name)
        event = unregistered(name, agent.pane, agent.backend, agent.identity, adopts=settings.found)
        yield AdoptionCandidate(agent, event, reported, asks, refused)


def _next_request(turn: Turn, reported: ReportedForeignAgent) -> tuple[bool, tuple[str, ...]]:
    """Whether to ask for the adoption again, and the names not to ask for."""
    refused = reported.refused
    if not reported.command_id:
        return True, refused
    reply = turn.reply_for(reported.command_id)
    if reply is None:
        return False, refused
    if reply.ok:  # and yet there is no stamp: it was lost, or is about to be set
        return not reported.was_asked_within(STAMP_LOST_S, turn.now), refused
    if reply.code == "expired":
        return True, refused
    if refused and reported.was_asked_within(REFUSED_TWICE_S, turn.now):
        return False, refused
    return True, (*refused, reported.agent)[-REFUSED_NAMES_AT_MOST:]


def report(turn: Turn, candidate: AdoptionCandidate) -> None:
    """Report a foreign agent once, and ask the spawner to adopt it where that is due."""
    event, reported = candidate.event, candidate.reported
    if reported is None:
        turn.emit(event)
        reported = ReportedForeignAgent(event.agent)
    if candidate.asks and event.adopts:
        pane = None if candidate.found.alone else event.pane
        command = Adopt(agent=event.agent, session=event.session, pane=pane, backend=event.backend, found=True)
        command_id = turn.send_command(command, "found running in tmux")
        reported = ReportedForeignAgent(event.agent, command_id, turn.now.timestamp(), candidate.refused)
    turn.memory.put(FOREIGN_AGENTS, reported, candidate.found.key)


def forget_ended(turn: Turn, present: Collection[str]) -> None:
    """Forget the agents whose processes are gone. One that is being adopted is only not foreign any more."""
    for key, reported in turn.memory.all(FOREIGN_AGENTS).items():
        is_open = bool(reported.command_id) and turn.reply_for(reported.command_id) is None
        if key not in present and not is_open and not reported.was_asked_within(STAMP_LOST_S, turn.now):
            turn.memory.put(FOREIGN_AGENTS, None, key)


def name_for(agent: ForeignAgent, fleet: Fleet, taken: Collection[str]) -> str:
    """The name of its session, which people know, if that is free."""
    named = any(letter.isascii() and letter.isalnum() for letter in agent.pane.session)
    session = as_id(agent.pane.session) if named else agent.backend
    declared = fleet.declared.agents.get(session)
    is_that_agent = declared is not None and fleet.agents[session].backend == agent.backend
    wanted = session if agent.alone else as_id(f"{session[:40]}-{agent.backend}")
    names = [wanted, *(f"{wanted[:60]}-{number}" for number in range(2, 1000))]
    free = (
        name
        for name in names
        if name not in taken and (name not in fleet.agents or (name == session and is_that_agent))
    )
    return next(free, wanted)
