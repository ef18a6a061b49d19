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
from services.handoff.playing import Player, expected
from services.handoff.postman import Postman
from services.handoff.remotes import address_of, targets, trails
from services.handoff.replies import Replies
from services.handoff.round import Round
from services.handoff.taking_up import take_up, tell_status
from shared.errors import MusterError
from shared.events import Data, RemoteReachable, RemoteUnreachable
from shared.fleet import Fleet, FleetFile
from shared.fleet.fleet import BadPath
from shared.fleet.loops import shown_remote
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
        replies = Replies(journal)
        self._postman = Postman(replies)
        self._player = Player(replies, self._postman)
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
        rounds = {name: Round(turn, memory, fleet, name, loop) for name, loop in fleet.declared.loops.items()}
        addresses = self._addresses(rounds)
        watched = {name: rounds[name] for name in addresses}
        sights = self._looker.take()
        records = self._records.read(turn) if watched else {}
        for name, it in watched.items():
            with self._minding(turn, name):
                self._attend(it, addresses[name], [sight for sight in sights if sight.loop == name])
        for asked in turn.asked:
            with self._minding(turn, "that was asked for"):
                self._desk.answer(rounds, fleet, turn, asked, addresses)
            if asked.request.id not in turn.answers:
                turn.answer(asked, f"{asked.request.verb} failed; the log of {self.name} says why", code="refused")
        for name, it in watched.items():
            with self._minding(turn, name):
                tell_status(it)
                self._player.advance(it)
                self._player.serve(it, records)
        self._deliver(turn, rounds, records)
        self._watch(fleet, watched, addresses)

    def _watch(self, fleet: Fleet, watched: Mapping[str, Round], addresses: Mapping[str, str]) -> None:
        """Say what is wanted of which remote from now on."""
        loops = {name: it.loop for name, it in watched.items()}
        seen = {name: found for name, it in watched.items() if (found := it.memory.seen(name)) is not None}
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

    def _addresses(self, rounds: Mapping[str, Round]) -> dict[str, str]:
        """The remotes of the loops that are to be watched."""
        found: dict[str, str] = {}
        for name, it in rounds.items():
            try:
                found |= {name: address_of(it.fleet, it.loop)} if it.loop.enabled else {}
            except BadPath as error:
                it.turn.complain(f"the remote of the loop {name} can't be one: {error}")
        return found

    def _attend(self, it: Round, address: str, sights: Iterable[Sight]) -> None:
        """Take up what was seen of a loop's branch, and whether its remote answers."""
        self._tell_standing(it, address)
        for sight in sights:
            for ping in take_up(it, address, sight):
                self._postman.put(it.turn, ping.agent, it.name, ping.text, it.loop.when, lasts=ping.lasts)

    def _tell_standing(self, it: Round, address: str) -> None:
        standing, down_since = self._looker.standing(address), it.memory.down_since(it.name)
        if standing is None:
            return
        remote = shown_remote(it.loop)
        if standing.is_down:
            it.turn.complain(f"the remote of the loop {it.name} does not answer: {standing.failure}")
            if down_since is None:
                it.memory.keep_down_since(it.name, it.now)
                it.turn.tell(RemoteUnreachable(loop=it.name, remote=remote, reason=standing.failure))
        elif down_since is not None and standing.answered_at and not standing.failure:
            it.memory.keep_down_since(it.name, None)
            away_s = round(max(0.0, it.now - down_since), 1)
            it.turn.tell(RemoteReachable(loop=it.name, remote=remote, away_s=away_s))

    def _deliver(self, turn: Turn, rounds: Mapping[str, Round], records: Mapping[str, AgentRecord]) -> None:
        awaited = {agent for it in rounds.values() for agent in expected(it)}
        for agent in self._postman.waiting(turn):
            with self._minding(turn, f"that has a message for {agent}"):
                self._postman.deliver(turn, agent, records.get(agent), is_expected=agent in awaited)
