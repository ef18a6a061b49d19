"""One turn of a service: what it is given to decide from, and what it wants said and kept.

Nothing a service says in a turn leaves the process before all of it is in the journal, in one transaction together
with its place in what it read. A turn that fails leaves no trace, and comes again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shared.commands import Command, Reply
from shared.events import Data, Event
from shared.following import Heard
from shared.ids import new_id
from shared.journal import Request
from shared.topics import Topic


@dataclass(frozen=True, slots=True)
class Asked:
    """A command that waits for its answer."""

    request: Request
    command: Command


@dataclass
class Turn:
    """Given: `now`, `heard`, `asked`, `late`, `poll`, `memory`. The rest is filled by the methods."""

    service: str
    now: datetime
    poll: bool
    heard: list[Heard]
    asked: list[Asked]
    memory: Mapping[str, Any]
    late: list[Asked] = field(default_factory=list)
    """Commands that have waited too long. Whoever had begun one moves it to `asked`; the others are answered so."""
    told: list[tuple[Event, str | None]] = field(default_factory=list)
    shown: list[Data] = field(default_factory=list)
    withdrawn: list[tuple[Topic, dict[str, str]]] = field(default_factory=list)
    answers: dict[str, tuple[Request, Reply]] = field(default_factory=dict)
    held: dict[str, tuple[Request, Reply, datetime]] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)
    wanted: list[Command] = field(default_factory=list)
    look_again: datetime | None = None
    gathers_s: float = 0.0
    complaint: str = ""

    def tell(self, event: Event, cause: str | None = None) -> None:
        """Say what happened, for ever."""
        self.told.append((event, cause))

    def show(self, state: Data) -> None:
        """Say how something is now (retained)."""
        self.shown.append(state)

    def withdraw(self, row: Topic, **ids: str) -> None:
        """Take back a retained state: what it spoke of is gone."""
        self.withdrawn.append((row, ids))

    def answer(self, asked: Asked, said: str, *, code: str = "ok", **result: Any) -> None:
        self._answer(asked.request, said, code, result)

    def hold(self, asked: Asked, said: str, until: datetime) -> None:
        """Leave a command open and say what it waits for. It is in hand now, and expires at this time, not sooner."""
        reply = self._reply(asked.request, said, "waiting", {}, final=False)
        self.held[asked.request.id] = (asked.request, reply, until)

    def refuse(self, request: Request, said: str, *, code: str) -> None:
        self._answer(request, said, code, {})

    def _answer(self, request: Request, said: str, code: str, result: dict[str, Any]) -> None:
        self.answers[request.id] = (request, self._reply(request, said, code, result))

    def _reply(self, request: Request, said: str, code: str, result: dict[str, Any], *, final: bool = True) -> Reply:
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

    def recall(self, key: str) -> Any:
        """What was kept under a key, in this turn or an earlier one; None when there is nothing."""
        return self.kept[key] if key in self.kept else self.memory.get(key)

    def remember(self, key: str, value: Any) -> None:
        """Keep a JSON value over restarts; None forgets it."""
        self.kept[key] = value

    def ask(self, command: Command, why: str) -> str:
        """Have another service of this host do something; answers the command's id.

        It is in the journal together with all else of this turn, so it is asked once and reaches its owner, broker or
        not; the owner's answer is found in the journal by the id.
        """
        command_id = command.id or new_id()
        self.wanted.append(command.model_copy(update={"id": command_id, "by": f"{self.service}: {why}"[:200]}))
        return command_id

    def gather(self, seconds: float) -> None:
        """After this turn, let what comes gather for so long: the next one takes it all at once."""
        self.gathers_s = seconds

    def complain(self, reason: str) -> None:
        """Go on, but say in our state that something is wrong. What is said first counts."""
        self.complaint = self.complaint or reason

    def again_at(self, when: datetime) -> None:
        """Give me a turn at this time even when nothing comes."""
        self.look_again = when if self.look_again is None else min(self.look_again, when)
