"""One run for people while no reconciler runs: `--once` reports as the service does, `--dry-run` writes nothing."""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from registry import RegistryFile
from services.reconciler.service import Difference, Reconciler
from shared.errors import MusterError
from shared.fleet import FleetFile, find_fleet_file
from shared.messaging.journal import Journal
from shared.runtime.bootstrap import ServiceContext, serve_fleet
from shared.runtime.memory import Memory
from shared.runtime.turn import Turn
from shared.runtime.turn_runner import read_reply
from shared.system.tmux import Tmux

WAITS_AT_MOST_S = 8.0
"""For drifts that wait for their explanation."""
COPY_TRIES = 20
"""SQLite may begin a new log while the journal is copied; then the copy is made again."""
WAL_HEADER_BYTES = 32


def run_once(fleet: str | None, build: Callable[[ServiceContext], Reconciler]) -> int:
    """Run as the service until nothing waits any more, and print what differed."""
    run = RunDifferences(build)
    deadline = time.monotonic() + WAITS_AT_MOST_S
    code = serve_fleet(fleet, Reconciler.name, run.build, lambda: run.all_reported() or time.monotonic() > deadline)
    if code == 0:
        _print(run.differences())
    return code


class RunDifferences:
    """What differed in the turns of a run; what was reported in it counts as new."""

    def __init__(self, build: Callable[[ServiceContext], Reconciler]) -> None:
        self._build = build
        self._service: Reconciler | None = None
        self._reported: dict[tuple[str, str], Difference] = {}

    def build(self, context: ServiceContext) -> Reconciler:
        self._service = self._build(context)
        self._service.is_thorough = True
        return self._service

    def all_reported(self) -> bool:
        """Whether nothing waits any more. To be called after each turn."""
        latest = self._latest()
        self._reported |= {each.of: each for each in latest if each.news and not each.waits}
        return not any(each.waits for each in latest)

    def differences(self) -> list[Difference]:
        return list(({each.of: each for each in self._latest()} | self._reported).values())

    def _latest(self) -> list[Difference]:
        return self._service.differences if self._service is not None else []


def run_dry(fleet: str | None) -> int:
    """Compare by a copy of the journal, print what differs, and write nothing."""
    try:
        file = FleetFile(find_fleet_file(fleet))
        with tempfile.TemporaryDirectory(prefix="muster-") as directory:
            copy = Path(directory) / "journal.db"
            copy_journal(file.fleet.journal, copy)
            journal, tmux = Journal(copy, Reconciler.name), Tmux(file.fleet.declared.tmux.socket)
            service = Reconciler(file, RegistryFile(file.fleet.registry), tmux, journal, os.environ)
            with closing(journal), closing(tmux):
                service.compare(dry_turn(journal), thoroughly=True, dry_run=True)
    except MusterError as error:
        print(f"muster: {error}", file=sys.stderr)
        return error.exit_code
    _print(service.differences)
    return 0


def dry_turn(journal: Journal) -> Turn:
    """A turn that is never committed."""
    memory, replies = Memory(journal.memory()), partial(read_reply, journal)
    return Turn(Reconciler.name, datetime.now(UTC), True, [], [], memory, read_reply=replies)


def copy_journal(journal: Path, to: Path) -> None:
    """Copy the journal's files: SQLite writes beside them even for a reader."""
    for _ in range(COPY_TRIES):
        try:
            began = _wal_header(journal)
            shutil.copyfile(journal, to)
            _wal(to).unlink(missing_ok=True)
            if began is not None:
                shutil.copyfile(_wal(journal), _wal(to))
            if began == _wal_header(journal) == _wal_header(to):
                return
        except FileNotFoundError:
            if not journal.exists():
                return
        except OSError as error:
            raise MusterError(f"the journal {journal} can't be read: {error}") from error
    raise MusterError(f"the journal {journal} can't be copied while so much is written to it; try again")


def _wal(journal: Path) -> Path:
    return journal.with_name(f"{journal.name}-wal")


def _wal_header(journal: Path) -> bytes | None:
    """The header of the write-ahead log. It changes when a new log begins."""
    try:
        with _wal(journal).open("rb") as file:
            return file.read(WAL_HEADER_BYTES)
    except FileNotFoundError:
        return None


def _print(differences: list[Difference]) -> None:
    json.dump({"drifts": [each.document() for each in differences]}, sys.stdout)
    print()
