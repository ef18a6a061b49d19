"""`muster status` as people and programs read it: tables, a frame for a terminal, JSON. Pure.

The time, the width and the height are given.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic_core import to_json

from registry import AgentRecord, EndedSession
from services.cli.status_filter import StatusFilter
from services.cli.tables import Column, cut, fitted
from services.cli.words import Paint, ago, plain
from shared.client.processes import BROKER, SUPERVISOR
from shared.client.snapshot import ALONE, UP, ProcessStatus, RecordSource, Snapshot
from shared.contract.states import Presence
from shared.fleet.fleet import account_of

PROCESSES = (Column("SERVICE"), Column("STATUS"), Column("PID"), Column("", least=20))
AGENTS = (
    Column("AGENT", least=16),
    Column("STATUS"),
    Column("SINCE", worth=5),
    Column("DOING", when_empty=False),
    Column("FOR", worth=6, when_empty=False),
    Column("WANTED", worth=4),
    Column("BACKEND", least=8, worth=2),
    Column("SESSION", least=12, worth=3, when_empty=False),
    Column("DRIFT", least=12, when_empty=False),
    Column("CONVERSATION", worth=1, when_empty=False),
    Column("WHY", least=20),
)
ENDED = (
    Column("ENDED"),
    Column("AGENT", least=16),
    Column("STATUS"),
    Column("RAN", worth=4),
    Column("BACKEND", least=8, worth=2),
    Column("EXIT", worth=3, when_empty=False),
    Column("CONVERSATION", worth=1, when_empty=False),
    Column("WHY", least=20),
)
SHORT_ID = 8


@dataclass(frozen=True)
class _Table:
    what: str
    lines: list[str]
    """The first is its head, or says why there is no table."""
    more: int = 0
    """How many rows were left out."""


@dataclass(frozen=True)
class _Tables:
    """The tables for a terminal with so many columns (None: as many as it takes)."""

    snapshot: Snapshot
    filters: StatusFilter
    now: datetime
    paint: Paint
    columns: int | None = None

    def all(self, at_most: int | None = None) -> list[_Table]:
        """The tables that are wanted, each with at most so many rows."""
        return [self.agents(at_most), *([self.ended(at_most)] if self.filters.ended else [])]

    def agents(self, at_most: int | None) -> _Table:
        chosen = self.filters.agents_in(self.snapshot)
        agents = chosen[:at_most]
        if not agents:
            total = len(self.snapshot.agents)
            said = f"none of the {total} agents is like that" if total else "no agents are declared"
            return _Table("agents", [said])
        records = [record for agent in agents if (record := self.snapshot.records.get(agent)) is not None]
        size = short_size(record.conversation for record in records if record.conversation)
        rows = [self._agent(agent, size) for agent in agents]
        return _Table("agents", fitted(AGENTS, rows, self.columns), len(chosen) - len(agents))

    def _agent(self, agent: str, size: int) -> Sequence[str]:
        record, paint = self.snapshot.records.get(agent), self.paint
        status = paint.status(self.snapshot.status(agent))
        if record is None:
            return (plain(agent), paint.dim(status), "-", "", "", "-", self.snapshot.backend(agent), "", "", "", "")
        elsewhere = record.session if record.is_running and record.session != agent else None
        doing = record.activity if record.is_running else None
        return (
            plain(agent),
            status,
            ago((self.now - record.since).total_seconds()),
            paint.status(doing) if doing else "",
            ago((self.now - record.activity_since).total_seconds()) if doing and record.activity_since else "",
            record.desired,
            record.backend,
            plain(elsewhere or ""),
            paint.bad(", ".join(map(plain, record.drifts))) if record.drifts else "",
            plain((record.conversation or "")[:size]),
            plain(self._why(agent, record)),
        )

    def _why(self, agent: str, record: AgentRecord) -> str:
        """The reason of its status, and what holds it: its own usage limit, or another agent's on its account."""
        reason = record.activity_reason if record.is_running and record.activity else record.reason
        if record.limit is not None:
            return f"{limit_words(record, self.now)}; {reason}"
        account = account_of(self.snapshot.fleet, agent, record.backend)
        records = self.snapshot.records.items()
        other = next((name for name, each in records if each.limit and each.account == account), "")
        return f"parked: {other} has hit a limit of the account {account!r}; {reason}" if other else reason

    def ended(self, at_most: int | None) -> _Table:
        what = "sessions that ended"
        chosen = [session for _, session in self.filters.ended_in(self.snapshot)]
        ended = chosen[:at_most]
        if not ended:
            unknown = self.snapshot.source is not RecordSource.REGISTRY
            said = "not known while registry.yaml can't be read" if unknown else "none"
            return _Table(what, [f"{what}: {said}"])
        size = short_size(session.conversation for session in ended if session.conversation)
        rows = [self._session(session, size) for session in ended]
        return _Table(what, fitted(ENDED, rows, self.columns), len(chosen) - len(ended))

    def _session(self, session: EndedSession, size: int) -> Sequence[str]:
        return (
            f"{ago((self.now - session.ended).total_seconds())} ago",
            session.agent,
            self.paint.status(session.status),
            ago((session.ended - session.started).total_seconds()) if session.started else "-",
            session.backend,
            "" if session.exit_status is None else str(session.exit_status),
            plain((session.conversation or "")[:size]),
            plain(session.reason),
        )


