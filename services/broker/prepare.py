"""Writes the private broker's files for a mosquitto that is started elsewhere, by a container engine for example.

`python -m services.broker.prepare --fleet fleet.yaml --port 18883 --listen 0.0.0.0`. The files are those that
`services.broker` uses. Only the address may differ: inside a container, loopback is not enough.
"""

import argparse
import os
import sys
from ipaddress import IPv4Address
from pathlib import Path

from services.broker.__main__ import ALREADY_RUNS, lock_file
from shared.errors import MusterError
from shared.fleet import Fleet, find_fleet_file, load_fleet
from shared.messaging.broker import BrokerKind, BrokerProgram, mosquitto
from shared.messaging.broker.endpoints import LOOPBACK, saved_endpoint
from shared.messaging.broker.preparation import NO_WEBSOCKET, prepare
from shared.system import files as private
from shared.system import lock


def main() -> int:
    chosen = _options()
    os.umask(0o077)
    try:
        fleet = load_fleet(find_fleet_file(chosen.fleet))
        with lock.hold(lock_file(fleet.home), "broker"):
            print(f"wrote {write_files(fleet, chosen.port, str(chosen.listen))}")
    except lock.AlreadyRunning as error:
        print(f"{error}; stop it with: muster down", file=sys.stderr)
        return ALREADY_RUNS
    except MusterError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def write_files(fleet: Fleet, port: int, listen: str) -> Path:
    """Write passwords, rights and configuration below the fleet's home; returns the configuration's path."""
    mosquitto_elsewhere = BrokerProgram(BrokerKind.MOSQUITTO, "mosquitto")
    prepare(fleet.home, fleet.space, port=port, websocket_port=NO_WEBSOCKET, program=mosquitto_elsewhere)
    _hide_from_git(fleet.home)
    chosen = saved_endpoint(fleet.home)
    if chosen is None:
        raise MusterError(f"{fleet.home / 'broker'} can't be read back; is the disk full?")
    directory = fleet.home.absolute() / "broker"
    private.write(directory / "mosquitto.conf", mosquitto.configuration(directory, chosen, listen))
    return directory / "mosquitto.conf"


def _hide_from_git(home: Path) -> None:
    ignore = home / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(
        prog="python -m services.broker.prepare", description="Write the files of the fleet's private broker."
    )
    options.add_argument("--fleet", help="the fleet file")
    options.add_argument("--port", type=int, required=True, help="for MQTT")
    options.add_argument("--listen", type=IPv4Address, default=LOOPBACK, help="the address to listen on")
    return options.parse_args()


if __name__ == "__main__":
    sys.exit(main())
