"""Commands in the journal, from their arrival to their reply. The same id acts once and gets the same reply again.

A command is stored before its owner carries it out, so it survives the owner. Without a broker, the CLI and other
services store it here themselves. Observers learn here that a command about an agent is open.
"""

import sqlite3
from dataclasses import dataclass, field
from typing import Any

from shared.contract.commands import Command
from shared.messaging.journal.database import Database


@dataclass(frozen=True, slots=True)
class Request:
    """A command to one service. Times are epoch seconds."""

    id: str
    verb: str
    payload: bytes
    reply_to: str
    asked: float
    expires: float
    agent: str | None = None
    delivery: str | None = None
    command: Command | None = field(default=None, compare=False, repr=False)
    """The parsed payload, right after the intake; not stored."""


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """What was asked for, when, and the final reply."""

    verb: str
    payload: bytes
    asked: float
    answer: bytes


_COLUMNS = "id, verb, payload, reply_to, asked, expires, agent, delivery"


def insert_requests(connection: sqlite3.Connection, requests: list[Request], owner: str) -> None:
    connection.executemany(
        f"INSERT OR IGNORE INTO request (owner, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        [(owner, r.id, r.verb, r.payload, r.reply_to, r.asked, r.expires, r.agent, r.delivery) for r in requests],
    )


class Requests:
    """The requests of one service, and those that it sends: `owner` is the service that carries one out."""

    def __init__(self, database: Database, service: str) -> None:
        self._database = database
        self._service = service

    def accept(self, requests: list[Request], owner: str | None = None) -> None:
        """Store commands. One that is stored already, by id, stays as it is."""
        with self._database.writing() as connection:
            insert_requests(connection, requests, owner or self._service)

    def open(self) -> list[Request]:
        """The requests of this service without a final reply, oldest first."""
        with self._database.reading() as connection:
            query = f"SELECT {_COLUMNS} FROM request WHERE owner = ? AND answer IS NULL ORDER BY asked, id"  # noqa: S608
            return [Request(*row) for row in connection.execute(query, (self._service,))]

    def is_stored(self, request_id: str, owner: str) -> bool:
        """Whether a service has this request, answered or not."""
        return self._first("SELECT 1 FROM request WHERE owner = ? AND id = ?", owner, request_id) is not None

    def waiting(self) -> bool:
        """Whether this service has open requests."""
        return self._first("SELECT 1 FROM request WHERE owner = ? AND answer IS NULL", self._service) is not None

    def answer_to(self, request_id: str, owner: str | None = None) -> bytes | None:
        """The final reply; None while there is none."""
        query = "SELECT answer FROM request WHERE owner = ? AND id = ?"
        row = self._first(query, owner or self._service, request_id)
        return row[0] if row else None

    def waits_for(self, request_id: str, owner: str | None = None) -> bytes | None:
        """The newest reply that says what a request waits for."""
        query = "SELECT waits FROM request WHERE owner = ? AND id = ?"
        row = self._first(query, owner or self._service, request_id)
        return row[0] if row else None

    def answers_since(self, at: float) -> list[tuple[str, bytes]]:
        """Topic and payload of the final replies since a time: a broker that died may have lost them."""
        with self._database.reading() as connection:
            return connection.execute(
                "SELECT reply_to, answer FROM request WHERE owner = ? AND answered >= ? ORDER BY answered",
                (self._service, at),
            ).fetchall()

    def redelivered(self, delivery: str, since: float) -> bool:
        """Whether the same delivery of a command without an id was stored before."""
        query = "SELECT 1 FROM request WHERE owner = ? AND delivery = ? AND asked >= ?"
        return self._first(query, self._service, delivery, since) is not None

    def open_about(self, agent: str, now: float) -> bool:
        """Whether a command that changes this agent's session is open and has not expired, at any service."""
        query = "SELECT 1 FROM request WHERE agent IN (?, '*') AND answer IS NULL AND expires > ? LIMIT 1"
        return self._first(query, agent, now) is not None

    def answered_about(self, agent: str, since: float, until: float) -> bool:
        """Whether such a command was answered in this interval."""
        query = "SELECT 1 FROM request WHERE agent IN (?, '*') AND answered BETWEEN ? AND ? LIMIT 1"
        return self._first(query, agent, since, until) is not None

    def answered_after(self, agent: str, asked: float, until: float) -> list[AnsweredRequest]:
        """The answered requests of this service about an agent's session, or about all agents, that were asked for
        after one time and not after another, newest first. `*` stands for every agent."""
        about = "agent IS NOT NULL" if agent == "*" else "agent IN (?, '*')"
        query = (
            "SELECT verb, payload, asked, answer FROM request"  # noqa: S608
            f" WHERE {about} AND asked > ? AND asked <= ? AND owner = ? AND answer IS NOT NULL ORDER BY asked DESC"
        )
        values = (*(() if agent == "*" else (agent,)), asked, until, self._service)
        with self._database.reading() as connection:
            return [AnsweredRequest(*row) for row in connection.execute(query, values)]

    def _first(self, query: str, *values: Any) -> tuple[Any, ...] | None:
        with self._database.reading() as connection:
            row: tuple[Any, ...] | None = connection.execute(query, values).fetchone()
            return row
