"""A fleet at one moment: its processes, its agents' records and what is wrong, for whatever shows a fleet.

Records come from the registry file, or from the journal while the file is missing, broken or behind. What services say
of themselves comes from the bus. Nothing is written, and no journal is made.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from enum import StrEnum

from registry import AgentRecord, BadRegistry, EndedSession, RegistryFile
from registry.memory import OUTDATED_ROWS, REGISTRAR, records_in
from shared.client import processes
from shared.client.presence import SETTLED_S, PresenceReport, QuietLog, may_answer
from shared.contract.states import Presence
from shared.contract.topics import AGENT_STATE, SERVICE_STATE
from shared.errors import MusterError
from shared.fleet import Fleet, find_fleet_file
from shared.messaging.inbox import Connected, Disconnected, Inbox, Item, LookRequest, MessageArrived
from shared.messaging.journal import JournalReader, why_not_writable
from shared.runtime.bootstrap import connect
from shared.system.files import FileSignature, signature_of

NOT_STARTED = "not_started"
"""The status of an agent that is declared and has no record."""
UP, DOWN = "up", "down"
ALONE = "alone"
"""The status of a service that runs and that the broker does not tell of."""


class RecordSource(StrEnum):
    """Where the records of a snapshot are from."""

    REGISTRY = "registry"
    JOURNAL = "journal"
    NOTHING = "nothing"


@dataclass(frozen=True)
class ProcessStatus:
    """The supervisor, the broker or a service."""

    name: str
    status: str
    """A service's presence by its own words, or up, down or alone."""
    pid: int | None
    reason: str = ""
    """What a service says of its presence."""
    heard_at: float | None = None
    """When it said so."""


@dataclass(frozen=True)
class Snapshot:
    fleet: Fleet
    bus: PresenceReport | None
    """What services say of themselves; None while no broker answers."""
    pids: Mapping[str, int]
    records: Mapping[str, AgentRecord]
    history: Mapping[str, EndedSession] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    source: RecordSource = RecordSource.REGISTRY

    def with_bus(self, bus: PresenceReport | None) -> "Snapshot":
        return replace(self, bus=bus)

    @property
    def all_up(self) -> bool:
        wanted = {processes.SUPERVISOR, *self.fleet.services}
        return self.bus is not None and not self.faults and wanted <= self.pids.keys()

    @property
    def broker(self) -> str:
        return DOWN if self.bus is None else UP

    @property
    def agents(self) -> list[str]:
        """All names: the declared agents in the order of the fleet file, then those that only have a record."""
        return list(dict.fromkeys([*self.fleet.agents, *self.records]))

    def status(self, agent: str) -> str:
        record = self.records.get(agent)
        return record.status.value if record is not None else NOT_STARTED

    def activity(self, agent: str) -> str | None:
        record = self.records.get(agent)
        return record.activity.value if record is not None and record.activity is not None else None

    def backend(self, agent: str) -> str:
        """What the agent runs on, or would if it were started."""
        record = self.records.get(agent)
        return record.backend if record is not None else self.fleet.agents[agent].backend

    def processes(self) -> list[ProcessStatus]:
        return [self._process(name) for name in (processes.SUPERVISOR, *processes.programs(self.fleet))]

    def _process(self, name: str) -> ProcessStatus:
        pid = self.pids.get(name)
        if name == processes.BROKER:
            return ProcessStatus(name, self.broker, pid)
        if name == processes.SUPERVISOR or pid is None:
            return ProcessStatus(name, DOWN if pid is None else UP, pid)
        state = self.bus.services.get(name) if self.bus else None
        if self.bus is None or state is None or state.pid != pid or state.status is Presence.OFFLINE:
            return ProcessStatus(name, ALONE, pid)
        return ProcessStatus(name, state.status.value, pid, state.reason, self.bus.service_times[name])


