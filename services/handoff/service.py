"""Looks at what the remotes' watchers saw, decides for each loop, and asks the spawner for what follows."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from registry import AgentRecord, RegistryFile
from registry.memory import RegistryReader
from services.handoff.branch_events import take_up, tell_status
from services.handoff.commands import LoopCommands
from services.handoff.memory import LoopMemory, LoopTurn, Replies
from services.handoff.messages import MessageSender
from services.handoff.phase_runner import PhaseRunner, expected
from services.handoff.remotes.observation import BranchObservation
from services.handoff.remotes.push_hints import PushHints
from services.handoff.remotes.targets import address_of, targets, trails
from services.handoff.remotes.watcher import RemoteWatcher
from shared.contract.envelope import Data
from shared.contract.events.loops import RemoteReachable, RemoteUnreachable
from shared.fleet import Fleet, FleetFile
from shared.fleet.fleet import BadPath
from shared.fleet.loops import shown_remote
from shared.messaging.journal import Journal
from shared.runtime.turn import Turn
from shared.system.log import Log


class Handoff:
    name: ClassVar[str] = "handoff"

    def __init__(
        self,
        fleet_file: FleetFile,
        registry: RegistryFile,
        journal: Journal,
        looker: RemoteWatcher,
        hints: PushHints,
        log: Log,
    ) -> None:
        self._fleet_file = fleet_file
        self._records = RegistryReader(registry, journal)
        self._looker = looker
        self._hints = hints
        self._log = log
        replies = Replies(journal)
        self._postman = MessageSender(replies)
        self._player = PhaseRunner(replies, self._postman)
        self._desk = LoopCommands(self._player, self._postman, looker.standing, looker.look_now)

    def states(self) -> Iterable[Data]:
        return ()

    def address_of(self, loop: str) -> str:
        """The remote of a loop, as git takes it."""
        fleet = self._fleet_file.fleet
        return address_of(fleet, fleet.declared.loops[loop])

    def step(self, turn: Turn) -> None:
        self._fleet_file.refresh()
        fleet, memory = self._fleet_file.fleet, LoopMemory(turn)
        rounds = {name: LoopTurn(turn, memory, fleet, name, loop) for name, loop in fleet.declared.loops.items()}
        addresses = self._addresses(rounds)
        watched = {name: rounds[name] for name in addresses}
        sights = self._looker.take()
        records = self._records.read(turn) if watched else {}
        for name, it in watched.items():
            with turn.isolated(f"loop {name}"):
                self._attend(it, addresses[name], [sight for sight in sights if sight.loop == name])
        for asked in turn.commands:
            with turn.isolated("a loop that was asked for"):
                self._desk.answer(rounds, fleet, turn, asked, addresses)
            if asked.request.id not in turn.replies:
                turn.reply(asked, f"{asked.request.verb} failed; the log of {self.name} says why", code="refused")
        for name, it in watched.items():
            with turn.isolated(f"loop {name}"):
                tell_status(it)
                self._player.advance(it)
                self._player.serve(it, records)
        self._deliver(turn, rounds, records)
        self._watch(fleet, watched, addresses)

    def _watch(self, fleet: Fleet, watched: Mapping[str, LoopTurn], addresses: Mapping[str, str]) -> None:
        """Say what is wanted of which remote from now on."""
        loops = {name: it.loop for name, it in watched.items()}
        seen = {name: found for name, it in watched.items() if (found := it.memory.seen(name)) is not None}
        self._looker.watch(targets(loops, addresses, seen))
        self._hints.watch(trails(fleet, loops, addresses))

    def _addresses(self, rounds: Mapping[str, LoopTurn]) -> dict[str, str]:
        """The remotes of the loops that are to be watched."""
        found: dict[str, str] = {}
        for name, it in rounds.items():
            try:
                found |= {name: address_of(it.fleet, it.loop)} if it.loop.enabled else {}
            except BadPath as error:
                it.turn.degrade(f"the remote of the loop {name} can't be one: {error}")
        return found

    def _attend(self, it: LoopTurn, address: str, sights: Iterable[BranchObservation]) -> None:
        """Take up what was seen of a loop's branch, and whether its remote answers."""
        self._tell_standing(it, address)
        for sight in sights:
            for ping in take_up(it, address, sight):
                self._postman.put(it.turn, ping.agent, it.name, ping.text, it.loop.when, lasts=ping.lasts)

    def _tell_standing(self, it: LoopTurn, address: str) -> None:
        standing, down_since = self._looker.standing(address), it.memory.down_since(it.name)
        if standing is None:
            return
        remote = shown_remote(it.loop)
        if standing.is_down:
            it.turn.degrade(f"the remote of the loop {it.name} does not answer: {standing.failure}")
            if down_since is None:
                it.memory.keep_down_since(it.name, it.now)
                it.turn.emit(RemoteUnreachable(loop=it.name, remote=remote, reason=standing.failure))
        elif down_since is not None and standing.answered_at and not standing.failure:
            it.memory.keep_down_since(it.name, None)
            away_s = round(max(0.0, it.now - down_since), 1)
            it.turn.emit(RemoteReachable(loop=it.name, remote=remote, away_s=away_s))

    def _deliver(self, turn: Turn, rounds: Mapping[str, LoopTurn], records: Mapping[str, AgentRecord]) -> None:
        awaited = {agent for it in rounds.values() for agent in expected(it)}
        for agent in self._postman.waiting(turn):
            with turn.isolated(f"a message for {agent}"):
                self._postman.deliver(turn, agent, records.get(agent), is_expected=agent in awaited)
