"""One look for people, while no reconciler runs: with `--dry-run` nothing is written anywhere."""

import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from registry import RegistryFile
from services.reconciler.service import Difference, Reconciler
from shared.errors import MusterError
from shared.fleet import FleetFile, find_fleet_file
from shared.journal import Journal
from shared.process import Wiring, serve_fleet
from shared.tmux import Tmux
from shared.turn import Turn

WITHIN_S = 8.0
"""A drift that waits for its explanation is waited for, but not longer."""


def look_once(fleet: str | None, build: Callable[[Wiring], Reconciler]) -> int:
    """Compare and tell, as the service does, and end."""
    services: list[Reconciler] = []
    deadline = time.monotonic() + WITHIN_S

    def built(wiring: Wiring) -> Reconciler:
        services.append(build(wiring))
        return services[0]

    def is_done() -> bool:
        return time.monotonic() > deadline or not any(each.waits for each in services[0].last)

    code = serve_fleet(fleet, Reconciler.name, built, is_done)
    if code == 0:
        show(services[0].last)
    return code


def look_dryly(fleet: str | None) -> int:
    """Compare and tell nobody. The journal is only read: what is decided by it is decided by a copy."""
    try:
        file = FleetFile(find_fleet_file(fleet))
        with tempfile.TemporaryDirectory(prefix="muster-") as directory:
            copy = Path(directory) / "journal.db"
            _copy(file.fleet.journal, copy)
            journal, tmux = Journal(copy, Reconciler.name), Tmux(file.fleet.declared.tmux.socket)
            service = Reconciler(file, RegistryFile(file.fleet.registry), tmux, journal, os.environ)
            turn = Turn(Reconciler.name, datetime.now(UTC), poll=True, heard=[], asked=[], memory=journal.memory())
            with closing(journal), closing(tmux):
                service.compare(turn, thoroughly=True, dry_run=True)
    except MusterError as error:
        print(f"muster: {error}", file=sys.stderr)
        return error.exit_code
    show(service.last)
    return 0


def _copy(journal: Path, to: Path) -> None:
    if not journal.exists():
        return
    # Where nobody is at work in it, SQLite would leave two files beside it even for a reader.
    how = "mode=ro" if journal.with_name(f"{journal.name}-wal").exists() else "immutable=1"
    try:
        source, target = sqlite3.connect(f"file:{quote(str(journal))}?{how}", uri=True), sqlite3.connect(to)
        with closing(source), closing(target):
            source.backup(target)
    except sqlite3.Error as error:
        raise MusterError(f"the journal {journal} can't be read: {error}") from error


def show(differences: list[Difference]) -> None:
    json.dump({"drifts": [each.document() for each in differences]}, sys.stdout)
    print()
