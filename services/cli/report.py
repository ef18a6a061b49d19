"""What `muster status` tells of, and where it comes from: the registry file, else the journal; locks; the bus."""

import time
from argparse import Namespace
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from registry import AgentRecord, BadRegistry, EndedSession, RegistryFile
from registry.memory import OUTDATED_ROWS, REGISTRAR, records_in
from services.cli import supervision
from services.cli.fleet_option import open_fleet_leniently
from services.cli.words import ago, plain
from shared.client.presence import BusLook
from shared.contract.states import Presence
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.messaging.journal import Journal
from shared.messaging.journal.memory import peek
from shared.system.files import Stamp, stamp_of

NOT_STARTED = "not_started"
"""The status of an agent that is declared and has no record."""
REGISTRY, JOURNAL, NOTHING = "registry", "journal", "nothing"


@dataclass(frozen=True)
class ServiceRow:
    name: str
    status: str
    pid: int | None
    says: str


@dataclass(frozen=True)
class Report:
    """All that is known at one moment."""

    fleet: Fleet
    bus: BusLook | None
    pids: Mapping[str, int]
    records: Mapping[str, AgentRecord]
    history: Mapping[str, EndedSession] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    source: str = REGISTRY
    """Where the records are from."""

    def heard(self, bus: BusLook | None) -> "Report":
        """The same, with what the broker tells."""
        return replace(self, bus=bus)

    @property
    def all_up(self) -> bool:
        wanted = {supervision.SUPERVISOR, *self.fleet.services}
        return self.bus is not None and not self.faults and wanted <= self.pids.keys()

    @property
    def broker(self) -> str:
        return "down" if self.bus is None else "up"

    @property
    def agents(self) -> list[str]:
        """Everybody: as the fleet file has them, and then who is only recorded."""
        return list(dict.fromkeys([*self.fleet.agents, *self.records]))

    def status(self, agent: str) -> str:
        record = self.records.get(agent)
        return record.status.value if record is not None else NOT_STARTED

    def doing(self, agent: str) -> str | None:
        """What it is doing, as far as somebody told."""
        record = self.records.get(agent)
        return record.activity.value if record is not None and record.activity is not None else None

    def backend(self, agent: str) -> str:
        """What it runs on, or would if it were started."""
        record = self.records.get(agent)
        return record.backend if record is not None else self.fleet.agents[agent].backend

    def services(self) -> list[ServiceRow]:
        """Each process: what it says of itself where a broker tells, else whether it lives."""
        return [self._service(name) for name in (supervision.SUPERVISOR, *supervision.programs(self.fleet))]

    def _service(self, name: str) -> ServiceRow:
        pid = self.pids.get(name)
        said = self.bus.services.get(name) if self.bus else None
        if name == supervision.SUPERVISOR:
            return ServiceRow(name, "up" if pid else "down", pid, "" if pid else "nobody restarts what dies: muster up")
        if name == "broker":
            return ServiceRow(name, self.broker, pid, "")
        if said is not None and pid == said.pid and said.status is not Presence.OFFLINE:
            age = time.time() - self.bus.service_times[name] if self.bus else 0.0
            return ServiceRow(name, said.status.value, pid, plain(said.reason) or f"heard {ago(age)} ago")
        if pid is not None:
            return ServiceRow(name, "alone", pid, "runs, but the broker does not tell of it")
        return ServiceRow(name, "down", None, "start it with: muster up")


class ReportReader:
    """Makes reports; what did not change since the last one is not read again."""

    def __init__(self, options: Namespace, *, history: bool = False) -> None:
        self._options = options
        self._history = history
        self.fleet, self._fault = open_fleet_leniently(options)
        self._seen: Stamp = stamp_of(self.fleet.path)
        self._file = RegistryFile(self.fleet.registry)
        self._asked: tuple[Stamp, Stamp] | None = None
        self._behind = False
        """Whether the file was behind the journal, as that was when it was asked."""

    def report(self, bus: BusLook | None = None) -> Report:
        self._read_fleet()
        faults = [self._fault] if self._fault else []
        source, records, history = REGISTRY, dict[str, AgentRecord](), dict[str, EndedSession]()
        try:
            records = dict(self._file.records())
            history = dict(self._file.history()) if self._history else {}
            if not self._file.is_there or self._is_behind(faults):
                source, records = self._from_journal(faults)
        except BadRegistry as fault:
            faults.append(str(fault))
            source, records = self._from_journal(faults)
        return Report(self.fleet, bus, supervision.pids(self.fleet), records, history, tuple(faults), source)

    def _read_fleet(self) -> None:
        stamp = stamp_of(self.fleet.path)
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            self.fleet, self._fault = open_fleet_leniently(self._options)
        except MusterError as fault:  # it was moved away: who watches goes on with what it said
            self._fault = str(fault)

    def _is_behind(self, faults: list[str]) -> bool:
        """Whether the registrar could not write the file: it reads well, and tells of long ago."""
        journal = self.fleet.journal
        stamps = (stamp_of(journal), stamp_of(journal.with_name(f"{journal.name}-wal")))
        if stamps == self._asked:
            return self._behind
        try:
            self._behind = journal.exists() and peek(journal, *OUTDATED_ROWS)
            self._asked = stamps
        except MusterError as fault:
            faults.append(str(fault))
            return False
        return self._behind

    def _from_journal(self, faults: list[str]) -> tuple[str, dict[str, AgentRecord]]:
        """The last good records, as the registrar keeps them; who only looks makes no journal."""
        try:
            return (JOURNAL, _kept(self.fleet.journal)) if self.fleet.journal.exists() else (NOTHING, {})
        except MusterError as fault:
            faults.append(str(fault))
            return NOTHING, {}


def _kept(journal: Path) -> dict[str, AgentRecord]:
    with closing(Journal(journal, "cli")) as opened:
        return records_in(opened.memory(REGISTRAR))
