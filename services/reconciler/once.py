"""One look for people, while no reconciler runs: with `--dry-run` nothing is written anywhere."""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from registry import RegistryFile
from services.reconciler.service import Difference, Reconciler
from shared.errors import MusterError
from shared.fleet import FleetFile, find_fleet_file
from shared.messaging.journal import Journal
from shared.runtime.bootstrap import ServiceContext, serve_fleet
from shared.runtime.memory import Memory
from shared.runtime.turn import Turn
from shared.system.tmux import Tmux

WITHIN_S = 8.0
"""A drift that waits for its explanation is waited for, but not longer."""
COPIES = 20
"""So often a copy of the journal is begun anew when it is tidied up meanwhile."""
WAL_HEADER_BYTES = 32


def look_once(fleet: str | None, build: Callable[[ServiceContext], Reconciler]) -> int:
    """Compare and tell, as the service does, and end."""
    seen = DryObservation(build)
    deadline = time.monotonic() + WITHIN_S
    code = serve_fleet(fleet, Reconciler.name, seen.built, lambda: seen.all_told() or time.monotonic() > deadline)
    if code == 0:
        show(seen.differences())
    return code


class DryObservation:
    """What differed in any turn of a run, with what was told in it as new."""

    def __init__(self, build: Callable[[ServiceContext], Reconciler]) -> None:
        self._build = build
        self._service: Reconciler | None = None
        self._told: dict[tuple[str, str], Difference] = {}

    def built(self, wiring: ServiceContext) -> Reconciler:
        self._service = self._build(wiring)
        self._service.looks_at_all = True
        return self._service

    def all_told(self) -> bool:
        """To be asked after each turn: whether nothing waits any more."""
        now = self._now()
        self._told |= {each.of: each for each in now if each.news and not each.waits}
        return not any(each.waits for each in now)

    def differences(self) -> list[Difference]:
        return list(({each.of: each for each in self._now()} | self._told).values())

    def _now(self) -> list[Difference]:
        return self._service.last if self._service is not None else []


def look_dryly(fleet: str | None) -> int:
    """Compare and tell nobody. The journal is only read: what is decided by it is decided by a copy."""
    try:
        file = FleetFile(find_fleet_file(fleet))
        with tempfile.TemporaryDirectory(prefix="muster-") as directory:
            copy = Path(directory) / "journal.db"
            copy_journal(file.fleet.journal, copy)
            journal, tmux = Journal(copy, Reconciler.name), Tmux(file.fleet.declared.tmux.socket)
            service = Reconciler(file, RegistryFile(file.fleet.registry), tmux, journal, os.environ)
            turn = Turn(
                Reconciler.name, datetime.now(UTC), poll=True, events=[], commands=[], memory=Memory(journal.memory())
            )
            with closing(journal), closing(tmux):
                service.compare(turn, thoroughly=True, dry_run=True)
    except MusterError as error:
        print(f"muster: {error}", file=sys.stderr)
        return error.exit_code
    show(service.last)
    return 0


def copy_journal(journal: Path, to: Path) -> None:
    """Copy its files. SQLite would write beside them even for a reader."""
    for _ in range(COPIES):
        try:
            began = _log_of(journal)
            shutil.copyfile(journal, to)
            _log(to).unlink(missing_ok=True)
            if began is not None:
                shutil.copyfile(_log(journal), _log(to))
            if began == _log_of(journal) == _log_of(to):
                return
        except FileNotFoundError:
            if not journal.exists():
                return
        except OSError as error:
            raise MusterError(f"the journal {journal} can't be read: {error}") from error
    raise MusterError(f"the journal {journal} can't be copied while so much is written to it; try again")


def _log(journal: Path) -> Path:
    return journal.with_name(f"{journal.name}-wal")


def _log_of(journal: Path) -> bytes | None:
    """The beginning of the write-ahead log, by which it is known: what is copied goes with this one, or not at all."""
    try:
        with _log(journal).open("rb") as file:
            return file.read(WAL_HEADER_BYTES)
    except FileNotFoundError:
        return None


def show(differences: list[Difference]) -> None:
    json.dump({"drifts": [each.document() for each in differences]}, sys.stdout)
    print()
