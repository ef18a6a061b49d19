"""Carries out what is asked and keeps what is wanted running. Push, poll and command all end in the same look."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from services.spawner.asking import hold, sentence, spawn_of
from services.spawner.carrying_out import SessionCommands, is_about_sessions, no_such_agent
from services.spawner.decide import Known
from services.spawner.hearing import take_up
from services.spawner.keeping import Keeper
from services.spawner.logs import LogKeeper
from services.spawner.parking import forget_past, park, unpark
from services.spawner.scene import SEED, Scene
from services.spawner.typist import Typist
from shared.commands import Adopt, AgentCommand, Delete, Forget, Park, SpawnAll, Stop, Unpark
from shared.errors import MusterError, Retryable
from shared.events import Data
from shared.fleet import Fleet, FleetFile
from shared.ids import is_id, new_id
from shared.log import Log
from shared.tmux import Pane, Tmux
from shared.topics import AGENT_DRIFT, Topic
from shared.turn import Asked, Turn


class Spawner:
    name: ClassVar[str] = "spawner"
    follows: ClassVar[tuple[Topic, ...]] = (AGENT_DRIFT,)
    hints: ClassVar[tuple[Topic, ...]] = ()
    owns: ClassVar[tuple[Topic, ...]] = ()

    def __init__(
        self,
        fleet_file: FleetFile,
        tmux: Tmux,
        keeper: Keeper,
        commands: SessionCommands,
        typist: Typist,
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
        self._read: dict[str, tuple[object, Known]] = {}
        self._said: dict[str, str] = {}
        """What was last logged of each agent that can't be kept, so that it is logged once."""

    def states(self) -> Iterable[Data]:
        return ()

    def step(self, turn: Turn) -> None:
        if turn.recall(SEED) is None:
            turn.remember(SEED, new_id())  # in the journal before anything is started by it
            turn.again_at(turn.now)
            return
        self._file.refresh()
        scene = self._look(turn)
        take_up(scene, turn.heard)
        self._settle_displaced(scene)
        turn.asked += [asked for asked in turn.late if has_begun(scene, asked)]
        typed = self._carry_out_all(scene)
        ended = [agent for agent, pane in scene.panes.items() if pane.dead]
        for agent in dict.fromkeys([*scene.fleet.agents, *scene.adopted(), *ended]):
            if agent not in self._commands.resting:
                self._keep(scene, agent)
        self._typist.serve(scene, typed)
        if turn.poll:
            forget_past(scene)
        for said in self._logs.tend(_logged(scene), scene.now) if turn.poll else ():
            self._log.warning("mended a log", reason=said)
        if settled_settings(scene.fleet) != self._started_with:
            turn.complain(
                "host, prefix, tmux, broker, polls and logs of the fleet file take effect after `down` and `up`"
            )
        if self._file.fault:
            turn.complain(f"the fleet file has a fault, the last good one stays in force: {self._file.fault}")

    def _look(self, turn: Turn) -> Scene:
        fleet = self._file.fleet
        if self._tmux.server is None:
            self._tmux.expect(remembered_servers(turn))
        panes = self._tmux.look()
        ours = {pane.agent: pane for pane in panes if pane.agent and _is_ours(pane, fleet)}
        others = [pane for pane in panes if not _is_ours(pane, fleet)]
        return Scene(turn, fleet, ours, others, self._tmux.server, _read=self._read)

    def _settle_displaced(self, scene: Scene) -> None:
        """People move panes between sessions: an agent is where its own pane is, and is let go only if that is gone."""
        for agent, pane in list(scene.panes.items()):
            known = scene.known(agent)
            if known.spawn != pane.spawn or pane.pane_only or not known.pane:
                continue
            if pane.own is None:
                self._keeper.settle(scene, agent, known.pane)
            elif known.pane != pane.pane_id and not self._keeper.follow(scene, agent):
                self._keeper.let_go(scene, agent, scene.panes.pop(agent))
        for agent in scene.fleet.agents:
            if agent not in scene.panes and scene.known(agent).alive:
                self._keeper.follow(scene, agent)

    def _keep(self, scene: Scene, agent: str) -> None:
        try:
            self._keeper.keep(scene, agent)
            self._said.pop(agent, None)
        except Retryable:
            raise
        except Exception as error:  # noqa: BLE001 - one agent that can't be kept must not cost the others theirs
            said = sentence(error)
            scene.turn.complain(said)
            if self._said.get(agent) != said:
                self._said[agent] = said
                if isinstance(error, MusterError):
                    self._log.error("could not keep an agent as wanted", agent=agent, reason=said)
                else:
                    self._log.failure("could not keep an agent as wanted", error, agent=agent)

    def _carry_out_all(self, scene: Scene) -> list[Asked]:
        """Carry out what is about sessions; what is to be typed is given back.

        One command for an agent in a turn: after a crash, what was begun is told from what was not.
        """
        busy: set[str] = set()
        typed: list[Asked] = []
        scene.overtaken = overtaken(scene.turn.asked)
        self._commands.waiting.clear()
        for asked in _parking_first(scene):
            agent = asked.command.agent if isinstance(asked.command, AgentCommand) else "*"
            if isinstance(asked.command, AgentCommand) and not self._is_known(scene, asked.command):
                scene.turn.answer(asked, no_such_agent(scene, agent), code="unknown_agent")
            elif not is_about_sessions(asked.command):
                typed.append(asked)
            elif isinstance(asked.command, SpawnAll):
                self._commands.carry_out(scene, asked)
            elif agent in busy or "*" in busy or (agent == "*" and busy):
                scene.turn.again_at(scene.turn.now)
            else:
                self._commands.carry_out(scene, asked)
                if asked.request.id not in self._commands.waiting:
                    busy.add(agent)
        # A session that has just been ended or replaced must not be typed into on what was asked before.
        waiting = [each for each in typed if busy & {"*", getattr(each.command, "agent", "*")}]
        for each in waiting:
            hold(scene, each, "its agent is being started or ended")
        return [each for each in typed if each not in waiting]

    def _is_known(self, scene: Scene, command: AgentCommand) -> bool:
        if command.agent in scene.fleet.agents or scene.known(command.agent).adopted:
            return True
        if isinstance(command, Adopt):
            return True
        return isinstance(command, Stop | Delete | Forget) and command.agent in scene.panes