class SnapshotReader:
    """Takes snapshots. What did not change since the last one is not read again."""

    def __init__(self, fleet_file: str | None, *, history: bool = False) -> None:
        self._fleet_file = fleet_file
        self._history = history
        self.fleet, self._fault = self._load_fleet()
        self._fleet_stamp: FileSignature = signature_of(self.fleet.path)
        self._registry = RegistryFile(self.fleet.registry)
        self._journal_stamps: tuple[FileSignature, FileSignature] | None = None
        self._is_outdated = False
        """Whether the registry file was behind the journal when that had these stamps."""

    def take(self, bus: PresenceReport | None = None) -> Snapshot:
        self._refresh_fleet()
        faults = [each for each in (self._fault, why_not_writable(self.fleet.journal)) if each]
        source, records, history = RecordSource.REGISTRY, dict[str, AgentRecord](), dict[str, EndedSession]()
        try:
            records = dict(self._registry.records())
            history = dict(self._registry.history()) if self._history else {}
            if not self._registry.is_there or self._is_behind(faults):
                source, records = self._from_journal(faults)
        except BadRegistry as fault:
            faults.append(str(fault))
            source, records = self._from_journal(faults)
        return Snapshot(self.fleet, bus, processes.pids(self.fleet), records, history, tuple(faults), source)

    def _load_fleet(self) -> tuple[Fleet, str]:
        return processes.load_fleet_leniently(find_fleet_file(self._fleet_file))

    def _refresh_fleet(self) -> None:
        stamp = signature_of(self.fleet.path)
        if stamp == self._fleet_stamp:
            return
        self._fleet_stamp = stamp
        try:
            self.fleet, self._fault = self._load_fleet()
        except MusterError as fault:  # it was moved away: what it said last still counts
            self._fault = str(fault)

    def _is_behind(self, faults: list[str]) -> bool:
        """Whether the registrar could not write the file: it can be read, and shows an old state."""
        journal = self.fleet.journal
        stamps = (signature_of(journal), signature_of(journal.with_name(f"{journal.name}-wal")))
        if stamps == self._journal_stamps:
            return self._is_outdated
        try:
            self._is_outdated = journal.exists() and self._has_outdated_rows()
            self._journal_stamps = stamps
        except MusterError as fault:
            faults.append(str(fault))
            return False
        return self._is_outdated

    def _has_outdated_rows(self) -> bool:
        with closing(JournalReader(self.fleet.journal)) as journal:
            return journal.memory_has_field(*OUTDATED_ROWS)

    def _from_journal(self, faults: list[str]) -> tuple[RecordSource, dict[str, AgentRecord]]:
        """The last good records, as the registrar remembers them."""
        if not self.fleet.journal.exists():
            return RecordSource.NOTHING, {}
        try:
            with closing(JournalReader(self.fleet.journal)) as journal:
                return RecordSource.JOURNAL, records_in(journal.memory(REGISTRAR))
        except MusterError as fault:
            faults.append(str(fault))
            return RecordSource.NOTHING, {}


POLL_INTERVAL_S = 1.0
"""How often files and locks are looked at when nothing comes."""
SNAPSHOT_INTERVAL_S = 0.25
"""The shortest time between two snapshots."""
CONNECTS_WITHIN_S = 1.0
"""The first snapshot waits so long for a broker that may answer."""


class FleetWatch:
    """Snapshots of a fleet as it changes, by the bus, and by polling while no broker answers.

    A message on the bus is only a reason to look: the registry file tells what is true. Items that others put into the
    inbox go to `on_item`; a LookRequest is a reason to look, too.
    """

    def __init__(self, reader: SnapshotReader, inbox: Inbox, on_item: Callable[[Item], None] = lambda _: None) -> None:
        self._reader, self._inbox, self._on_item = reader, inbox, on_item
        space = reader.fleet.space
        self._prefix = space.prefix
        self._bus = connect(reader.fleet, "viewer", inbox, QuietLog("muster"))
        self._bus.subscribe([row.filter(space) for row in (SERVICE_STATE, AGENT_STATE)])
        self._bus.start()
        self._heard: PresenceReport | None = None
        self._settled_at = 0.0
        self._is_over = False

    def close(self) -> None:
        self._bus.stop()

    def end(self) -> None:
        """Let `snapshots` end."""
        self._is_over = True

    def snapshots(self) -> Iterator[Snapshot]:
        """At least one a second, at most four."""
        if may_answer(self._reader.fleet):
            self._wait(time.monotonic() + CONNECTS_WITHIN_S, 0.0)
        while not self._is_over:
            yield self._reader.take(self._heard)
            now = time.monotonic()
            self._wait(now + POLL_INTERVAL_S, now + SNAPSHOT_INTERVAL_S)

    def _wait(self, until: float, not_before: float) -> None:
        """Take what comes until there is a reason to look."""
        woken = False
        while not self._is_over:
            items = self._inbox.take(max(not_before, self._settled_at) if woken else until)
            for item in items:
                woken = self._take(item) or woken
            if not items or (woken and time.monotonic() >= max(not_before, self._settled_at)):
                return

    def _take(self, item: Item) -> bool:
        """Whether something may be new."""
        match item:
            case Connected():
                self._bus.note_connected(item)
                self._heard = PresenceReport()
                # Retained states come right after. Before them, every service would seem to be silent.
                self._settled_at = time.monotonic() + SETTLED_S
            case Disconnected():
                self._heard = None
            case MessageArrived():
                self._bus.acknowledge([item])
                if self._heard is not None:
                    self._heard.take(item.topic, item.payload, self._prefix)
            case _:
                self._on_item(item)
                return isinstance(item, LookRequest)
        return True
