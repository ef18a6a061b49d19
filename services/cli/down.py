"""`muster down`: stops every process of the fleet; agents go on unless --agents."""

import argparse
import json
import time

from registry import BadRegistry, RegistryFile
from services.cli import supervision
from services.cli.fleet_option import is_up, open_fleet_leniently, say
from services.cli.request import ask
from services.cli.up import bring_up
from shared.contract.commands import StopAll
from shared.contract.states import Status
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.messaging.journal import why_not_writable
from shared.system.tmux import Pane, Tmux

RECORDED_WITHIN_S = 3.0


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--agents", action="store_true", help="end the agents' sessions too; `up` starts them again")
    parser.add_argument("--json", action="store_true", help="print what was ended as JSON")


def run(options: argparse.Namespace) -> int:
    fleet, fault = open_fleet_leniently(options)
    if fault:
        say(f"{fault}\ngoing by the file that was good at the last `up`")
    ended = bring_down(fleet, agents=options.agents)
    if options.json:
        print(json.dumps({"ended": ended}))
    return 0


def bring_down(fleet: Fleet, *, agents: bool) -> list[str]:
    """End the processes, with `agents` the agents too; returns what was ended."""
    running, unwritable = sessions(fleet), ""
    if agents and (running or is_up(fleet)):
        if unwritable := why_not_writable(fleet.journal):
            say(f"{unwritable}; no service can take a command until then, so the sessions are ended without them")
        else:
            _have_agents_ended(fleet)
    ended = supervision.stop(fleet)
    if agents and unwritable:
        _kill_sessions(fleet)
    say(f"down: {', '.join(ended)}" if ended else "nothing was running")
    if running and not agents:
        say(f"agents go on in tmux: {', '.join(running)} (end them with: muster down --agents)")
    return ended


def _have_agents_ended(fleet: Fleet) -> None:
    if not is_up(fleet):
        say("starting the services, for only the spawner ends sessions")
        bring_up(fleet)
    say(ask(fleet, StopAll(for_now=True, by="muster down")).said)
    _wait_until_recorded(fleet, {pane.spawn for pane in _panes(fleet)})


def _kill_sessions(fleet: Fleet) -> None:
    """End the sessions that Muster started, when no service runs that would start them again."""
    tmux = Tmux(fleet.declared.tmux.socket)
    try:
        for pane in tmux.look():
            if pane.fleet == fleet.stamp and not pane.pane_only:
                tmux.kill(pane.target, spawn=pane.spawn)
    finally:
        tmux.close()


def sessions(fleet: Fleet) -> list[str]:
    """The agents of this fleet that tmux has."""
    return sorted(pane.agent for pane in _panes(fleet) if pane.agent)


def _panes(fleet: Fleet) -> list[Pane]:
    tmux = Tmux(fleet.declared.tmux.socket)
    try:
        return [pane for pane in tmux.look() if pane.fleet == fleet.stamp]
    except MusterError as error:
        say(str(error))
        return []
    finally:
        tmux.close()


def _wait_until_recorded(fleet: Fleet, left: set[str | None]) -> None:
    """Wait until no session is recorded as running but those that are left, by their spawn ids."""
    deadline = time.monotonic() + RECORDED_WITHIN_S
    while time.monotonic() < deadline:
        try:
            records = RegistryFile(fleet.registry).records().values()
        except BadRegistry:
            return
        if {record.spawn for record in records if record.status is Status.RUNNING} <= left:
            return
        time.sleep(0.05)
