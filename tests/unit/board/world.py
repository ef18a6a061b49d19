"""A board with a real journal and fleet file, and the other services as the test plays them."""

import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from registry import AgentRecord
from registry.memory import RECORDS
from services.board.feed import BoardFeed
from services.board.page_commands import PageCommands
from services.board.service import Board
from shared.contract.commands import Command, Comment, Reply
from shared.contract.envelope import Data, Event
from shared.contract.events.board import BoardHeartbeat, CardEvent
from shared.contract.states import CardState
from shared.contract.topics import AGENT_STATE, locate, row_for
from shared.contract.writer import DocumentWriter
from shared.messaging.cursors import LocatedMessage, ReceivedEvent
from shared.messaging.journal import Journal
from shared.runtime.turn import Turn
from shared.system.log import Log
from tests.fakes.fleets import WrittenFleet
from tests.fakes.peers import Peer
from tests.fakes.records import START
from tests.fakes.turns import TurnDriver, received
from tests.unit.board.samples import AGENTS, LOOPS

OTHERS = ("spawner", "registrar", "reconciler", "monitor", "handoff")


class BoardWorld:
    def __init__(self, directory: Path, agents: Mapping[str, Any] = AGENTS, **more: Any) -> None:
        self.written = WrittenFleet(directory, agents, **{"loops": LOOPS, **more})
        self.fleet_file = self.written.file
        self.fleet = self.fleet_file.fleet
        self.journal = Journal(self.fleet.journal, "board")
        self.peers = {name: Peer(self.fleet.journal, name, self.fleet.space) for name in OTHERS}
        self.turns = TurnDriver(self.journal, self.fleet.space, START)
        self.log = io.StringIO()
        self.feed = BoardFeed()
        self.nudges: list[None] = []
        self.commands = PageCommands(self.fleet.journal, lambda: self.nudges.append(None), Log("board", self.log))
        self._told: Counter[str] = Counter()
        self.replies: dict[str, Reply] = {}
        self.shown: dict[str, CardState] = {}
        """The cards as the broker has them."""
        self.restart()

    def restart(self) -> None:
        """The board, as a new process."""
        self.feed = BoardFeed()
        self.board = Board(self.written.opened(), self.journal, self.feed, self.commands)

    def close(self) -> None:
        self.journal.close()
        for peer in self.peers.values():
            peer.close()

    def card(self, agent: str = "builder") -> CardState:
        """The card as a new connection is shown it."""
        return cards(self.board.states())[agent]

    @property
    def now(self) -> datetime:
        return self.turns.now

    # --- what others do ---

    def declare(self, agents: Mapping[str, Any], **more: Any) -> None:
        self.written.declare(agents, **{"loops": {}, **more})

    def records(self, **records: AgentRecord | None) -> None:
        """As the registrar keeps them in the journal; nobody tells the board."""
        for agent, record in records.items():
            self.peers["registrar"].remember(RECORDS.key(agent), RECORDS.dump(record) if record else None)

    def state(self, agent: str, record: AgentRecord | None) -> LocatedMessage:
        """The record as the registrar publishes it."""
        if record is None:
            return located(AGENT_STATE.name(self.fleet.space, agent=agent), b"")
        writer = DocumentWriter(self.fleet.space, "registrar", self.journal.epoch)
        return located(*writer.state(record.state(agent), seq=1, time=self.now))

    def told(self, event: Event, at: datetime | None = None) -> ReceivedEvent:
        """An event of the service that writes it, after all that it has told before."""
        service = row_for(event).writers[0]
        self._told[service] += 1
        writer = DocumentWriter(self.fleet.space, service, self.journal.epoch)
        return received(writer, event, seq=self._told[service], time=at or self.now)

    # --- turns ---

    def turn(
        self,
        *commands: Command,
        events: Iterable[Event | ReceivedEvent] = (),
        hints: Sequence[LocatedMessage] = (),
        poll: bool = False,
        after: float = 0.0,
        commits: bool = True,
    ) -> Turn:
        self.turns.now += timedelta(seconds=after)
        came = [self.told(each) if isinstance(each, Event) else each for each in events]
        turn = self.turns.run(self.board.step, *commands, events=came, hints=hints, poll=poll, commits=commits)
        if commits:
            self.replies |= {key: reply for key, (_, reply) in turn.replies.items()}
            self.shown |= cards(turn.states)
            for _, ids in turn.cleared:
                self.shown.pop(ids["card"], None)
        return turn

    def says(self, text: str, agent: str = "builder", by: str | None = "ada", **more: Any) -> tuple[Turn, Reply]:
        """A person comments on a card."""
        command = Comment(id=f"c{len(self.replies)}", agent=agent, text=text, by=by)
        turn = self.turn(command, **more)
        return turn, self.replies[str(command.id)]


def located(topic: str, payload: bytes) -> LocatedMessage:
    found = locate(topic, "muster")
    assert found is not None
    return LocatedMessage(*found[:2], topic, payload)


def cards(states: Iterable[Data]) -> dict[str, CardState]:
    return {each.card: each for each in states if isinstance(each, CardState)}


def comments(turn: Turn) -> list[CardEvent]:
    return [event for event, _ in turn.emitted if isinstance(event, CardEvent)]


def heartbeats(turn: Turn) -> list[BoardHeartbeat]:
    return [event for event, _ in turn.emitted if isinstance(event, BoardHeartbeat)]
