"""`muster status`: what runs, from the registry file and the bus, and what of it is hearsay."""

import argparse
import json
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from registry import AgentRecord, BadRegistry, RegistryFile
from services.cli import exits, supervision
from services.cli.fleet import open_fleet_leniently
from services.cli.look import BusLook, look_at_bus
from services.cli.words import Paint, ago, plain, table
from shared.fleet import Fleet
from shared.roles import SERVICES
from shared.states import Presence, Status

BROKER_ANSWERS_WITHIN_S = 1.0


@dataclass(frozen=True)
class Report:
    fleet: Fleet
    bus: BusLook | None
    pids: dict[str, int]
    records: dict[str, AgentRecord]
    faults: list[str]

    @property
    def all_up(self) -> bool:
        wanted = {supervision.SUPERVISOR, *SERVICES}
        return self.bus is not None and not self.faults and wanted <= self.pids.keys()

    @property
    def broker(self) -> str:
        return "down" if self.bus is None else "up"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print everything as one JSON document")


def run(options: argparse.Namespace) -> int:
    fleet, fault = open_fleet_leniently(options)
    faults = [fault] if fault else []
    records: dict[str, AgentRecord] = {}
    try:
        records = dict(RegistryFile(fleet.registry).records())
    except BadRegistry as error:
        faults.append(str(error))
    report = Report(
        fleet=fleet,
        bus=look_at_bus(fleet, BROKER_ANSWERS_WITHIN_S),
        pids=supervision.pids(fleet),
        records=records,
        faults=faults,
    )
    if options.json:
        json.dump(as_document(report), sys.stdout, indent=2)
        print()
    else:
        print(as_text(report, Paint(sys.stdout)))
    return 0 if report.all_up else exits.NOT_ALL_UP


def as_document(report: Report) -> dict[str, Any]:
    return {
        "host": report.fleet.space.host,
        "broker": report.broker,
        "faults": report.faults,
        "services": {name: {"status": status, "pid": pid} for name, status, pid, _ in _services(report)},
        "agents": {
            name: report.records[name].model_dump(mode="json") if name in report.records else None
            for name in _agents(report)
        },
    }


def as_text(report: Report, paint: Paint) -> str:
    rows = [(name, paint.status(status), str(pid or "-"), more) for name, status, pid, more in _services(report)]
    parts = [paint.bad(fault) for fault in report.faults]
    parts.append(table(("SERVICE", "STATUS", "PID", ""), rows))
    if report.bus is None:
        parts.insert(0, paint.bad("the broker is down: services go on by polling, and commands go through the journal"))
    agents = [_agent_row(name, report.records.get(name), paint) for name in _agents(report)]
    if agents:
        parts.append(table(("AGENT", "STATUS", "SINCE", "WANTED", "BACKEND", "SESSION", "WHY"), agents))
    else:
        parts.append("no agents are declared")
    return "\n\n".join(parts)


def _agents(report: Report) -> list[str]:
    return list(dict.fromkeys([*report.fleet.declared.agents, *report.records]))


def _agent_row(name: str, record: AgentRecord | None, paint: Paint) -> tuple[str, ...]:
    if record is None:
        return (name, paint.dim("not started"), "-", "-", "-", "-", "")
    since = ago((datetime.now(UTC) - record.since).total_seconds())
    session = record.session if record.session and record.status is Status.RUNNING else "-"
    return (
        name,
        paint.status(record.status),
        since,
        record.desired,
        record.backend,
        plain(session),
        plain(record.reason),
    )


def _services(report: Report) -> list[tuple[str, str, int | None, str]]:
    """Each process by name: what it says of itself where a broker tells, else whether it lives."""
    rows: list[tuple[str, str, int | None, str]] = []
    for name in (supervision.SUPERVISOR, *supervision.programs(report.fleet)):
        pid = report.pids.get(name)
        said = report.bus.services.get(name) if report.bus else None
        if name == supervision.SUPERVISOR:
            rows.append((name, "up" if pid else "down", pid, "" if pid else "nobody restarts what dies: muster up"))
        elif name == "broker":
            rows.append((name, report.broker, pid, ""))
        elif said is not None and pid == said.pid and said.status is not Presence.OFFLINE:
            age = time.time() - report.bus.service_times[name] if report.bus else 0.0
            rows.append((name, said.status.value, pid, plain(said.reason) or f"heard {ago(age)} ago"))
        elif pid is not None:
            rows.append((name, "alone", pid, "runs, but the broker does not tell of it"))
        else:
            rows.append((name, "down", None, "start it with: muster up"))
    return rows
