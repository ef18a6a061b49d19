"""Starts a service: arguments, fleet file, lock, journal, bus, loop."""

import argparse
import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shared.contract.services import entry_of
from shared.contract.writer import DocumentWriter
from shared.errors import MusterError
from shared.fleet import Fleet, FleetFile, find_fleet_file
from shared.messaging.broker import Endpoint, credentials, endpoint
from shared.messaging.bus import Bus, ClientIdentity
from shared.messaging.inbox import Inbox, LookRequest
from shared.messaging.journal import Journal
from shared.messaging.presence import make_will
from shared.runtime.loop import ServiceLoop
from shared.runtime.poll_timer import PollIntervals
from shared.runtime.turn_runner import Service
from shared.system.lock import AlreadyRunning, hold, holder
from shared.system.log import Log

EXIT_BUSY = 75
EXIT_INTERRUPTED = 130

BROKER_URL = "MUSTER_BROKER_URL"
"""Environment variable with the broker's addresses, separated by spaces. It overrides the fleet file."""


@dataclass(frozen=True)
class ServiceContext:
    """What the runtime gives to a service when it is built."""

    fleet_file: FleetFile
    journal: Journal
    inbox: Inbox
    log: Log

    @property
    def fleet(self) -> Fleet:
        return self.fleet_file.fleet

    def nudge(self, within_s: float = 0.0) -> None:
        """Ask for a turn within this time, from any thread."""
        self.inbox.put(LookRequest("changed", within_s))


def parser_for(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"muster-{name}", description=f"Muster's {name}; started by `muster up`.")
    parser.add_argument("--fleet", help="the fleet file")
    return parser


def serve(name: str, build: Callable[[ServiceContext], Service], arguments: Sequence[str] | None = None) -> int:
    """Run a service until SIGTERM or SIGINT; returns the exit code. The `main` of every service."""
    return serve_fleet(parser_for(name).parse_args(arguments).fleet, name, build)


def serve_fleet(
    fleet: str | None, name: str, build: Callable[[ServiceContext], Service], until: Callable[[], bool] = lambda: False
) -> int:
    """The same without command line: `fleet` is the fleet file, if one was named. `until` may end it sooner."""
    log = Log(name)
    os.umask(0o077)
    for variable in [name for name in os.environ if name.startswith("SUPERVISOR_")]:
        del os.environ[variable]  # agents would inherit them, though the supervisor does not run them
    try:
        fleet_file = FleetFile(find_fleet_file(fleet))
        with hold(fleet_file.fleet.home / "run" / f"{name}.lock", name):
            _run(fleet_file, name, build, log, until)
    except AlreadyRunning as error:
        log.error("refused to start", reason=str(error))
        return EXIT_BUSY
    except MusterError as error:
        log.error("ended", reason=str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED  # only before the loop, which handles SIGINT itself
    return 0


def _run(
    fleet_file: FleetFile, name: str, build: Callable[[ServiceContext], Service], log: Log, until: Callable[[], bool]
) -> None:
    fleet = fleet_file.fleet
    inbox = Inbox()
    journal = Journal(fleet.journal, name)
    if journal.database.aside is not None:
        log.error("set a damaged journal aside and began a new one", kept=journal.database.aside.name)
    bus = connect(fleet, name, inbox, log, will=DocumentWriter(fleet.space, name, journal.epoch))
    service = build(ServiceContext(fleet_file, journal, inbox, log))
    polls = PollIntervals(fleet.declared.polls.connected_s, fleet.declared.polls.alone_s)
    ServiceLoop(service, entry_of(name), journal, bus, inbox, fleet.space, polls, log, fleet.services).run(until)


def endpoints_of(fleet: Fleet) -> list[Endpoint]:
    """The broker's addresses: from the environment, else the fleet file, else the private broker.

    Called for every connection, since the private broker may change its port.
    """
    declared = os.environ.get(BROKER_URL, "").split() or fleet.declared.broker.endpoints
    if declared:
        return [Endpoint.parse(url) for url in declared]
    private = endpoint(fleet.home)
    # While the private broker is down, another program may have its port: no password is sent there.
    return [private] if private and holder(fleet.home / "run" / "broker.lock") is not None else []


def connect(fleet: Fleet, role: str, inbox: Inbox, log: Log, *, will: DocumentWriter | None = None) -> Bus:
    """A bus for a service (with `will`, and a session that the broker keeps) or for a short-lived client."""

    def identity() -> ClientIdentity:
        username, password = credentials(fleet.home, role)
        # A second client with the same id disconnects the first, so the id can't be guessed without the password.
        secret = hashlib.sha256(f"client id of {role}: {password}".encode()).hexdigest()[:8]
        client_id = f"{fleet.space.prefix}-{fleet.space.host}-{role}-{secret}"
        if will is None:
            return ClientIdentity(f"{client_id}-{os.getpid()}-{id(inbox)}", username, password, clean=True)
        return ClientIdentity(client_id, username, password)

    counter = iter(range(1, sys.maxsize))

    def next_connection() -> int:
        if will is None:
            return next(counter)
        journal = Journal(fleet.journal, role)  # called on the bus's thread, and a journal is for one thread
        try:
            return journal.next_connection()
        finally:
            journal.close()

    return Bus(
        identity,
        lambda: endpoints_of(fleet),
        inbox,
        will=make_will(will) if will else None,
        next_connection=next_connection,
        log=log,
    )
