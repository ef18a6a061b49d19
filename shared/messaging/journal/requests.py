"""Commands in the journal: asked, under way, answered. The same id acts once and is answered again.

A command is here before its owner carries it out, so it survives the owner; the CLI writes it here itself when no
broker answers. Others look here to learn that somebody is just busy with an agent.
"""

import sqlite3
from dataclasses import dataclass, field
from typing import Any

from shared.contract.commands import Command
from shared.messaging.journal.database import Database


@dataclass(frozen=True, slots=True)
class Request:
    """A command on its way to its owner."""

    id: str
    verb: str
    payload: bytes
    reply_to: str
    asked: float
    expires: float
    agent: str | None = None
    delivery: str | None = None
    command: Command | None = field(default=None, compare=False, repr=False)
    """The same as it was read from the payload, where that was just done; not stored."""


_COLUMNS = "id, verb, payload, reply_to, asked, expires, agent, delivery"


def put(connection: sqlite3.Connection, requests: list[Request], owner: str) -> None:
    connection.executemany(
        f"INSERT OR IGNORE INTO request (owner, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        [(owner, r.id, r.verb, r.payload, r.reply_to, r.asked, r.expires, r.agent, r.delivery) for r in requests],
    )


class Requests:
    def __init__(self, database: Database, service: str) -> None:
        self._database = database
        self._service = service

    def accept(self, requests: list[Request], owner: str | None = None) -> None:
        """Put commands in line for their owner. One that is there already, by id, stays as it is."""
        with self._database.writing() as connection:
            put(connection, requests, owner or self._service)

    def open(self) -> list[Request]:
        """What this service was asked and has not answered, oldest first."""
        return self._select("owner = ? AND answer IS NULL ORDER BY asked, id", self._service)

    def waiting(self) -> bool:
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT 1 FROM request WHERE owner = ? AND answer IS NULL", (self._service,)
            ).fetchone()
        return row is not None

    def answer_to(self, request_id: str, owner: str | None = None) -> bytes | None:
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT answer FROM request WHERE owner = ? AND id = ?", (owner or self._service, request_id)
            ).fetchone()
        return row[0] if row else None

    def waits_for(self, request_id: str, owner: str | None = None) -> bytes | None:
        """The newest reply to a request that is still under way."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT waits FROM request WHERE owner = ? AND id = ?", (owner or self._service, request_id)
            ).fetchone()
        return row[0] if row else None

    def answers_since(self, at: float) -> list[tuple[str, bytes]]:
        """Topic and payload of the replies given since a time: a broker that died may have swallowed them."""
        with self._database.reading() as connection:
            return connection.execute(
                "SELECT reply_to, answer FROM request WHERE owner = ? AND answered >= ? ORDER BY answered",
                (self._service, at),
            ).fetchall()

    def redelivered(self, delivery: str, since: float) -> bool:
        """Whether a command without an id came before, and the broker only brings it again."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT 1 FROM request WHERE owner = ? AND delivery = ? AND asked >= ?",
                (self._service, delivery, since),
            ).fetchone()
        return row is not None

    def open_about(self, agent: str, now: float) -> bool:
        """Whether somebody is busy with this agent: a command that has not expired is not answered yet."""
        return self._any_about(agent, "answer IS NULL AND expires > ?", now)

    def answered_about(self, agent: str, since: float, until: float) -> bool:
        """Whether somebody was busy with this agent and said so at that time."""
        return self._any_about(agent, "answered BETWEEN ? AND ?", since, until)

    def _any_about(self, agent: str, where: str, *values: float) -> bool:
        with self._database.reading() as connection:
            query = f"SELECT 1 FROM request WHERE agent IN (?, '*') AND {where} LIMIT 1"  # noqa: S608
            return connection.execute(query, (agent, *values)).fetchone() is not None

    def _select(self, where: str, *values: Any) -> list[Request]:
        with self._database.reading() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM request WHERE {where}", values)  # noqa: S608
            return [Request(*row) for row in rows]
