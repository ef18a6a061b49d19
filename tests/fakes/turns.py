"""Turns of a service, committed to a real journal as the runtime commits them, with a clock that the test moves.

`tests/unit/fakes/test_turns.py` runs the same service in the real loop and compares what is in the journal then.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from shared.contract.commands import VERBS, Command
from shared.contract.envelope import Event
from shared.contract.ids import new_id
from shared.contract.topics import Space, locate
from shared.contract.writer import DocumentWriter
from shared.messaging.cursors import LocatedMessage, ReceivedEvent
from shared.messaging.intake import read_command, request_of
from shared.messaging.journal import Journal
from shared.runtime.effects import EffectHandler
from shared.runtime.memory import Memory
from shared.runtime.moments import mover
from shared.runtime.turn import PendingCommand, Turn
from shared.runtime.turn_runner import read_reply, write_turn
from shared.system.clock import ClockHistory, ClockReading


class TurnDriver:
    """Runs turns of one service, and commits their output.

    A turn sees what a new process would: its memory is read from the journal each time. A turn that is not committed
    leaves no trace, and commands that it was given come again.
    """

    def __init__(self, journal: Journal, space: Space, now: datetime) -> None:
        self.journal, self.space, self.now = journal, space, now
        self.handlers: Mapping[str, EffectHandler] = {}
        """The effect handlers, which run right after a commit."""
        self.broker_answers = False
        self._writer = DocumentWriter(space, journal.service, journal.epoch)
        self._deferred: dict[str, tuple[str, datetime]] = {}
        self._clock, self._jumped_s = ClockHistory(), 0.0

    @property
    def memory(self) -> dict[str, Any]:
        """The service's committed memory."""
        return dict(self.journal.memory())

    def remember(self, **values: Any) -> None:
        """Commit memory values, as an earlier turn would have; None removes one."""
        with self.journal.transaction() as transaction:
            for key, value in values.items():
                transaction.remember(key, value)

    def jump(self, by: float) -> None:
        """Set the clock: what is remembered moves, as the runtime moves it, and the next turn hears of it."""
        wall = self.now.timestamp()
        since_boot = wall - self._clock.offset
        self.now += timedelta(seconds=by)
        self._clock = self._clock.continued(ClockReading(self._clock.boot, wall + by, since_boot), since_boot)
        memory = Memory(self.memory)
        memory.move(mover(by))
        self.remember(**memory.changes)
        with self.journal.transaction() as transaction:
            transaction.move_times(by, wall + by, wall + by)
        self._jumped_s += by

    def run(
        self,
        step: Callable[[Turn], None],
        *commands: Command,
        events: Sequence[ReceivedEvent] = (),
        hints: Sequence[LocatedMessage] = (),
        poll: bool = False,
        after: float = 0.0,
        commits: bool = True,
    ) -> Turn:
        """One whole turn, `after` so many seconds, with all that it said, before and after its checkpoints.

        Without `commits` the service is killed at its end; what it had committed by checkpoints stays.
        """
        self.now += timedelta(seconds=after)
        turn = self.begin(*commands, events=events, poll=poll)
        turn.hints, turn.broker_answers = hints, self.broker_answers
        committed: list[Turn] = []
        turn.commit = partial(self._checkpoint, committed)
        step(turn)
        if commits:
            self.commit(turn)
        for earlier in reversed(committed):
            _prepend(turn, earlier)
        return turn

    def begin(self, *commands: Command, events: Sequence[ReceivedEvent] = (), poll: bool = False) -> Turn:
        """A turn with these events and commands, and with every open command."""
        now = self.now.timestamp()
        named = [each.model_copy(update={"id": each.id or new_id()}) for each in commands]
        self.journal.requests.accept([request_of(self.space, each, now) for each in named])
        turn = Turn(self.journal.service, self.now, poll, list(events), [], Memory(self.memory))
        turn.clock, turn.jumped_s = self._clock, self._jumped_s
        turn.read_reply = partial(read_reply, self.journal)
        turn.answered_after = lambda agent, asked: self.journal.requests.answered_after(agent, asked, now)
        for request in self.journal.requests.open():
            pending = PendingCommand(request, read_command(VERBS[request.verb], request.payload))
            (turn.late_commands if now > request.expires else turn.commands).append(pending)
        return turn

    def commit(self, turn: Turn) -> None:
        """Commit the output of a turn in one transaction."""
        _refuse_late(turn)
        self._write(turn)
        self._jumped_s = 0.0

    def _checkpoint(self, committed: list[Turn], turn: Turn) -> None:
        """Commit, and leave the turn empty, as the runtime does; keep aside what it had said."""
        self._write(turn)
        turn.memory.committed()
        committed.append(copy(turn))
        turn.events, turn.emitted, turn.states, turn.cleared, turn.outgoing, turn.effects = [], [], [], [], [], []
        turn.replied = turn.replied | turn.replies.keys()
        turn.replies, turn.deferred = {}, {}

    def _write(self, turn: Turn) -> None:
        assert not turn.replied & turn.replies.keys(), "one command, one final answer"
        turn.deferred = {
            key: (request, reply, until)
            for key, (request, reply, until) in turn.deferred.items()
            if key not in turn.replies and self._deferred.get(key) != (reply.said, until)
        }
        read = [received.envelope for received in turn.events]
        moved = {(each.source, each.epoch): each.seq for each in read}
        write_turn(self.journal, self._writer, turn, moved, turn.deferred, turn.now.timestamp())
        self._deferred |= {key: (reply.said, until) for key, (_, reply, until) in turn.deferred.items()}
        for effect in turn.effects:
            self.handlers[effect.kind].run(effect.payload)
            with self.journal.transaction() as transaction:
                transaction.remove_effect(effect)


def received(writer: DocumentWriter, event: Event, *, seq: int, time: datetime) -> ReceivedEvent:
    """An event of another service: written, and read back."""
    topic, payload = writer.event(event, seq=seq, time=time, cause=None)
    located = locate(topic, writer.space.prefix)
    assert located is not None
    host, row, _ = located
    return ReceivedEvent(host, row, row.read(payload))


def _prepend(turn: Turn, earlier: Turn) -> None:
    turn.events, turn.emitted = [*earlier.events, *turn.events], [*earlier.emitted, *turn.emitted]
    turn.states, turn.cleared = [*earlier.states, *turn.states], [*earlier.cleared, *turn.cleared]
    turn.outgoing, turn.effects = [*earlier.outgoing, *turn.outgoing], [*earlier.effects, *turn.effects]
    turn.replies, turn.deferred = {**earlier.replies, **turn.replies}, {**earlier.deferred, **turn.deferred}


def _refuse_late(turn: Turn) -> None:
    taken_up = {pending.request.id for pending in turn.commands}
    for pending in turn.late_commands:
        if pending.request.id not in taken_up | turn.replied | turn.replies.keys():
            turn.reply(pending, "it waited too long for its owner", code="expired")
