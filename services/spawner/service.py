"""Carries out what is asked and keeps what is wanted running. Push, poll and command all end in the same look."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from services.spawner.commands.replies import hold, spawn_of
from services.spawner.commands.sessions import SessionCommands, is_about_sessions, no_such_agent
from services.spawner.sessions.conversations import take_up
from services.spawner.sessions.decision import AgentMemory
from services.spawner.sessions.keeper import SessionKeeper
from services.spawner.sessions.output_logs import LogKeeper
from services.spawner.sessions.parking import forget_past, park, unpark
from services.spawner.typing.queue import TypingQueue
from services.spawner.view import SEED, SpawnerView
from shared.contract.commands import Adopt, AgentCommand, Delete, Forget, Park, SpawnAll, Stop, Unpark
from shared.contract.envelope import Data
from shared.contract.ids import is_id, new_id
from shared.fleet import Fleet, FleetFile
from shared.runtime.turn import PendingCommand, Turn
from shared.system.log import Log
from shared.system.tmux import Pane, Tmux


class Spawner:
    name: ClassVar[str] = "spawner"

    def __init__(
        self,
        fleet_file: FleetFile,
        tmux: Tmux,
        keeper: SessionKeeper,
        commands: SessionCommands,
        typist: TypingQueue,
        logs: LogKeeper,
        log: Log,
    ) -> None:
        self._file = fleet_file
        self._tmux = tmux
        self._keeper = keeper
        self._commands = commands
        self._typist = typist
        self._logs = logs
        self._log = log
        self._started_with = settled_settings(fleet_file.fleet)
        self._read: dict[str, tuple[object, AgentMemory]] = {}

    def states(self) -> Iterable[Data]:
        return ()

    def step(self, turn: Turn) -> None:
        if turn.recall(SEED) is None:
            turn.remember(SEED, new_id())  # in the journal before anything is started by it
            turn.look_again_at(turn.now)
            return
        self._file.refresh()
        view = self._look(turn)
        take_up(view, turn.events)
        self._settle_displaced(view)
        turn.commands += [pending for pending in turn.late_commands if has_begun(view, pending)]
        typed = self._carry_out_all(view)
        ended = [agent for agent, pane in view.panes.items() if pane.dead]
        for agent in dict.fromkeys([*view.fleet.agents, *view.adopted(), *ended]):
            if agent not in self._commands.resting:
                with turn.isolated(agent):
                    self._keeper.keep(view, agent)
        self._typist.serve(view, typed)
        if turn.poll:
            forget_past(view)
        for said in self._logs.tend(_logged(view), view.now) if turn.poll else ():
            self._log.warning("mended a log", reason=said)
        if settled_settings(view.fleet) != self._started_with:
            turn.degrade(
                "host, prefix, tmux, broker, polls and logs of the fleet file take effect after `down` and `up`"
            )
        if self._file.fault:
            turn.degrade(f"the fleet file has a fault, the last good one stays in force: {self._file.fault}")

    def _look(self, turn: Turn) -> SpawnerView:
        fleet = self._file.fleet
        if self._tmux.server is None:
            self._tmux.expect(remembered_servers(turn))
        panes = self._tmux.look()
        ours = {pane.agent: pane for pane in panes if pane.agent and _is_ours(pane, fleet)}
        others = [pane for pane in panes if not _is_ours(pane, fleet)]
        return SpawnerView(turn, fleet, ours, others, self._tmux.server, _read=self._read)

    def _settle_displaced(self, view: SpawnerView) -> None:
        """People move panes between sessions: an agent is where its own pane is, and is let go only if that is gone."""
        for agent, pane in list(view.panes.items()):
            known = view.known(agent)
            if known.spawn != pane.spawn or pane.pane_only or not known.pane:
                continue
            if pane.own is None:
                self._keeper.settle(view, agent, known.pane)
            elif known.pane != pane.pane_id and not self._keeper.follow(view, agent):
                self._keeper.let_go(view, agent, view.panes.pop(agent))
        for agent in view.fleet.agents:
            if agent not in view.panes and view.known(agent).alive:
                self._keeper.follow(view, agent)

    def _carry_out_all(self, view: SpawnerView) -> list[PendingCommand]:
        """Carry out what is about sessions; what is to be typed is given back.

        One command for an agent in a turn: after a crash, what was begun is told from what was not.
        """
        busy: set[str] = set()
        typed: list[PendingCommand] = []
        view.overtaken = overtaken(view.turn.commands)
        self._commands.waiting.clear()
        for pending in _parking_first(view):
            agent = pending.command.agent if isinstance(pending.command, AgentCommand) else "*"
            if isinstance(pending.command, AgentCommand) and not self._is_known(view, pending.command):
                view.turn.reply(pending, no_such_agent(view, agent), code="unknown_agent")
            elif not is_about_sessions(pending.command):
                typed.append(pending)
            elif isinstance(pending.command, SpawnAll):
                self._commands.carry_out(view, pending)
            elif agent in busy or "*" in busy or (agent == "*" and busy):
                view.turn.look_again_at(view.turn.now)
            else:
                self._commands.carry_out(view, pending)
                if pending.request.id not in self._commands.waiting:
                    busy.add(agent)
        # A session that has just been ended or replaced must not be typed into on what was asked before.
        waiting = [each for each in typed if busy & {"*", getattr(each.command, "agent", "*")}]
        for each in waiting:
            hold(view, each, "its agent is being started or ended")
        return [each for each in typed if each not in waiting]

    def _is_known(self, view: SpawnerView, command: AgentCommand) -> bool:
        if command.agent in view.fleet.agents or view.known(command.agent).adopted:
            return True
        if isinstance(command, Adopt):
            return True
        return isinstance(command, Stop | Delete | Forget) and command.agent in view.panes


def _parking_first(view: SpawnerView) -> list[PendingCommand]:
    """Carry out what is about accounts, and give the rest: who waited for an account is started by what it asked."""
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
    kept = [turn.recall(key) or {} for key in {**turn.memory, **turn.remembered} if key.startswith("agent:")]
    return {each["server"] for each in kept if each.get("alive") and each.get("server")}


def _is_ours(pane: Pane, fleet: Fleet) -> bool:
    """Whether its stamps are ours. Anybody can change them, and then they are nobody's."""
    return pane.fleet == fleet.stamp and is_id(pane.agent or "") and is_id(pane.spawn or "")


