"""Prepares the private broker and becomes it: after `exec` no Python is left, only the broker and its lock."""

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

from shared.contract.topics import Space
from shared.errors import MusterError
from shared.messaging.broker.preparation import prepare
from shared.system import lock

ALREADY_RUNS = 75
"""EX_TEMPFAIL: nothing is broken, another broker holds the lock."""


def lock_file(home: Path) -> Path:
    return home / "run" / "broker.lock"


def main() -> None:
    chosen = _options()
    os.umask(0o077)  # the broker's own files are private, too
    try:
        _become_broker(chosen)
    except lock.AlreadyRunning as error:
        print(error, file=sys.stderr)
        sys.exit(ALREADY_RUNS)
    except MusterError as error:
        print(error, file=sys.stderr)
        sys.exit(1)


def _become_broker(chosen: argparse.Namespace) -> NoReturn:
    held = lock.hold(lock_file(chosen.home), "broker")
    prepared = prepare(
        chosen.home,
        Space(chosen.host, chosen.prefix),
        port=chosen.port,
        websocket_port=chosen.websocket_port,
    )
    held.survive_exec()
    os.execv(prepared.argv[0], prepared.argv)  # noqa: S606  the supervisor must see one process, the broker itself


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(prog="python -m services.broker", description="Run the fleet's private broker.")
    options.add_argument("--home", type=lambda text: Path(text).absolute(), required=True, help="the fleet's .muster")
    options.add_argument("--host", required=True, help="this host's id in topics")
    options.add_argument("--prefix", default="muster", help="first level of all topics")
    options.add_argument("--port", type=int, help="for MQTT; else the one of the last time, or any free one")
    options.add_argument("--websocket-port", type=int, help="the same for websockets; 0 for no such listener")
    return options.parse_args()


if __name__ == "__main__":
    main()
