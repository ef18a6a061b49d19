"""Looks at what the remotes' watchers saw, decides for each loop, and asks the spawner for what follows."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar

from registry import AgentRecord, RegistryFile
from registry.reading import Records
from services.handoff.answering import LoopDesk
from services.handoff.looking.hints import Hints
from services.handoff.looking.looker import Looker
from services.handoff.looking.sight import Sight
from services.handoff.memory import Memory
from services.handoff.playing import Player
from services.handoff.postman import Postman
from services.handoff.remotes import address_of, targets, trails
from services.handoff.taking_up import take_up, tell_status
from shared.commands import PhaseNext, PhaseSet, PhaseShow, Poll
from shared.errors import MusterError
from shared.events import Data, RemoteReachable, RemoteUnreachable
from shared.fleet import Fleet, FleetFile
from shared.fleet.fleet import BadPath
from shared.fleet.loops import Loop, shown_remote
from shared.journal import Journal
from shared.log import Log
from shared.topics import AGENT_LIFECYCLE, Topic
from shared.turn import Turn


class Handoff:
    name: ClassVar[str] = "handoff"
    follows: ClassVar[tuple[Topic, ...]] = ()
    hints: ClassVar[tuple[Topic, ...]] = (AGENT_LIFECYCLE,)
    owns: ClassVar[tuple[Topic, ...]] = ()

    def __init__(
        self,
        fleet_file: FleetFile,
        registry: RegistryFile,
        journal: Journal,
        looker: Looker,
        hints: Hints,
        log: Log,
    ) -> None:
        self._fleet_file = fleet_file
        self._records = Records(registry, journal)
        self._looker = looker
        self._hints = hints
        self._log = log
        self._postman = Postman(journal)
        self._player = Player(journal, self._postman)
        self._desk = LoopDesk(self._player, self._postman, looker.standing, looker.look_now)

    def states(self) -> Iterable[Data]:
        return ()

    def address_of(self, loop: str) -> str:
        """The remote of a loop, as git takes it."""
        fleet = self._fleet_file.fleet
        return address_of(fleet, fleet.declared.loops[loop])

    def step(self, turn: Turn) -> None:
        self._fleet_file.refresh()
        fleet, memory = self._fleet_file.fleet, Memory(turn)
        loops = {name: loop for name, loop in fleet.declared.loops.items() if loop.enabled}
        addresses = self._addresses(turn, fleet, loops)
        sights = self._looker.take()
        records = self._records.read(turn) if loops else {}
        for name, address in addresses.items():
            with self._minding(turn, name):
                self._attend(turn, memory, name, loops[name], address, sights)
        for asked in turn.asked:
            if isinstance(asked.command, PhaseShow | PhaseNext | PhaseSet | Poll):
                with self._minding(turn, asked.command.loop or "that was asked for"):
                    self._desk.answer(turn, memory, fleet, asked, asked.command, addresses)
                if asked.request.id not in turn.answers:
                    turn.answer(asked, turn.complaint, code="refused")
        for name in addresses:
            with self._minding(turn, name):
                self._play(turn, memory, fleet, name, loops[name], records)
        self._deliver(turn, memory, fleet, records)
        seen = {name: found for name in addresses if (found := memory.seen(name)) is not None}
        self._looker.watch(targets(loops, addresses, seen))
        self._hints.watch(trails(fleet, loops, addresses))

    @contextmanager
    def _minding(self, turn: Turn, loop: str) -> Iterator[None]:
        """A loop that is odd in some new way must not hold up the others: nothing of it is told, asked for or kept.

        It comes again. A source that does not answer is raised.
        """
        told, wanted, kept = len(turn.told), len(turn.wanted), dict(turn.kept)
        try:
            yield
        except MusterError:
            raise
        except Exception as error:  # noqa: BLE001
            del turn.told[told:], turn.wanted[wanted:]
            turn.kept.clear()
            turn.kept.update(kept)
            turn.complain(f"the loop {loop} can't be gone on with: {type(error).__name__}: {error}")
            self._log.failure(f"could not go on with the loop {loop}", error)

    def _addresses(self, turn: Turn, fleet: Fleet, loops: Mapping[str, Loop]) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, loop in loops.items():
            try:
                found[name] = address_of(fleet, loop)
            except BadPath as error:
                turn.complain(f"the remote of the loop {name} can't be one: {error}")
        return found

    def _attend(self, turn: Turn, memory: Memory, name: str, loop: Loop, address: str, sights: Iterable[Sight]) -> None:
        """Take up what was seen of a loop's branch, and whether its remote answers."""
        self._tell_standing(turn, memory, name, loop, address)
        for sight in sights:
            if sight.loop == name:
                for ping in take_up(turn, memory, name, loop, address, sight):
                    self._postman.put(turn, ping.agent, name, ping.text, loop.when, lasts=ping.lasts)

    def _tell_standing(self, turn: Turn, memory: Memory, name: str, loop: Loop, address: str) -> None:
        standing, down_since = self._looker.standing(address), memory.down_since(name)
        if standing is None:
            return
        if standing.is_down:
            turn.complain(f"the remote of the loop {name} does not answer: {standing.failure}")
            if down_since is None:
                memory.keep_down_since(name, turn.now.timestamp())
                turn.tell(RemoteUnreachable(loop=name, remote=shown_remote(loop), reason=standing.failure))
        elif down_since is not None and standing.answered_at and not standing.failure:
            memory.keep_down_since(name, None)
            away_s = max(0.0, turn.now.timestamp() - down_since)
            turn.tell(RemoteReachable(loop=name, remote=shown_remote(loop), away_s=round(away_s, 1)))

    def _play(
        self,
        turn: Turn,
        memory: Memory,
        fleet: Fleet,
        name: str,
        loop: Loop,
        records: Mapping[str, AgentRecord],
    ) -> None:
        tell_status(turn, memory, name, loop)
        self._player.advance(turn, memory, fleet, name, loop)
        self._player.serve(turn, memory, fleet, name, loop, records)

    def _deliver(self, turn: Turn, memory: Memory, fleet: Fleet, records: Mapping[str, AgentRecord]) -> None:
        expected = {
            agent
            for name, loop in fleet.declared.loops.items()
            for agent in loop.roles.values()
            if self._player.is_expected(memory, name, agent)
        }
        for agent in self._postman.waiting(turn):
            with self._minding(turn, f"that has a message for {agent}"):
                self._postman.deliver(turn, agent, records.get(agent), is_expected=agent in expected)
