"""`python -m services.cli.supervisor_process LOCK CONFIG`: takes the supervisor's lock and runs supervisord."""

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

from supervisor import loggers, supervisord

from shared.system.lock import AlreadyRunning, hold

EXIT_BUSY = 75


def main() -> int:
    lock, configuration = Path(sys.argv[1]), sys.argv[2]
    try:
        hold(lock, "supervisor")
    except AlreadyRunning as error:
        print(f"muster: {error}", file=sys.stderr)
        return EXIT_BUSY
    os.umask(0o077)
    _log_as_far_as_possible()
    supervisord.main(["-n", "-c", configuration])
    return 0


def _log_as_far_as_possible() -> None:
    """supervisord tells of a log that it can't write, and ends when that can't be written either: all on one disk."""
    roll_over: Callable[[loggers.RotatingFileHandler], None] = loggers.RotatingFileHandler.doRollover

    def try_to_roll_over(handler: loggers.RotatingFileHandler) -> None:
        try:
            roll_over(handler)
        except (OSError, ValueError):  # ValueError: it was closed, and could not be opened again
            with contextlib.suppress(OSError):
                handler.reopen()

    loggers.Handler.handleError = lambda _: None
    loggers.RotatingFileHandler.doRollover = try_to_roll_over


if __name__ == "__main__":
    sys.exit(main())