def limit_words(record: AgentRecord, now: datetime) -> str:
    """A usage limit in a few words: which one, when it resets, when the agent is resumed."""
    words = f"{record.limit} limit" if record.limit != "usage" else "usage limit"
    if record.limit_resets is not None:
        left = (record.limit_resets - now).total_seconds()
        words += f", resets in {ago(left)}" if left > 0 else f", reset {ago(-left)} ago"
    left = (record.resumes - now).total_seconds() if record.resumes is not None else 0.0
    return f"{words}, resumed in {ago(left)}" if left > 0 else words


def fill(tables: Sequence[_Table], room: int) -> tuple[list[str], str]:
    """The lines that there is room for, a blank one between tables, and in words how many rows were left out.

    Where something is left out, a line is left for saying so.
    """
    if sum(len(each.lines) + 1 for each in tables) - 1 <= room and not any(each.more for each in tables):
        return [line for each in tables for line in ("", *each.lines)][1:], ""
    shown: list[str] = []
    left_out = []
    for each in tables:
        gap = [""] if shown else []
        kept = each.lines[: max(0, room - 1 - len(shown) - len(gap))]
        if len(kept) == 1 < len(each.lines):
            kept = []  # a head alone tells nothing
        shown += [*gap, *kept] if kept else []
        hidden = len(each.lines) - max(1, len(kept)) + each.more
        if hidden:
            left_out.append(f"{hidden} more {each.what}")
    return shown, " and ".join(left_out)


def short_size(ids: Iterable[str]) -> int:
    """How many letters tell the ids apart. Some ids begin with the time: those of one start look alike."""
    different: Collection[str] = set(ids)
    longest = max(map(len, different), default=SHORT_ID)
    return next(
        (size for size in range(SHORT_ID, longest) if len({each[:size] for each in different}) == len(different)),
        max(longest, SHORT_ID),
    )


# --- everything together ---

NO_BROKER = "the broker is down: services go on by polling, and commands go through the journal"
NOTHING_RUNS = "no service runs: nobody tends the agents, and what is shown may be old; start them with: muster up"
LEAST_TABLE_ROWS = 3
"""A table's head, one row, and the line about what is left out."""


def process_words(process: ProcessStatus, now: datetime) -> str:
    """What a process says of itself, or what is wrong with it and what to do."""
    if process.heard_at is not None:
        return plain(process.reason) or f"heard {ago(now.timestamp() - process.heard_at)} ago"
    if process.status == ALONE:
        return "runs, but the broker does not tell of it"
    if process.status == UP or process.name == BROKER:
        return ""
    return "nobody restarts what dies: muster up" if process.name == SUPERVISOR else "start it with: muster up"