def _logged(view: SpawnerView) -> Iterator[Pane]:
    """The panes whose output goes to our logs: not those that somebody else has piped, for as long as they do."""
    for agent, pane in view.panes.items():
        known = view.known(agent)
        if known.piped_elsewhere and pane.piped:
            continue
        if known.piped_elsewhere:
            view.remember(agent, replace(known, piped_elsewhere=False))
        yield pane


def has_begun(view: SpawnerView, pending: PendingCommand) -> bool:
    """Whether a command was begun before this process, or the one before it, was away for long: then it is finished."""
    agent = getattr(pending.command, "agent", None)
    if agent is None:
        return False
    pane, spawn = view.panes.get(agent), spawn_of(pending.request)
    under_way = [view.turn.recall(f"{what}:{agent}") for what in ("delivery", "pressing")]
    return (
        (pane is not None and pane.spawn == spawn)
        or view.known(agent).resuming == pending.request.id
        or any(kept is not None and kept["id"] == pending.request.id for kept in under_way)
    )


def overtaken(pending: Sequence[PendingCommand]) -> frozenset[str]:
    """The requests after which another one is about the same agent's session, or about all."""
    found: set[str] = set()
    later: set[str] = set()
    for each in reversed([each for each in pending if is_about_sessions(each.command)]):
        agent = getattr(each.command, "agent", None)
        if agent is not None and later & {agent, "*"}:
            found.add(each.request.id)
        if not isinstance(each.command, SpawnAll):
            later.add(agent or "*")
    return frozenset(found)


def settled_settings(fleet: Fleet) -> tuple[object, ...]:
    """What a running process can't change: it holds connections and names made of it."""
    declared = fleet.declared
    return (fleet.space, declared.tmux.socket, declared.broker, declared.polls, declared.logs)
