"""One turn of a service: what it is given to decide from, and what it wants published and remembered.

Nothing that a service says in a turn leaves the process before all of it is in the journal, in one transaction together
with its cursors. A turn that fails leaves no trace, and comes again. A turn that must remember what it is about to do
commits in between: `checkpoint`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shared.contract.commands import Command, Reply
from shared.contract.envelope import Data, Event
from shared.contract.ids import new_id
from shared.contract.topics import Topic
from shared.errors import Retryable, sentence_of
from shared.messaging.cursors import ReceivedEvent
from shared.messaging.journal import Effect, Request
from shared.runtime.effects import EffectResult
from shared.runtime.faults import FaultLog
from shared.runtime.memory import Memory

SPAWNER = "spawner"


@dataclass(frozen=True, slots=True)
class PendingCommand:
    """A command that waits for its answer."""

    request: Request
    command: Command


def _no_reply(_owner: str, _command: str) -> Reply | None:
    return None


def _no_commit(_turn: "Turn") -> None:
    """Where there is no journal, all of a turn is committed at its end."""


@dataclass
class Turn:
    """Given: `now`, `poll`, `events`, `commands`, `late_commands`, `effect_results`, `memory`; the rest is output."""

    service: str
    now: datetime
    poll: bool
    events: list[ReceivedEvent]
    commands: list[PendingCommand]
    memory: Memory
    late_commands: list[PendingCommand] = field(default_factory=list)
    """Commands that have waited too long. Whoever had begun one moves it to `commands`; the others are answered so."""
    effect_results: list[EffectResult] = field(default_factory=list)
    """What became of effects of earlier turns; told at least once, and gone after a checkpoint."""
    emitted: list[tuple[Event, str | None]] = field(default_factory=list)
    states: list[Data] = field(default_factory=list)
    cleared: list[tuple[Topic, dict[str, str]]] = field(default_factory=list)
    replies: dict[str, tuple[Request, Reply]] = field(default_factory=dict)
    replied: set[str] = field(default_factory=set)
    """The commands that were answered before a checkpoint."""
    deferred: dict[str, tuple[Request, Reply, datetime]] = field(default_factory=dict)
    outgoing: list[Command] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    checkpoints: int = 0
    look_again: datetime | None = None
    coalesce_s: float = 0.0
    trouble: str = ""
    read_reply: Callable[[str, str], Reply | None] = _no_reply
    commit: Callable[["Turn"], None] = _no_commit
    faults: FaultLog = field(default_factory=FaultLog)

    # --- events and states ---

    def emit(self, event: Event, cause: str | None = None) -> None:
        """Publish what happened, and keep it in the journal."""
        self.emitted.append((event, cause))

    def publish_state(self, state: Data) -> None:
        """Publish how something is now (retained)."""
        self.states.append(state)

    def clear_state(self, row: Topic, **ids: str) -> None:
        """Clear a retained state: what it was about is gone."""
        self.cleared.append((row, ids))

    # --- commands to this service ---

    def reply(self, pending: PendingCommand, said: str, *, code: str = "ok", **result: Any) -> None:
        self._reply(pending.request, said, code, result)

    def refuse(self, request: Request, said: str, *, code: str) -> None:
        self._reply(request, said, code, {})

    def defer(self, pending: PendingCommand, said: str, until: datetime) -> None:
        """Leave a command open and say what it waits for. It is in hand now, and expires at this time, not sooner."""
        reply = self._made(pending.request, said, "waiting", {}, final=False)
        self.deferred[pending.request.id] = (pending.request, reply, until)

    def _reply(self, request: Request, said: str, code: str, result: dict[str, Any]) -> None:
        self.replies[request.id] = (request, self._made(request, said, code, result))

    def _made(self, request: Request, said: str, code: str, result: dict[str, Any], *, final: bool = True) -> Reply:
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
        """Have another service of this host do something; returns the command's id.

        It is in the journal together with everything else of this turn, so it is sent once and reaches its owner, with
        or without a broker. `reply_to` gives the answer.
        """
        command_id = command.id or new_id()
        self.outgoing.append(command.model_copy(update={"id": command_id, "by": f"{self.service}: {why}"[:200]}))
        return command_id

    def reply_to(self, command_id: str, owner: str = SPAWNER) -> Reply | None:
        """The final answer to a command that this service sent; None while there is none."""
        return self.read_reply(owner, command_id) if command_id else None

    # --- effects ---

    def perform(self, kind: str, key: str, payload: Mapping[str, Any]) -> None:
        """Have an effect of this service done after the commit, at least once; it survives a crash.

        The same key again, while the effect is not done, is the same effect.
        """
        self.effects.append(Effect(kind, key, dict(payload)))

    def checkpoint(self) -> None:
        """Commit and publish what was said so far, and go on: before an action that must not be repeated blindly.

        What `events` led to must be said by then, for the cursors move too.
        """
        self.checkpoints += 1
        self.commit(self)

    # --- the turn itself ---

    @contextmanager
    def isolated(self, subject: str) -> Iterator[None]:
        """Keep a fault about one subject (an agent, a loop) from costing the others their turn.

        What was said inside is taken back. The fault is logged once and makes the service `degraded`. What may pass by
        itself (`Retryable`) ends the turn.
        """
        before = _Savepoint(self)
        try:
            yield
        except Retryable:
            raise
        except Exception as error:  # noqa: BLE001 - whatever is odd about one subject, the others go on
            before.restore(self)
            self.degrade(f"{subject}: {sentence_of(error)}")
            self.faults.note(subject, error)
        else:
            self.faults.clear(subject)

    @contextmanager
    def answering(self, pending: PendingCommand) -> Iterator[None]:
        """Refuse a command that fails, with what went wrong: else it would come again for ever."""
        try:
            yield
        except Retryable:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            self.reply(pending, sentence_of(error), code=getattr(error, "code", "refused"))

    def coalesce(self, seconds: float) -> None:
        """After this turn, let messages gather for so long: the next turn takes them all."""
        self.coalesce_s = seconds

    def degrade(self, reason: str) -> None:
        """Go on, but say in the service's state that something is wrong. The first reason counts."""
        self.trouble = self.trouble or reason

    def look_again_at(self, when: datetime) -> None:
        """Ask for a turn at this time even when nothing comes."""
        self.look_again = when if self.look_again is None else min(self.look_again, when)

    # --- raw memory ---

    @property
    def remembered(self) -> dict[str, Any]:
        return dict(self.memory.changes)

    def recall(self, key: str) -> Any:
        return self.memory.raw(key)

    def remember(self, key: str, value: Any) -> None:
        self.memory.put_raw(key, value)


class _Savepoint:
    """What a turn had said at one moment; after a checkpoint, nothing of that is left to go back to."""

    def __init__(self, turn: Turn) -> None:
        self._checkpoints = turn.checkpoints
        self._lists = [(said, len(said)) for said in self._all(turn)]
        self._replies, self._deferred = dict(turn.replies), dict(turn.deferred)
        self._changes = dict(turn.memory.changes)

    def restore(self, turn: Turn) -> None:
        same = turn.checkpoints == self._checkpoints
        for said, length in self._lists:
            del said[length if same else 0 :]
        turn.replies = self._replies if same else {}
        turn.deferred = self._deferred if same else {}
        turn.memory.restore(self._changes if same else {})

    def _all(self, turn: Turn) -> "list[list[Any]]":
        return [turn.emitted, turn.states, turn.cleared, turn.outgoing, turn.effects]
