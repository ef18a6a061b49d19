"""Another service of the host, as others see it: by its rows in the journal."""

from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from shared.contract.commands import Command, Reply
from shared.contract.envelope import Event
from shared.contract.topics import Space
from shared.contract.writer import DocumentWriter
from shared.messaging.intake import request_of
from shared.messaging.journal import Journal, Request


class Peer:
    """Emits, answers, remembers and reads what the test wants. Close it at the end."""

    def __init__(self, path: Path, service: str, space: Space) -> None:
        self.journal = Journal(path, service)
        self.space = space
        self.writer = DocumentWriter(space, service, self.journal.epoch)

    def close(self) -> None:
        self.journal.close()

    def emit(self, *events: Event, time: datetime) -> None:
        def write(event: Event, seq: int) -> tuple[str, bytes]:
            return self.writer.event(event, seq=seq, time=time, cause=None)

        with self.journal.transaction() as transaction:
            transaction.append([partial(write, event) for event in events], time.timestamp())

    def is_asked(self, command: Command, time: datetime) -> None:
        self.journal.requests.accept([request_of(self.space, command, time.timestamp())])

    def open(self) -> list[Request]:
        """Its open requests."""
        return self.journal.requests.open()

    def answer(
        self, to: Command | Request, code: str = "ok", said: str = "done", *, time: datetime, **result: Any
    ) -> None:
        known = {"id": str(to.id), "verb": to.verb, "ok": code == "ok", "said": said, "code": code}
        reply = Reply(**known, result=result, by=self.journal.service, time=time)
        with self.journal.transaction() as transaction:
            transaction.answer(str(to.id), reply.model_dump_json().encode(), time.timestamp())

    def remember(self, key: str, value: Any) -> None:
        with self.journal.transaction() as transaction:
            transaction.remember(key, value)

    def has_read(self, other: "Peer") -> None:
        """It has read all events of another service."""
        with self.journal.transaction() as transaction:
            transaction.move_cursor(other.writer.source, self.journal.epoch, other.journal.last_seq())
