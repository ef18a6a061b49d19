"""Becoming another program, under the same pid.

`python -m services.cli.supervisor_process LOCK CONFIG` becomes supervisord, holding the lock that says it runs.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from shared.system.lock import AlreadyRunning, hold

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
    become([sys.executable, "-m", "supervisor.supervisord", "-n", "-c", configuration])


def become(argv: Sequence[str]) -> NoReturn:
    """Nothing of ours is left: signals, the terminal and the exit code are the program's."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(argv[0], list(argv))  # noqa: S606


if __name__ == "__main__":
    sys.exit(main())
