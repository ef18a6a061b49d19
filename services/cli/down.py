"""`muster down`: stops every process of the fleet; agents go on unless --agents.

The spawner ends the agents' sessions, and tells how far it is. If it does not, a spawner alone ends what is left once
the services are down.
"""

import argparse
import json
import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from registry import BadRegistry, RegistryFile
from services.cli import exit_codes, supervision
from services.cli.fleet_option import is_up, open_fleet_leniently, say
from services.cli.request import ask
from services.cli.words import plain
from shared.client.processes import down_lock
from shared.contract.commands import StopAll
from shared.contract.states import Status
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.messaging.journal import why_not_writable
from shared.system.lock import AlreadyRunning, LockHandle, hold
from shared.system.processes import ProcessesOnDemand
from shared.system.tmux import Pane, Tmux

RECORDED_WITHIN_S = 3.0
PROGRESS_WITHIN_S = 20.0
NAMED = 10


class NotEnded(MusterError):
    """Sessions of agents are left."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--agents", action="store_true", help="end the agents' sessions too; `up` starts them again")
    parser.add_argument("--json", action="store_true", help="print what was ended as JSON")


def run(options: argparse.Namespace) -> int:
    fleet, fault = open_fleet_leniently(options)
    if fault:
        say(f"{fault}\ngoing by the file that was good at the last `up`")
    try:
        ended = bring_down(fleet, agents=options.agents)
    except KeyboardInterrupt:
        say(
            f"interrupted: run `muster down{' --agents' if options.agents else ''}` again; until then services may run,"
        )
        say("and start again agents that were ended: `muster status` says what is so")
        return exit_codes.INTERRUPTED
    if options.json:
        print(json.dumps({"ended": ended}))
    return 0


def bring_down(fleet: Fleet, *, agents: bool) -> list[str]:
    """End the processes, with `agents` the agents too; returns what was ended. Raises NotEnded."""
    if not fleet.home.exists():  # it was never up
        say("nothing was running")
        return []
    unwritable = why_not_writable(fleet.journal)
    held: AbstractContextManager[object] = nullcontext()
    try:
        held = held if unwritable else _alone(fleet)
    except OSError as error:  # a full disk
        unwritable = f"{fleet.home} can't be written: {error.strerror}"
    with held:
        running = sessions(fleet)
        left_alone: set[str] | None = None
        if agents and unwritable:
            say(f"{unwritable}; no service can take a command until then, so the sessions are ended without them")
        elif agents and is_up(fleet):
            left_alone = _end_by_spawner(fleet)
        ended = supervision.stop(fleet)
        say(f"down: {', '.join(ended)}" if ended else "nothing was running" + (" but agents" if running else ""))
        if agents and unwritable:
            _kill_sessions(fleet)
        elif agents:
            _end_what_is_left(fleet, left_alone)
        elif running:
            say(f"agents go on in tmux: {_named(running)} (end them with: muster down --agents)")
        _end_unused_keeper(fleet)
        return ended


def _kill_sessions(fleet: Fleet) -> None:
    """End the sessions that Muster started, when no service runs that would start them again.

    Which of the others were only found is in nobody's reach then: all of them are left alone.
    """
    tmux = Tmux(fleet.declared.tmux.socket)
    try:
        panes = [pane for pane in tmux.look() if pane.fleet == fleet.stamp]
        left = [pane for pane in panes if pane.pane_only or not (pane.dead or _is_started(pane))]
        for pane in panes:
            if pane not in left:
                tmux.kill(pane.target, spawn=pane.spawn)
    finally:
        tmux.close()
    if left:
        say(f"left alone, for Muster did not start them: {_named(sorted(pane.agent or pane.session for pane in left))}")


def _is_started(pane: Pane) -> bool:
    """Whether Muster has started what runs in it: the program's environment says so."""
    processes = ProcessesOnDemand()
    return any(processes.environment(each).get("MUSTER_SPAWN") == pane.spawn for each in processes.below(pane.pid)[:1])


def sessions(fleet: Fleet) -> list[str]:
    """The agents of this fleet that tmux has."""
    return sorted(pane.agent for pane in _panes(fleet) if pane.agent)


def _alone(fleet: Fleet) -> LockHandle:
    """One `down` at a time. The spawner goes by this lock too: what a `down` asked for ends with it."""
    told = False
    while True:
        try:
            return hold(down_lock(fleet), "`muster down`")
        except AlreadyRunning as other:
            if not told:
                say(f"waiting for another `muster down` (pid {other.pid})")
            told = True
            time.sleep(0.1)


def _end_by_spawner(fleet: Fleet) -> set[str] | None:
    """Have the running spawner end all sessions; returns the agents that it left alone, None if it did not do it."""
    try:
        command = StopAll(for_now=True, down=os.getpid())
        reply = ask(fleet, command, wait_s=PROGRESS_WITHIN_S, while_it_proceeds=True)
    except MusterError as error:
        say(f"{error}\nthe spawner did not end all sessions: ending the services first, then the rest")
        return None
    say(plain(reply.said))
    if not reply.ok:
        return None
    _wait_until_recorded(fleet, {pane.spawn for pane in _panes(fleet)})
    return set(reply.result.get("left_alone", []))


def _end_what_is_left(fleet: Fleet, left_alone: set[str] | None) -> None:
    """End all sessions while no service runs, and programs whose session is gone."""
    try:
        if left_alone is not None and not {pane.agent for pane in _look(fleet)} - left_alone:
            return
        if not fleet.journal.exists() and not _look(fleet):
            return  # never up, or nothing of it is left
        code = supervision.run_alone(fleet, "spawner", "--end-sessions", tell=say, silent_s=PROGRESS_WITHIN_S)
        if code != 0:  # the fleet file is broken, say, or the disk is full
            _kill_sessions(fleet)
        left = [] if code == 0 else sorted(pane.agent for pane in _look(fleet) if pane.agent)
    except MusterError as error:
        raise NotEnded(
            f"the services are down, but whether agents still run is not known: {error}; when tmux answers, run"
            " `muster down --agents` again"
        ) from error
    if left:
        raise NotEnded(
            f"the services are down, but {len(left)} agents still run in tmux: {_named(left)}; look at"
            f" {supervision.log_of(fleet, 'spawner')}, then run `muster down --agents` again"
        )


def _end_unused_keeper(fleet: Fleet) -> None:
    """Nothing of ours stays in tmux when no agent does, whoever ended the agents."""
    tmux = Tmux(fleet.declared.tmux.socket)
    try:
        tmux.end_unused_keeper()
    except MusterError as error:
        say(str(error))
    finally:
        tmux.close()


def _panes(fleet: Fleet) -> list[Pane]:
    try:
        return _look(fleet)
    except MusterError as error:
        say(str(error))
        return []


def _look(fleet: Fleet) -> list[Pane]:
    tmux = Tmux(fleet.declared.tmux.socket)
    try:
        return [pane for pane in tmux.look() if pane.fleet == fleet.stamp]
    finally:
        tmux.close()


def _named(agents: Sequence[str]) -> str:
    more = f" and {len(agents) - NAMED} more" if len(agents) > NAMED else ""
    return ", ".join(agents[:NAMED]) + more


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
