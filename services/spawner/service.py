"""One turn of the spawner: look at tmux, carry out commands, keep wanted agents running, type."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import ClassVar

from registry import BadRegistry, RegistryFile
from services.spawner.commands.replies import defer, spawn_of
from services.spawner.commands.sessions import SessionCommands, is_about_sessions, no_such_agent
from services.spawner.commands.stops import STOP_PROGRESS
from services.spawner.commands.wishes import OUTDATED, outdated
from services.spawner.sessions.conversations import note_identified
from services.spawner.sessions.displacement import follow_moved_panes
from services.spawner.sessions.keeper import SessionKeeper
from services.spawner.sessions.memory import AGENTS, SEED
from services.spawner.sessions.output_logs import LogKeeper
from services.spawner.sessions.parking import park, remove_past, unpark
from services.spawner.sessions.recorded_memory import from_record
from services.spawner.typing.queue import TypingQueue, is_typing
from services.spawner.view import SpawnerView
from shared.contract.commands import Adopt, AgentCommand, Delete, Forget, Park, SpawnAll, Stop, StopAll, Unpark
from shared.contract.envelope import Data
from shared.contract.ids import new_id
from shared.fleet import Fleet, FleetFile
from shared.runtime.turn import PendingCommand, Turn
from shared.system.clock import jump_sentence
from shared.system.log import Log
from shared.system.tmux import Pane, Tmux

REGISTRY_READ_EVERY = timedelta(seconds=1)
"""How often a registry that can't be read is tried again, while nothing else is known."""


class Spawner:
    name: ClassVar[str] = "spawner"

    def __init__(
        self,
        fleet_file: FleetFile,
        tmux: Tmux,
        keeper: SessionKeeper,
        commands: SessionCommands,
        typing: TypingQueue,
        logs: LogKeeper,
        registry: RegistryFile,
        log: Log,
    ) -> None:
        self._file = fleet_file
        self._tmux = tmux
        self._keeper = keeper
        self._commands = commands
        self._typing = typing
        self._logs = logs
        self._registry = registry
        self._log = log
        self._up_to_date: set[str] = set()
        """Open commands after which no later one had been carried out when they came."""
        self._keeps_next = ""
        """The agent that the last turn had no time for."""
        self._started_with = fixed_settings(fleet_file.fleet)

    def states(self) -> Iterable[Data]:
        return ()

    def step(self, turn: Turn) -> None:
        self._file.refresh()
        if turn.jumped_s:
            turn.notice(jump_sentence(turn.jumped_s))  # of all services, this one says it
        view = self._look(turn)
        if turn.memory.find(SEED) is None and not self._begin(view):
            return
        note_identified(view, turn.events)
        follow_moved_panes(view, self._tmux)
        turn.commands += [pending for pending in turn.late_commands if has_begun(view, pending)]
        typed = self._carry_out_all(view)
        ended = [agent for agent, pane in view.panes.items() if pane.dead]
        kept = [] if self._commands.stops.starts_nothing(view) else [*view.fleet.agents, *view.adopted(), *ended]
        self._keep_all(view, list(dict.fromkeys(kept)))
        self._typing.serve(view, typed)
        if turn.poll:
            remove_past(view)
        for said in self._logs.tend(_logged(view), view.now) if turn.poll else ():
            self._log.warning("mended a log", reason=said)
        if fixed_settings(view.fleet) != self._started_with:
            turn.degrade(
                "host, prefix, tmux, broker, polls and logs of the fleet file take effect after `down` and `up`"
            )
        if self._file.fault:
            turn.degrade(f"the fleet file has a fault, the last good one stays in force: {self._file.fault}")

    def _begin(self, view: SpawnerView) -> bool:
        """Begin on a new journal with what the registry says; False while that can't be read."""
        turn = view.turn
        try:
            records = self._registry.records()
        except BadRegistry as fault:
            # Whom a person has stopped is written there: nothing is started before it can be read.
            turn.degrade(
                f"the journal is new and the registry can't be read, so nothing is started: {fault}; mend it, or move"
                " it away and all agents start as the fleet file says"
            )
            turn.look_again_at(turn.now + REGISTRY_READ_EVERY)
            return False
        for agent, record in records.items():
            declared = agent in view.fleet.agents
            by_itself = declared and view.fleet.starts_by_itself(agent)
            pane = view.panes.get(agent)
            view.remember(agent, from_record(record, pane, declared=declared, starts_by_itself=by_itself))
        turn.memory.put(SEED, new_id())
        turn.checkpoint()  # before a session has an id that is made of it; no event is about an agent of ours yet
        if records:
            said = (
                f"the journal was lost and a new one begun: what people wished of {len(records)} agents, and their"
                f" conversations, were read from {self._registry.path.name}"
            )
            turn.notice(said)
            self._log.warning("began a new journal", reason=said)
        return True

    def _look(self, turn: Turn) -> SpawnerView:
        fleet = self._file.fleet
        if self._tmux.server is None:
            self._tmux.expect(remembered_servers(turn))
        panes = self._tmux.look()
        ours = {pane.agent: pane for pane in panes if pane.agent and pane.belongs_to(fleet.stamp)}
        others = [pane for pane in panes if not pane.belongs_to(fleet.stamp)]
        return SpawnerView(turn, fleet, ours, others, self._tmux.server)

    def _carry_out_all(self, view: SpawnerView) -> list[PendingCommand]:
        """Carry out commands about sessions, and return those about typing.

        One command for an agent in a turn: so after a crash it is clear which one was begun.
        """
        busy: set[str] = set()
        typed: list[PendingCommand] = []
        view.overtaken = overtaken(view.turn.commands)
        self._commands.waiting.clear()
        self._up_to_date &= {pending.request.id for pending in view.turn.commands}
        for pending in _carry_out_beside_sessions(view):
            agent = pending.command.agent if isinstance(pending.command, AgentCommand) else "*"
            if isinstance(pending.command, AgentCommand) and not self._is_known(view, pending.command):
                view.turn.reply(pending, no_such_agent(view, agent), code="unknown_agent")
            elif not is_about_sessions(pending.command):
                typed.append(pending)
            elif why := self._outdated(view, pending):
                view.turn.reply(pending, why, code=OUTDATED)
            elif isinstance(pending.command, SpawnAll) and "*" not in busy:
                self._commands.carry_out(view, pending)
            elif agent in busy or "*" in busy or (agent == "*" and busy) or (busy and view.is_over):
                busy.add(agent)  # nor is a later command for it carried out, or typed, before this one
                view.turn.look_again_at(view.turn.now)
            else:
                self._commands.carry_out(view, pending)
                if pending.request.id not in self._commands.waiting:
                    busy.add(agent)
        # A command to type that came before its session was replaced must not be typed into the new one.
        waiting = [each for each in typed if busy & {"*", getattr(each.command, "agent", "*")}]
        for each in waiting:
            defer(view, each, "its agent is being started or ended")
        return [each for each in typed if each not in waiting]

    def _keep_all(self, view: SpawnerView, agents: list[str]) -> None:
        """Keep every agent. Those that a turn has no time for are the first of the next one."""
        first = agents.index(self._keeps_next) if self._keeps_next in agents else 0
        self._keeps_next = ""
        for place, agent in enumerate([*agents[first:], *agents[:first]]):
            if place and view.is_over:  # one in each turn at least
                self._keeps_next = agent
                view.turn.look_again_at(view.turn.now)
                return
            if agent not in self._commands.stops.down_for_now:
                with view.turn.isolated(agent):
                    self._keeper.keep(view, agent)

    def _outdated(self, view: SpawnerView, pending: PendingCommand) -> str:
        """Why a wish is not carried out that comes for the first time; what waits here is overtaken instead."""
        if pending.request.id in self._up_to_date or has_begun(view, pending):
            return ""
        why = outdated(view, pending)
        if not why:
            self._up_to_date.add(pending.request.id)
        return why

    def _is_known(self, view: SpawnerView, command: AgentCommand) -> bool:
        if isinstance(command, Adopt) or command.agent in view.fleet.agents or view.known(command.agent).is_adopted:
            return True
        return isinstance(command, Stop | Delete | Forget) and command.agent in view.panes