def _parking_first(scene: Scene) -> list[Asked]:
    """Carry out what is about accounts, and give the rest: who waited for an account is started by what it asked."""
    rest: list[Asked] = []
    for asked in scene.turn.asked:
        match asked.command:
            case Park():
                park(scene, asked, asked.command)
            case Unpark():
                unpark(scene, asked, asked.command)
            case _:
                rest.append(asked)
    return rest


def remembered_servers(turn: Turn) -> set[str]:
    """The tmux servers in which agents ran when they were last seen."""
    kept = [turn.recall(key) or {} for key in {**turn.memory, **turn.kept} if key.startswith("agent:")]
    return {each["server"] for each in kept if each.get("alive") and each.get("server")}


def _is_ours(pane: Pane, fleet: Fleet) -> bool:
    """Whether its stamps are ours. Anybody can change them, and then they are nobody's."""
    return pane.fleet == fleet.stamp and is_id(pane.agent or "") and is_id(pane.spawn or "")


def _logged(scene: Scene) -> Iterator[Pane]:
    """The panes whose output goes to our logs: not those that somebody else has piped, for as long as they do."""
    for agent, pane in scene.panes.items():
        known = scene.known(agent)
        if known.piped_elsewhere and pane.piped:
            continue
        if known.piped_elsewhere:
            scene.remember(agent, replace(known, piped_elsewhere=False))
        yield pane


def has_begun(scene: Scene, asked: Asked) -> bool:
    """Whether a command was begun before this process, or the one before it, was away for long: then it is finished."""
    agent = getattr(asked.command, "agent", None)
    if agent is None:
        return False
    pane, spawn = scene.panes.get(agent), spawn_of(asked.request)
    under_way = [scene.turn.recall(f"{what}:{agent}") for what in ("delivery", "pressing")]
    return (
        (pane is not None and pane.spawn == spawn)
        or scene.known(agent).resuming == asked.request.id
        or any(kept is not None and kept["id"] == asked.request.id for kept in under_way)
    )


def overtaken(asked: Sequence[Asked]) -> frozenset[str]:
    """The requests after which another one is about the same agent's session, or about all."""
    found: set[str] = set()
    later: set[str] = set()
    for each in reversed([each for each in asked if is_about_sessions(each.command)]):
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