@dataclass(frozen=True)
class StatusView:
    """A snapshot, which part of it is shown, and when."""

    snapshot: Snapshot
    filters: StatusFilter
    now: datetime

    def json(self, indent: int | None = None) -> bytes:
        """All of it, for programs."""
        return to_json(self.document(), indent=indent)

    def document(self) -> dict[str, Any]:
        snapshot = self.snapshot
        services = {each.name: {"status": each.status, "pid": each.pid} for each in snapshot.processes()}
        found: dict[str, Any] = {
            "host": snapshot.fleet.space.host,
            "broker": snapshot.broker,
            "faults": list(snapshot.faults),
            "from": snapshot.source,
            "services": services,
            "agents": {agent: snapshot.records.get(agent) for agent in self.filters.agents_in(snapshot)},
        }
        if self.filters.ended:
            found["history"] = [{"spawn": spawn, **dict(session)} for spawn, session in self.filters.ended_in(snapshot)]
        return found

    def news(self) -> object:
        """All but how long ago things were. A plain watch prints again when this differs."""
        snapshot = self.snapshot
        return (
            [(each.name, each.status, each.pid) for each in snapshot.processes()],
            [(agent, snapshot.records.get(agent)) for agent in self.filters.agents_in(snapshot)],
            self.filters.ended_in(snapshot),
            snapshot.faults,
            snapshot.source,
        )

    # --- for people ---

    def text(self, paint: Paint, columns: int | None = None) -> str:
        """Everything, however long; lines are cut only where a width is given."""
        snapshot = self.snapshot
        parts = ["\n".join(warnings)] if (warnings := self._warnings(paint)) else []
        if self.filters.is_empty or not snapshot.all_up:
            rows = [
                (each.name, paint.status(each.status), f"{each.pid or '-'}", process_words(each, self.now))
                for each in snapshot.processes()
            ]
            parts.append("\n".join(fitted(PROCESSES, rows, columns)))
        parts += ["\n".join(each.lines) for each in self._tables(paint, columns).all()]
        return "\n\n".join(parts)

    def frame(self, paint: Paint, columns: int, rows: int) -> list[str]:
        """As much as a terminal of this size has room for, and what it had no room for."""
        head = [self._headline(paint), self._service_line(paint), *self._warnings(paint), ""]
        lines = [cut(line, columns) for line in head[: max(1, rows - LEAST_TABLE_ROWS)]]
        shown, left_out = fill(self._tables(paint, columns).all(at_most=rows), rows - len(lines))
        if left_out:
            shown.append(cut(paint.dim(f"… there is no room for {left_out}"), columns))
        return [*lines, *shown][:rows]

    def _tables(self, paint: Paint, columns: int | None) -> _Tables:
        return _Tables(self.snapshot, self.filters, self.now, paint, columns)

    def _warnings(self, paint: Paint) -> list[str]:
        snapshot = self.snapshot
        serves = any(name in snapshot.pids for name in snapshot.fleet.services)
        lines = [] if snapshot.bus is not None else [NO_BROKER if serves else NOTHING_RUNS]
        lines += [line for fault in snapshot.faults for line in map(plain, fault.splitlines())]
        if snapshot.source is RecordSource.JOURNAL:
            lines.append("the agents are shown as the journal has them, which is the last good state")
        if snapshot.source is RecordSource.NOTHING:
            lines.append("there is no journal to tell the last good state either: nothing is known of the agents")
        return [paint.bad(line) for line in lines]

    def _headline(self, paint: Paint) -> str:
        snapshot = self.snapshot
        count = Counter(snapshot.status(agent) for agent in self.filters.agents_in(snapshot))
        shown, total = count.total(), len(snapshot.agents)
        of = f" of {total}" if shown != total else ""
        parts = [f"{number} {paint.status(status)}" for status, number in count.most_common()]
        said = f"{shown}{of} agents" + (f": {', '.join(parts)}" if parts else "")
        return f"{paint.bold(snapshot.fleet.space.host)}  {self.now.astimezone():%H:%M:%S}  {said}"

    def _service_line(self, paint: Paint) -> str:
        """The processes by status. What is wrong comes first: the line may have to be cut."""
        by_status: dict[str, list[str]] = {}
        wrong = []
        for each in self.snapshot.processes():
            words = process_words(each, self.now)
            if each.status in (UP, Presence.ONLINE, ALONE) or not words:
                by_status.setdefault(each.status, []).append(each.name)
            else:
                wrong.append(f"{each.name} {paint.status(each.status)} ({words})")
        return "  ".join(
            [*wrong, *(f"{paint.status(status)}: {' '.join(names)}" for status, names in by_status.items())]
        )