def _carry_out_beside_sessions(view: SpawnerView) -> list[PendingCommand]:
    """Carry out commands that neither change a session nor type, and return the rest. First, since a spawn may wait for
    an account.
    """
    rest: list[PendingCommand] = []
    for pending in view.turn.commands:
        match pending.command:
            case Park():
                park(view, pending, pending.command)
            case Unpark():
                unpark(view, pending, pending.command)
            case _:
                rest.append(pending)
    return rest


def remembered_servers(turn: Turn) -> set[str]:
    """The tmux servers in which agents ran when they were last seen."""
    known = turn.memory.all(AGENTS).values()
    return {each.session.server for each in known if each.had_session and each.session.server}


def _logged(view: SpawnerView) -> Iterator[Pane]:
    """The panes whose output we log. One that a person pipes elsewhere is left alone for as long as that lasts."""
    for agent, pane in view.panes.items():
        known = view.known(agent)
        if known.session.piped_elsewhere and pane.piped:
            continue
        if known.session.piped_elsewhere:
            view.remember(agent, known.with_session(piped_elsewhere=False))
        yield replace(pane, activity=int(view.turn.corrected(pane.activity)))


def has_begun(view: SpawnerView, pending: PendingCommand) -> bool:
    """Whether an expired command was begun before it expired: then it is finished."""
    if isinstance(pending.command, StopAll):
        progress = view.turn.memory.find(STOP_PROGRESS)
        return progress is not None and progress.request == pending.request.id
    agent = getattr(pending.command, "agent", None)
    if agent is None:
        return False
    pane, spawn = view.panes.get(agent), spawn_of(pending.request)
    return (
        (pane is not None and pane.spawn == spawn)
        or view.known(agent).resume_request == pending.request.id
        or is_typing(view.turn, agent, pending.request.id)
    )


def overtaken(pending: Sequence[PendingCommand]) -> frozenset[str]:
    """The requests after which another one came about the same agent's session, or about all."""
    found: set[str] = set()
    later: set[str] = set()
    for each in reversed([each for each in pending if is_about_sessions(each.command)]):
        agent = getattr(each.command, "agent", None)
        if agent is not None and later & {agent, "*"}:
            found.add(each.request.id)
        if not isinstance(each.command, SpawnAll):
            later.add(agent or "*")
    return frozenset(found)


def fixed_settings(fleet: Fleet) -> tuple[object, ...]:
    """The settings that a running process can't change: its connections and names are made of them."""
    declared = fleet.declared
    return (fleet.space, declared.tmux.socket, declared.broker, declared.polls, declared.logs)
