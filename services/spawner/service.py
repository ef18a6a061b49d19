"""Carries out what is asked and keeps what is wanted running. Push, poll and command all end in the same look."""

import difflib
import hashlib
from collections.abc import Iterable
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any, ClassVar

from services.spawner.decide import Bury, Claim, Known, LookAgain, NoteDeath, SayGaveUp, Start, decide
from services.spawner.sessions import Launch, launch, plan, workspace_of
from shared.commands import AgentCommand, Restart, Spawn, Stop, StopAll
from shared.errors import MusterError, Retryable
from shared.events import AgentExited, AgentGaveUp, AgentRestarted, AgentSpawned, AgentStopped, Data
from shared.fleet import Fleet, FleetFile
from shared.ids import new_id
from shared.journal import Request
from shared.log import Log
from shared.states import Desired
from shared.tmux import Pane, Tmux
from shared.topics import AGENT_DRIFT, Topic
from shared.turn import Asked, Turn

LIES_S, LIES_AT_MOST_S = 0.3, 1.5
"""How long a session stays after its program has ended."""


class Spawner:
    name: ClassVar[str] = "spawner"
    follows: ClassVar[tuple[Topic, ...]] = ()
    hints: ClassVar[tuple[Topic, ...]] = (AGENT_DRIFT,)
    owns: ClassVar[tuple[Topic, ...]] = ()

    def __init__(self, fleet_file: FleetFile, tmux: Tmux, log: Log) -> None:
        self._file = fleet_file
        self._tmux = tmux
        self._log = log
        self._started_with = settled_settings(fleet_file.fleet)
        self._dead_since: dict[str, float] = {}
        """When the program of a spawn was first seen to have ended."""
        self._resting: set[str] = set()
        """Agents that were ended only for as long as this process lives: the fleet goes down, the wish stays."""

    def states(self) -> Iterable[Data]:
        return ()

    def step(self, turn: Turn) -> None:
        self._file.refresh()
        panes = {pane.agent: pane for pane in self._tmux.look() if pane.fleet == self._fleet.stamp and pane.agent}
        self._carry_out_all(turn, panes)
        for agent in self._fleet.declared.agents:
            if agent in self._resting:
                continue
            try:
                self._keep(turn, agent, panes.get(agent))
            except Retryable:
                raise
            except MusterError as error:
                turn.complain(str(error))
                self._log.error("could not keep an agent as wanted", agent=agent, reason=str(error))
        if settled_settings(self._fleet) != self._started_with:
            turn.complain("host, prefix, tmux, broker and polls of the fleet file take effect after `down` and `up`")
        if self._file.fault:
            turn.complain(f"the fleet file has a fault, the last good one stays in force: {self._file.fault}")

    @property
    def _fleet(self) -> Fleet:
        return self._file.fleet

    # --- commands ---

    def _carry_out_all(self, turn: Turn, panes: dict[str, Pane]) -> None:
        """One command for an agent in a turn: after a crash, what was begun is told from what was not."""
        busy: set[str] = set()
        for asked in turn.asked:
            command = asked.command
            if isinstance(command, AgentCommand) and command.agent not in busy and "*" not in busy:
                busy.add(command.agent)
                self._carry_out(turn, asked, command, panes)
            elif isinstance(command, StopAll) and not busy:
                busy.add("*")
                self._stop_all(turn, asked, panes, for_now=command.for_now)
            else:
                turn.again_at(turn.now)

    def _carry_out(self, turn: Turn, asked: Asked, command: AgentCommand, panes: dict[str, Pane]) -> None:
        undeclared = command.agent not in self._fleet.declared.agents
        if undeclared and not (isinstance(command, Stop) and command.agent in panes):
            turn.answer(asked, self._no_such_agent(command.agent), code="unknown_agent")
            return
        try:
            match command:
                case Spawn():
                    self._spawn(turn, asked, command.agent, panes)
                case Stop(for_now=for_now):
                    self._stop(turn, asked, command.agent, panes, for_now=for_now)
                case Restart():
                    self._restart(turn, asked, command.agent, panes)
        except Retryable:
            raise
        except MusterError as error:
            turn.answer(asked, str(error), code="refused")

    def _no_such_agent(self, agent: str) -> str:
        agents = sorted(self._fleet.declared.agents)
        close = difflib.get_close_matches(agent, agents, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        return f"there is no agent {agent!r} in {self._fleet.path.name}; {hint}there are: {', '.join(agents) or 'none'}"

    def _spawn(self, turn: Turn, asked: Asked, agent: str, panes: dict[str, Pane]) -> None:
        pane = panes.get(agent)
        running = pane is not None and not pane.dead
        self._resting.discard(agent)
        known = replace(_recall(turn, agent), wish=Desired.RUNNING, gave_up=False, deaths=[])
        if running and pane is not None and pane.spawn != spawn_of(asked.request):
            _remember(turn, agent, known)
            turn.answer(asked, f"{agent} runs already", agent=agent, spawn=pane.spawn, already=True)
            return
        if pane is not None and pane.dead:
            self._bury(turn, agent, pane)
            pane = None
        if pane is None:
            pane = self._launch(plan(self._fleet, agent), spawn_of(asked.request))
        panes[agent] = pane
        self._tell_running(turn, agent, pane, known, cause=asked.request.id)
        turn.answer(asked, f"{agent} was started", agent=agent, spawn=pane.spawn, session=pane.session)

    def _stop_all(self, turn: Turn, asked: Asked, panes: dict[str, Pane], *, for_now: bool) -> None:
        ended = [agent for agent, pane in panes.items() if not pane.dead]
        for agent in {**dict.fromkeys(self._fleet.declared.agents), **panes}:
            self._end(turn, asked, agent, panes.pop(agent, None), for_now=for_now)
        said = f"{', '.join(ended)}: stopped" if ended else "no agent was running"
        turn.answer(asked, said, agents=ended)

    def _stop(self, turn: Turn, asked: Asked, agent: str, panes: dict[str, Pane], *, for_now: bool) -> None:
        pane = panes.pop(agent, None)
        ran = pane is not None and not pane.dead
        self._end(turn, asked, agent, pane, for_now=for_now)
        turn.answer(asked, f"{agent} was stopped" if ran else f"{agent} was not running, and stays down", agent=agent)

    def _end(self, turn: Turn, asked: Asked, agent: str, pane: Pane | None, *, for_now: bool) -> None:
        known = _recall(turn, agent)
        if pane is not None:
            self._tmux.kill(pane.session_id, spawn=pane.spawn)
        if for_now:
            self._resting.add(agent)
        wish = known.wish if for_now else Desired.STOPPED
        _remember(turn, agent, replace(known, wish=wish, alive=False, gave_up=False, deaths=[]))
        if pane is not None or known.alive or not (for_now or known.wish is Desired.STOPPED):
            spawn = pane.spawn if pane is not None else known.spawn
            stopped = AgentStopped(agent=agent, spawn=spawn, reason=_by(asked), for_now=for_now)
            turn.tell(stopped, cause=asked.request.id)

    def _restart(self, turn: Turn, asked: Asked, agent: str, panes: dict[str, Pane]) -> None:
        pane = panes.get(agent)
        self._resting.discard(agent)
        order = plan(self._fleet, agent)  # before anything is ended: a session that can't be made again is left alone
        known = replace(_recall(turn, agent), wish=Desired.RUNNING, gave_up=False, deaths=[])
        fresh = spawn_of(asked.request)
        if pane is not None and pane.spawn != fresh:
            self._tmux.kill(pane.session_id, spawn=pane.spawn)
            pane = None
        if pane is None:
            pane = self._launch(order, fresh)
        panes[agent] = pane
        self._tell_running(turn, agent, pane, known, cause=asked.request.id, restart=_by(asked))
        turn.answer(asked, f"{agent} was restarted", agent=agent, spawn=pane.spawn, session=pane.session)

    # --- keeping what is wanted ---

    def _keep(self, turn: Turn, agent: str, pane: Pane | None) -> None:
        declared = self._fleet.declared.agents[agent]
        known = _recall(turn, agent)
        wish = known.wish or (Desired.RUNNING if declared.enabled else Desired.STOPPED)
        for action in decide(known, wish, pane, declared.restart, turn.now.timestamp()):
            match action:
                case Claim(found):
                    told = "found running" if known.spawn else None
                    self._tell_running(turn, agent, found, replace(known, gave_up=False), restart=told)
                case Bury(dead):
                    if self._lies_too_short(turn, dead):
                        return
                    self._bury(turn, agent, dead)
                case NoteDeath(known):
                    _remember(turn, agent, known)
                case Start(reason, attempt, replaces):
                    found = self._launch(plan(self._fleet, agent), new_id())
                    self._tell_running(turn, agent, found, known, restart=reason if replaces else None, attempt=attempt)
                case SayGaveUp(reason):
                    _remember(turn, agent, replace(known, gave_up=True))
                    turn.tell(AgentGaveUp(agent=agent, reason=reason))
                case LookAgain(when):
                    turn.again_at(turn.now.fromtimestamp(when, turn.now.tzinfo))

    def _launch(self, order: Launch, spawn: str) -> Pane:
        return launch(self._tmux, order, spawn=spawn, stamp=self._fleet.stamp)

    def _lies_too_short(self, turn: Turn, pane: Pane) -> bool:
        """A dead pane is left for a moment: tmux may not know its status yet, and others want to see it."""
        now = turn.now.timestamp()
        since = self._dead_since.setdefault(pane.spawn or "", now)
        waits_s = LIES_S if pane.dead_status is not None else LIES_AT_MOST_S
        if now < since + waits_s:
            turn.again_at(turn.now + timedelta(seconds=waits_s))
            return True
        del self._dead_since[pane.spawn or ""]
        return False

    def _bury(self, turn: Turn, agent: str, pane: Pane) -> None:
        self._tmux.kill(pane.session_id, spawn=pane.spawn)
        turn.tell(AgentExited(agent=agent, spawn=pane.spawn or new_id(), exit_status=pane.dead_status))

    def _tell_running(
        self,
        turn: Turn,
        agent: str,
        pane: Pane,
        known: Known,
        *,
        cause: str | None = None,
        restart: str | None = None,
        attempt: int = 0,
    ) -> None:
        facts: dict[str, Any] = {
            "agent": agent,
            "spawn": pane.spawn,
            "backend": self._fleet.declared.agents[agent].backend,
            "workspace": str(workspace_of(self._fleet, agent)),
            "session": pane.session,
            "pane": pane.pane_id,
            "pid": pane.pid,
        }
        if restart is None:
            turn.tell(AgentSpawned(**facts), cause=cause)
        else:
            turn.tell(AgentRestarted(**facts, replaces=known.spawn, reason=restart, attempt=attempt), cause=cause)
        _remember(turn, agent, replace(known, spawn=pane.spawn, alive=True))


def settled_settings(fleet: Fleet) -> tuple[object, ...]:
    """What a running process can't change: it holds connections and names made of it."""
    declared = fleet.declared
    return (fleet.space, declared.tmux, declared.broker, declared.polls)


def _recall(turn: Turn, agent: str) -> Known:
    return Known.read(turn.recall(f"agent:{agent}"))


def _remember(turn: Turn, agent: str, known: Known) -> None:
    turn.remember(f"agent:{agent}", asdict(known))


def _by(asked: Asked) -> str:
    return f"asked for by {asked.command.by}" if asked.command.by else "asked for"


def spawn_of(request: Request) -> str:
    """The spawn id that this request leads to. The same after a crash, so that what was begun is recognised."""
    return hashlib.sha256(f"{request.id}:{request.asked}".encode()).hexdigest()[:19]
