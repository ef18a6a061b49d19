"""Prepares the start of a private broker: passwords, rights, configuration and ports, below the fleet's home."""

import random
import socket
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from shared.contract.ids import is_id
from shared.contract.topics import Space
from shared.errors import MusterError
from shared.messaging.broker import acl, endpoints, mosquitto, nats
from shared.messaging.broker.credentials import ensure_credentials
from shared.messaging.broker.endpoints import LOOPBACK, Endpoint, SavedEndpoint
from shared.messaging.broker.program import BrokerKind, BrokerProgram, find_program
from shared.system import files as private

PORTS = range(20000, 32000)
"""Below the ephemeral ports: an outgoing connection must not take the broker's port while it restarts."""

NO_WEBSOCKET = 0


@dataclass(frozen=True)
class PreparedBroker:
    """The command line and the addresses of a broker whose files are written."""

    kind: BrokerKind
    argv: list[str]
    endpoint: Endpoint
    websocket_port: int


def prepare(
    home: Path,
    space: Space,
    *,
    port: int | None = None,
    websocket_port: int | None = None,
    program: BrokerProgram | None = None,
) -> PreparedBroker:
    """Write the files of the private broker below `home`. Its ports are those of the last time while they are free.

    No broker may run for this home (services/broker holds the lock): a port in use counts as another program's.
    `websocket_port=0` means no such listener.
    """
    _check(space)
    program = program or find_program()
    directory = home.absolute() / "broker"
    private.make_directory(home)
    private.make_directory(directory)
    saved = _choose(program.kind, endpoints.saved_endpoint(home), port, websocket_port)
    roles = acl.roles(space)
    known = ensure_credentials(home, [role.name for role in roles])
    arguments = _WRITE[program.kind](directory, saved, roles, known, space.host)
    endpoints.save_endpoint(home, saved)
    return PreparedBroker(program.kind, [program.path, *arguments], saved.endpoint, saved.websocket_port)


_WRITE = {BrokerKind.MOSQUITTO: mosquitto.write_files, BrokerKind.NATS: nats.write_files}


def _check(space: Space) -> None:
    """Host and prefix are written into the broker's configuration."""
    if not all(is_id(part) for part in (space.host, *space.prefix.split("/"))):
        raise MusterError(
            f"{space.root!r} can't be the start of a topic: host and prefix are a-z, 0-9, '_' and '-', at most 64 long"
        )


def _choose(
    kind: BrokerKind, before: SavedEndpoint | None, port: int | None, websocket_port: int | None
) -> SavedEndpoint:
    mqtt = _port(port, before.port if before else None, taken=websocket_port)
    if websocket_port == NO_WEBSOCKET:
        return SavedEndpoint(kind, mqtt, NO_WEBSOCKET)
    return SavedEndpoint(kind, mqtt, _port(websocket_port, before.websocket_port if before else None, taken=mqtt))


def _port(wanted: int | None, before: int | None, *, taken: int | None) -> int:
    """The port that a person asked for, else that of the last time if it is free, else a random one."""
    if wanted is not None:
        if wanted == taken or not is_free(wanted):
            raise MusterError(f"port {wanted} on {LOOPBACK} is taken by another program; choose another port")
        return wanted
    if before and before != taken and is_free(before):
        return before
    for port in random.sample(PORTS, 100):
        if port != taken and is_free(port):
            return port
    raise MusterError(f"no free port was found on {LOOPBACK} between {PORTS.start} and {PORTS.stop}")


def is_free(port: int) -> bool:
    """Whether a server could listen on this port now."""
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
            probe.listen()
        except OSError:
            return False
    return True
