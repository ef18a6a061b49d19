"""A report as people and programs read it. Pure: the time, the width and the height are given."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic_core import to_json

from services.cli.report import JOURNAL, NOTHING, Report
from services.cli.status_filter import Choice
from services.cli.status_tables import Tables, fill
from services.cli.tables import Column, cut, fitted
from services.cli.words import Paint, plain

SERVICES = (Column("SERVICE"), Column("STATUS"), Column("PID"), Column("", least=20))
NO_BROKER = "the broker is down: services go on by polling, and commands go through the journal"
NEEDS_ROWS = 3
"""A table's head, a row, and what is left out."""


@dataclass(frozen=True)
class View:
    """What is to be shown of a report, and when."""

    report: Report
    choice: Choice
    now: datetime

    def json(self, indent: int | None = None) -> bytes:
        """All of it, for programs."""
        return to_json(self.document(), indent=indent)

    def document(self) -> dict[str, Any]:
        report = self.report
        services = {each.name: {"status": each.status, "pid": each.pid} for each in report.services()}
        found: dict[str, Any] = {
            "host": report.fleet.space.host,
            "broker": report.broker,
            "faults": list(report.faults),
            "from": report.source,
            "services": services,
            "agents": {agent: report.records.get(agent) for agent in self.choice.of_agents(report)},
        }
        if self.choice.ended:
            found["history"] = [{"spawn": spawn, **dict(session)} for spawn, session in self.choice.of_ended(report)]
        return found

    def news(self) -> object:
        """What has to differ for a table to be worth printing again: all but how long ago things were."""
        report = self.report
        return (
            [(each.name, each.status, each.pid) for each in report.services()],
            [(agent, report.records.get(agent)) for agent in self.choice.of_agents(report)],
            self.choice.of_ended(report),
            report.faults,
            report.source,
        )

    # --- for people ---

    def text(self, paint: Paint, columns: int | None = None) -> str:
        """Everything, however long; lines are cut only where a width is given."""
        report = self.report
        parts = ["\n".join(told)] if (told := self._warnings(paint)) else []
        if self.choice.is_everybody or not report.all_up:
            rows = [
                (each.name, paint.status(each.status), f"{each.pid or '-'}", each.says) for each in report.services()
            ]
            parts.append("\n".join(fitted(SERVICES, rows, columns)))
        parts += ["\n".join(each.lines) for each in self._tables(paint, columns).all()]
        return "\n\n".join(parts)

    def frame(self, paint: Paint, columns: int, rows: int) -> list[str]:
        """As much as a terminal of this size has room for, and what it had no room for."""
        head = [self._headline(paint), self._service_line(paint), *self._warnings(paint), ""]
        lines = [cut(line, columns) for line in head[: max(1, rows - NEEDS_ROWS)]]
        shown, left_out = fill(self._tables(paint, columns).all(at_most=rows), rows - len(lines))
        if left_out:
            shown.append(cut(paint.dim(f"… there is no room for {left_out}"), columns))
        return [*lines, *shown][:rows]

    def _tables(self, paint: Paint, columns: int | None) -> Tables:
        return Tables(self.report, self.choice, self.now, paint, columns)

    def _warnings(self, paint: Paint) -> list[str]:
        report = self.report
        told = [NO_BROKER] if report.bus is None else []
        told += [line for fault in report.faults for line in map(plain, fault.splitlines())]
        if report.source == JOURNAL:
            told.append("the agents are shown as the journal has them, which is the last good state")
        if report.source == NOTHING:
            told.append("there is no journal to tell the last good state either: nothing is known of the agents")
        return [paint.bad(line) for line in told]

    def _headline(self, paint: Paint) -> str:
        report = self.report
        count = Counter(report.status(agent) for agent in self.choice.of_agents(report))
        shown, everybody = count.total(), len(report.agents)
        of = f" of {everybody}" if shown != everybody else ""
        parts = [f"{number} {paint.status(status)}" for status, number in count.most_common()]
        said = f"{shown}{of} agents" + (f": {', '.join(parts)}" if parts else "")
        return f"{paint.bold(report.fleet.space.host)}  {self.now.astimezone():%H:%M:%S}  {said}"

    def _service_line(self, paint: Paint) -> str:
        """Those that are alike together, and what is wrong first: the line may have to be cut."""
        alike: dict[str, list[str]] = {}
        told = []
        for each in self.report.services():
            if each.status in ("up", "online", "alone") or not each.says:
                alike.setdefault(each.status, []).append(each.name)
            else:
                told.append(f"{each.name} {paint.status(each.status)} ({each.says})")
        return "  ".join([*told, *(f"{paint.status(status)}: {' '.join(names)}" for status, names in alike.items())])
