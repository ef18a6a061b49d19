"""One turn of a service: its input, and its output for the journal, the broker and other services.

`shared/runtime/turn_runner.py` makes a turn, gives it to the service's `step`, writes the output into the journal in
one transaction together with the cursors, and only then publishes it. A turn that raises leaves no trace, and its input
comes again. `checkpoint` commits in the middle of a turn.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shared.contract.commands import Command, Reply
from shared.contract.envelope import Data, Event
from shared.contract.ids import new_id
from shared.contract.topics import Topic
from shared.errors import MusterError, Retryable, sentence_of
from shared.messaging.cursors import LocatedMessage, ReceivedEvent
from shared.messaging.journal import AnsweredRequest, Effect, Request
from shared.runtime.effects import EffectResult
from shared.runtime.memory import Memory
from shared.system.clock import ClockHistory
from shared.system.log import Log

SPAWNER = "spawner"


@dataclass(frozen=True, slots=True)
class PendingCommand:
    """An open command: the service must reply to it, or defer it."""

    request: Request
    command: Command


class FaultLog:
    """Logs faults about single subjects: each when it begins or changes, not in every turn."""

    def __init__(self, log: Log | None = None) -> None:
        self._log = log
        self._known: dict[str, str] = {}

    def note(self, subject: str, error: Exception) -> None:
        reason = sentence_of(error)
        if self._known.get(subject) == reason:
            return
        self._known[subject] = reason
        if self._log is None:
            return
        if isinstance(error, MusterError):
            self._log.error("passed over a subject in this turn", subject=subject, reason=reason)
        else:
            self._log.failure("passed over a subject in this turn", error, subject=subject)

    def clear(self, subject: str) -> None:
        self._known.pop(subject, None)


@dataclass
class Turn:
    """The input and output of one call of `step`.

    A service reads the input fields and calls the methods, in any order. What they do takes effect with the commit.
    """

    # --- input ---

    service: str
    now: datetime
    """The time of this turn; decisions use no other clock."""
    poll: bool
    """Whether the safety poll is due: look at everything, not only at what events point to."""
    events: list[ReceivedEvent]
    """New events of the topics that the service follows: each once, in order."""
    commands: list[PendingCommand]
    """All open commands, oldest first. Each comes in every turn until it has its reply."""
    memory: Memory
    """The service's records, which outlive the process."""
    late_commands: list[PendingCommand] = field(default_factory=list)
    """Open commands past their expiry. The service moves those that it has begun to `commands`; the runtime answers the
    others with `expired`."""
    effect_results: list[EffectResult] = field(default_factory=list)
    """Results of effects of earlier turns, each at least once. Empty after a checkpoint."""
    hints: Sequence[LocatedMessage] = ()
    """What came on the topics that the service takes hints from, as it came. Some may be lost, repeated or late."""
    broker_answers: bool = False
    clock: ClockHistory = field(default_factory=ClockHistory)
    jumped_s: float = 0.0
    """By how much the clock was set since the turn before. What is remembered as a `Moment` has moved with it."""

    # --- output, until the commit ---

    emitted: list[tuple[Event, str | None]] = field(default_factory=list)
    states: list[Data] = field(default_factory=list)
    cleared: list[tuple[Topic, dict[str, str]]] = field(default_factory=list)
    replies: dict[str, tuple[Request, Reply]] = field(default_factory=dict)
    replied: set[str] = field(default_factory=set)
    """The ids of the commands that were answered before a checkpoint."""
    deferred: dict[str, tuple[Request, Reply, datetime]] = field(default_factory=dict)
    outgoing: list[Command] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    checkpoints: int = 0
    look_again: datetime | None = None
    coalesce_s: float = 0.0
    trouble: str = ""
    notices: list[str] = field(default_factory=list)

    # --- from the runtime ---

    answered_after: Callable[[str, float], Sequence[AnsweredRequest]] = lambda _agent, _asked: ()
    """The answered commands about an agent's session (`*`: any) that were asked for after a time, newest first."""
    read_reply: Callable[[str, str], Reply | None] = lambda _owner, _command_id: None
    commit: Callable[["Turn"], None] = lambda _turn: None
    faults: FaultLog = field(default_factory=FaultLog)

    # --- time ---

    @property
    def steady(self) -> float:
        """Seconds of a clock that nobody sets, for what is remembered in this process only."""
        return self.now.timestamp() - self.clock.offset

    def corrected(self, moment: float) -> float:
        """A moment of the past that others stamped (a file, tmux), on the present clock."""
        return self.clock.corrected(moment, self.now.timestamp())

    # --- events and states ---

    def emit(self, event: Event, cause: str | None = None) -> None:
        """Publish an event, once and in order. `cause` is the id of the event or command that led to it."""
        self.emitted.append((event, cause))

    def publish_state(self, state: Data) -> None:
        """Publish a retained state. It is not in the journal: `Service.states` must give it again after a reconnect."""
        self.states.append(state)

    def clear_state(self, row: Topic, **ids: str) -> None:
        """Clear a retained state whose subject is gone."""
        self.cleared.append((row, ids))

    # --- commands to this service ---

    def reply(self, pending: PendingCommand, said: str, *, code: str = "ok", **result: Any) -> None:
        """End a command with its final reply. Any code but `ok` is a failure."""
        self._reply(pending.request, said, code, result)

    def refuse(self, request: Request, said: str, *, code: str) -> None:
        """End a command that could not be read."""
        self._reply(request, said, code, {})

    def defer(self, pending: PendingCommand, said: str, until: datetime) -> None:
        """Leave a command open and say what it waits for; `until` becomes its expiry. Repeats are published once."""
        reply = self._build_reply(pending.request, said, "waiting", {}, final=False)
        self.deferred[pending.request.id] = (pending.request, reply, until)

    def _reply(self, request: Request, said: str, code: str, result: dict[str, Any]) -> None:
        self.replies[request.id] = (request, self._build_reply(request, said, code, result))

    def _build_reply(
        self, request: Request, said: str, code: str, result: dict[str, Any], *, final: bool = True
    ) -> Reply:
        return Reply(
            id=request.id,
            verb=request.verb,
            ok=code == "ok",
            said=said,
            code=code,
            final=final,
            result=result,
            by=self.service,
            time=self.now,
        )

    # --- commands to other services ---

    def send_command(self, command: Command, why: str) -> str:
        """Send a command to another service of this host; returns the command's id.

        It is stored with everything else of this turn, so it is sent once and reaches its owner, with or without a
        broker. A command with an `id` acts once, however often it is sent. `reply_for` gives the answer.
        """
        command_id = command.id or new_id()
        by = f"{self.service}: {why}"[:200]
        made = command.made or self.now
        self.outgoing.append(command.model_copy(update={"id": command_id, "by": by, "made": made}))
        return command_id

    def reply_for(self, command_id: str, owner: str = SPAWNER) -> Reply | None:
        """The final reply to a command that this service sent; None while there is none."""
        return self.read_reply(owner, command_id) if command_id else None

    # --- effects ---

    def perform(self, kind: str, key: str, payload: Mapping[str, Any]) -> None:
        """Run the service's handler for `kind` after the commit, at least once, also after a crash.

        The result comes in `effect_results` of a later turn. The same key, while it is not done, is the same effect.
        """
        self.effects.append(Effect(kind, key, dict(payload)))

    def checkpoint(self) -> None:
        """Commit and publish the output so far, then continue: before an action that must not be repeated blindly.

        The cursors move too, so `events` must be handled by then.
        """
        self.checkpoints += 1
        self.commit(self)

    # --- the turn itself ---

    @contextmanager
    def isolated(self, subject: str) -> Iterator[None]:
        """Keep a fault about one subject (an agent, a loop) from ending the turn of the others.

        The output of the block is undone, the fault is logged once, and the service becomes `degraded`. A `Retryable`
        still ends the turn.
        """
        savepoint = _Savepoint(self)
        try:
            yield
        except Retryable:
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one subject, the others go on
            savepoint.restore(self)
            self.degrade(f"{subject}: {sentence_of(error)}")
            self.faults.note(subject, error)
        else:
            self.faults.clear(subject)

    @contextmanager
    def answering(self, pending: PendingCommand) -> Iterator[None]:
        """Answer a command whose handling fails with the error: else it would come again forever."""
        try:
            yield
        except Retryable:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            self.reply(pending, sentence_of(error), code=getattr(error, "code", "refused"))

    def coalesce(self, seconds: float) -> None:
        """Collect messages for this long before the next turn, which then takes them all."""
        self.coalesce_s = seconds

    def degrade(self, reason: str) -> None:
        """Show the service as `degraded` until a turn does not. The first reason of a turn counts."""
        self.trouble = self.trouble or reason

    def notice(self, said: str) -> None:
        """Show people for a minute what happened: the service is `degraded` meanwhile."""
        self.notices.append(said)

    def look_again_at(self, when: datetime) -> None:
        """Ask for a turn at this time. The earliest request of a turn counts; it holds only until the next turn."""
        self.look_again = when if self.look_again is None else min(self.look_again, when)


class _Savepoint:
    """The output of a turn at one moment. After a checkpoint `restore` drops only what is not committed."""

    def __init__(self, turn: Turn) -> None:
        self._checkpoints = turn.checkpoints
        lists: list[list[Any]] = [turn.emitted, turn.states, turn.cleared, turn.outgoing, turn.effects]
        self._lengths = [(output, len(output)) for output in lists]
        self._replies, self._deferred = dict(turn.replies), dict(turn.deferred)
        self._changes = dict(turn.memory.changes)

    def restore(self, turn: Turn) -> None:
        same = turn.checkpoints == self._checkpoints
        for output, length in self._lengths:
            del output[length if same else 0 :]
        turn.replies = self._replies if same else {}
        turn.deferred = self._deferred if same else {}
        turn.memory.restore(self._changes if same else {})
