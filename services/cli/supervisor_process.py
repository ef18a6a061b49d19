"""Becomes supervisord, holding the lock that says it runs: `python -m services.cli.supervisor_process LOCK CONFIG`."""

import os
import sys
from pathlib import Path

from shared.lock import AlreadyRunning, hold

EXIT_BUSY = 75


def main() -> int:
    lock, configuration = Path(sys.argv[1]), sys.argv[2]
    try:
        held = hold(lock, "supervisor")
    except AlreadyRunning as error:
        print(f"muster: {error}", file=sys.stderr)
        return EXIT_BUSY
    held.survive_exec()
    os.umask(0o077)
    os.execv(sys.executable, [sys.executable, "-m", "supervisor.supervisord", "-n", "-c", configuration])  # noqa: S606


if __name__ == "__main__":
    sys.exit(main())
