"""The tables of `muster status`: agents, and sessions that ended. Pure: the time and the room are given."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from registry import AgentRecord, EndedSession
from services.cli.report import REGISTRY, Report
from services.cli.status_filter import Choice
from services.cli.tables import Column, fitted
from services.cli.words import Paint, ago, plain
from shared.fleet.fleet import account_of

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
class Table:
    what: str
    lines: list[str]
    """The first is its head, or says why there is no table."""
    more: int = 0
    """Rows that were not even drawn."""


@dataclass(frozen=True)
class Tables:
    """Made for one moment, and for so many columns (None: as many as it takes)."""

    report: Report
    choice: Choice
    now: datetime
    paint: Paint
    columns: int | None = None

    def all(self, at_most: int | None = None) -> list[Table]:
        """What was asked for, with so many rows each."""
        return [self.agents(at_most), *([self.ended(at_most)] if self.choice.ended else [])]

    def agents(self, at_most: int | None) -> Table:
        chosen = self.choice.of_agents(self.report)
        agents = chosen[:at_most]
        if not agents:
            everybody = len(self.report.agents)
            said = f"none of the {everybody} agents is like that" if everybody else "no agents are declared"
            return Table("agents", [said])
        records = [record for agent in agents if (record := self.report.records.get(agent)) is not None]
        size = short_size(record.conversation for record in records if record.conversation)
        rows = [self._agent(agent, size) for agent in agents]
        return Table("agents", fitted(AGENTS, rows, self.columns), len(chosen) - len(agents))

    def _agent(self, agent: str, size: int) -> Sequence[str]:
        record, paint = self.report.records.get(agent), self.paint
        status = paint.status(self.report.status(agent))
        if record is None:
            return (plain(agent), paint.dim(status), "-", "", "", "-", self.report.backend(agent), "", "", "", "")
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
        """What is told of it, and what holds it: its own usage limit, or another's on its account."""
        told = record.activity_reason if record.is_running and record.activity else record.reason
        if record.limit is not None:
            return f"{limit_words(record, self.now)}; {told}"
        account = account_of(self.report.fleet, agent, record.backend)
        other = next((name for name, each in self.report.records.items() if each.limit and each.account == account), "")
        return f"parked: {other} has hit a limit of the account {account!r}; {told}" if other else told

    def ended(self, at_most: int | None) -> Table:
        what = "sessions that ended"
        chosen = [session for _, session in self.choice.of_ended(self.report)]
        ended = chosen[:at_most]
        if not ended:
            unknown = self.report.source != REGISTRY
            said = "not known while registry.yaml can't be read" if unknown else "none"
            return Table(what, [f"{what}: {said}"])
        size = short_size(session.conversation for session in ended if session.conversation)
        rows = [self._session(session, size) for session in ended]
        return Table(what, fitted(ENDED, rows, self.columns), len(chosen) - len(ended))

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
    """A usage limit in a few words: which, until when, and what then."""
    words = f"{record.limit} limit" if record.limit != "usage" else "usage limit"
    if record.limit_resets is not None:
        left = (record.limit_resets - now).total_seconds()
        words += f", resets in {ago(left)}" if left > 0 else f", reset {ago(-left)} ago"
    left = (record.resumes - now).total_seconds() if record.resumes is not None else 0.0
    return f"{words}, resumed in {ago(left)}" if left > 0 else words


def fill(tables: Sequence[Table], room: int) -> tuple[list[str], str]:
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
    """How much of an id is enough: some begin with the time, and look alike for agents started together."""
    different: Collection[str] = set(ids)
    longest = max(map(len, different), default=SHORT_ID)
    return next(
        (size for size in range(SHORT_ID, longest) if len({each[:size] for each in different}) == len(different)),
        max(longest, SHORT_ID),
    )
