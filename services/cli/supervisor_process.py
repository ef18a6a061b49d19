"""`python -m services.cli.supervisor_process LOCK CONFIG`: takes the supervisor's lock and becomes supervisord."""

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
    """Replace this process by a program, under the same pid."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(argv[0], list(argv))  # noqa: S606


if __name__ == "__main__":
    sys.exit(main())
