"""`muster up`: starts what is not running, and returns when every service is online."""

import argparse
import json
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from services.cli import exit_codes, supervision
from services.cli.fleet_option import is_up, open_fleet, say
from shared.client.presence import read_presence
from shared.client.processes import going_down, programs, switched_on_since
from shared.contract.states import Presence
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.fleet.schema import render, schema
from shared.messaging.broker import find_program
from shared.messaging.journal import JournalReader, JournalUnavailable, why_not_writable
from shared.runtime.bootstrap import endpoints_of
from shared.system.files import write

READY_WITHIN_S = 30.0
ENDED_MEANWHILE = "the supervisor ended before all services were ready; `muster down` does that, or a signal"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the processes as JSON")


def run(options: argparse.Namespace) -> int:
    fleet = open_fleet(options)
    _must_be_storable(fleet)
    _wait_for_down(fleet)
    if is_up(fleet):
        if new := switched_on_since(fleet):
            raise MusterError(
                f"{', '.join(new)}: switched on since the services were started; run `muster down`, then `muster up`"
            )
        waiting = _wait_for_services(fleet)
        if waiting and is_up(fleet):
            hangs = "broker" in supervision.pids(fleet) and read_presence(fleet, 1.0) is None
            mend = "the broker does not answer: run `muster down`, then `muster up`" if hangs else "run: muster doctor"
            raise MusterError(f"up, but not all of it answers: {_last_log_lines(fleet, waiting)}\n{mend}")
    else:
        waiting = list(fleet.services)
    if not waiting:
        say("already up")
    else:
        bring_up(fleet)  # also where a `down` that was interrupted ended it while we looked
        write(fleet.home / "fleet.schema.json", render(schema()))  # of this version, for editors
        say(f"up: {', '.join(programs(fleet))} (logs in {fleet.home / 'logs'})")
        if "board" in fleet.services:
            say("see your agents in the browser with: muster board")
        if read_presence(fleet, 1.0) is None:
            at = ", ".join(map(str, endpoints_of(fleet)))
            say(f"but no broker answers{f' at {at}' if at else ''}: the services go on by polling")
            return exit_codes.NOT_ALL_UP
    if options.json:
        json.dump(supervision.pids(fleet), sys.stdout)
        print()
    return 0


def _must_be_storable(fleet: Fleet) -> None:
    """Raise a sentence where every service would end at once: before anything is started, or ended for that."""
    if why := why_not_writable(fleet.journal):
        raise MusterError(f"{why}; `muster status` and `muster down` work without that")
    if fleet.journal.exists():
        with suppress(JournalUnavailable):  # damaged: it is set aside
            JournalReader(fleet.journal).close()  # of another version: that is raised


def _wait_for_down(fleet: Fleet) -> None:
    """Let a `muster down` that is under way end first: it would end what is started now."""
    if (pid := going_down(fleet)) is not None:
        say(f"waiting for `muster down` (pid {pid}) to end")
    while going_down(fleet) is not None:
        time.sleep(0.1)


def bring_up(fleet: Fleet) -> None:
    """Start broker and services, and wait until each of them is online."""
    if not fleet.declared.broker.endpoints:
        find_program()
    orphans = supervision.pids(fleet)
    if orphans:
        say(f"ending what an earlier supervisor left behind: {', '.join(orphans)}")
        supervision.stop(fleet)
    waiting = _wait_for_services(fleet, supervision.start(fleet))
    if waiting and not (fleet.declared.broker.endpoints and supervision.pids(fleet).keys() >= set(fleet.services)):
        said = f"not ready after {READY_WITHIN_S:.0f} s" if is_up(fleet) else ENDED_MEANWHILE
        raise MusterError(f"{said}: {_last_log_lines(fleet, waiting)}\nrun: muster doctor")


def _wait_for_services(fleet: Fleet, has_ended: Callable[[], bool] = lambda: False) -> list[str]:
    """Wait until every service is online; returns those that are not."""
    deadline = time.monotonic() + READY_WITHIN_S
    waiting = list(fleet.services)
    seen = False
    while waiting and time.monotonic() < deadline:
        seen = seen or has_ended() or is_up(fleet)
        if seen and not is_up(fleet):
            break  # the supervisor itself has ended: nothing starts the services
        bus = read_presence(fleet, 1.0)
        living = supervision.pids(fleet)
        there = bus.services if bus else {}
        waiting = [
            name
            for name in fleet.services
            if name not in there or there[name].status is Presence.OFFLINE or there[name].pid != living.get(name)
        ]
        if waiting:
            time.sleep(0.05)
    return waiting


def _last_log_lines(fleet: Fleet, waiting: list[str]) -> str:
    found = []
    for name in (supervision.SUPERVISOR, "broker", *waiting):
        log = supervision.log_of(fleet, name)
        lines = log.read_text(errors="replace").splitlines()[-2:] if log.exists() else ["it has logged nothing"]
        found += [f"\n  {name}: {line[:300]}" for line in lines]
    return "".join(found)
