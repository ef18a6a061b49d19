"""`muster doctor`: every check says what it found and, where something is wrong, how to mend it."""

import argparse
import errno
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from services.cli import supervision
from services.cli.words import Paint, plain
from shared.agents.parts import FOLDER
from shared.client.presence import read_presence
from shared.contract.states import Presence
from shared.errors import MusterError
from shared.fleet import Fleet, find_fleet_file, load_fleet
from shared.fleet import launch_needs as needs
from shared.messaging.broker import find_program
from shared.messaging.journal import JournalUnavailable, why_not_writable
from shared.messaging.journal.read_access import OtherVersion, ReadOnlyDatabase
from shared.runtime.bootstrap import endpoints_of
from shared.system.tmux import Tmux
from shared.system.tmux.server import tmux_version

OLDEST_TMUX = (3, 2)
OLDEST_GIT = (2, 29)
LEAST_FREE_BYTES = 200 * 1024 * 1024


@dataclass(frozen=True)
class Finding:
    check: str
    ok: bool
    found: str
    mend: str = ""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def run(options: argparse.Namespace) -> int:
    findings = list(examine(options.fleet))
    if options.json:
        json.dump([asdict(finding) for finding in findings], sys.stdout, indent=2)
        print()
    else:
        paint = Paint(sys.stdout)
        for finding in findings:
            mark = paint.good("ok  ") if finding.ok else paint.bad("FAIL")
            print(f"{mark} {finding.check:<9} {finding.found}" + (f"\n     -> {finding.mend}" if finding.mend else ""))
    return 0 if all(finding.ok for finding in findings) else 1


def examine(given: str | None) -> Iterator[Finding]:
    yield _python()
    yield _tmux()
    yield _broker_program()
    try:
        fleet = load_fleet(find_fleet_file(given))
    except MusterError as error:
        yield Finding("fleet", False, str(error), "mend the file; `muster init` writes a good one")
        return
    yield Finding("fleet", True, f"{fleet.path}: {len(fleet.declared.agents)} agents")
    for check in (agents, loops, _tmux_answers, _files, _space, _journal, _bus_and_services):
        yield from check(fleet)


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", sys.version_info >= (3, 11), version, "" if sys.version_info >= (3, 11) else "use 3.11+")


def _tmux() -> Finding:
    try:
        text, numbers = tmux_version()
    except MusterError as error:
        return Finding("tmux", False, str(error), "apt-get install tmux, or brew install tmux")
    good = numbers >= OLDEST_TMUX
    return Finding("tmux", good, text, "" if good else "install tmux 3.2 or newer")


def _broker_program() -> Finding:
    try:
        program = find_program()
    except MusterError as error:
        return Finding("broker", False, str(error), "or name a broker of your own in the fleet file")
    return Finding("broker", True, f"{program.kind} at {program.path}")


def agents(fleet: Fleet) -> Iterator[Finding]:
    """Whether each agent has what it needs to start. The same fault of several agents is one finding."""
    faults: dict[str, list[str]] = {}
    for name in fleet.agents:
        for said in _faults(fleet, name):
            faults.setdefault(said, []).append(name)
    for said, names in faults.items():
        found, _, mend = said.rpartition("; ")
        yield Finding("agents", False, f"{', '.join(names)}: {found or said}", mend if found else "mend the file")
    if not faults:
        yield Finding("agents", True, f"{len(fleet.agents)} have what they need to start")


def _faults(fleet: Fleet, agent: str) -> Iterator[str]:
    declared, backend = fleet.agents[agent], fleet.profile(agent)
    for need in (needs.workspace_of, needs.prompt_of):
        try:
            need(fleet, agent)
        except MusterError as error:
            yield str(error)
    path = os.environ.get("PATH")
    try:
        path = needs.variables_of(fleet, agent, backend, os.environ).get("PATH")
    except MusterError as error:
        yield str(error)
    values = {"python": sys.executable, "backends": str(FOLDER), "agent": agent}
    try:
        needs.program_of(fleet, declared.backend, backend, values, path)
    except MusterError as error:
        yield str(error)


def loops(fleet: Fleet) -> Iterator[Finding]:
    """Whether loops have what they need: git, and their templates. `phase show` tells whether a remote answers."""
    declared = fleet.declared.loops
    if not declared:
        return
    found, good = _git_version()
    if not good:
        yield Finding("loops", False, found, "install git 2.29 or newer: apt-get install git, or brew install git")
    named = [
        (name, path)
        for name, loop in declared.items()
        for path in (loop.kickoff, *(phase.kickoff for phase in loop.phases), *loop.role_prompts.values())
        if path is not None
    ]
    missing = [f"{path} of {name}" for name, path in dict.fromkeys(named) if not fleet.resolve(path).is_file()]
    if missing:
        yield Finding("loops", False, f"templates that are not there: {', '.join(missing)}", "write them")
    elif good:
        yield Finding("loops", True, f"{len(declared)} have what they need; {found}")


def _git_version() -> tuple[str, bool]:
    """git's version, and whether it is new enough."""
    try:
        said = subprocess.run(
            ["git", "--version"], capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        return f"git can't be run: {error}", False
    numbers = tuple(map(int, re.findall(r"\d+", said)[:2]))
    return said, numbers >= OLDEST_GIT


def _tmux_answers(fleet: Fleet) -> Iterator[Finding]:
    socket = fleet.declared.tmux.socket
    tmux = Tmux(socket)
    try:
        panes = tmux.look()
        yield Finding("sessions", True, f"tmux socket {socket}: {len({pane.session_id for pane in panes})} sessions")
    except MusterError as error:
        yield Finding("sessions", False, str(error), f"look at the tmux server of socket {socket}")
    finally:
        tmux.close()


def _files(fleet: Fleet) -> Iterator[Finding]:
    if not fleet.home.exists():
        yield Finding("files", True, f"{fleet.home} is made by the first `muster up`")
        return
    if why := why_not_writable(fleet.journal):
        found, _, _ = why.partition("; ")
        disk = f"`findmnt -T {fleet.home}` names its disk, `dmesg` what befell it; mount -o remount,rw when it is sound"
        rights = f"as its owner or root: chmod -R u+rwX {fleet.home}, or chown -R it to the user who runs the services"
        yield Finding("files", False, found, disk if os.strerror(errno.EROFS) in found else rights)
        return
    private = [fleet.home, fleet.home / "credentials", fleet.journal, fleet.registry]
    loose = [str(path) for path in private if path.exists() and _is_open_to_others(path)]
    mend = f"chmod go-rwx {' '.join(loose)}" if loose else ""
    yield Finding("files", not loose, f"{fleet.home} is private" if not loose else f"readable by others: {loose}", mend)


def _is_open_to_others(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o077)


def _space(fleet: Fleet) -> Iterator[Finding]:
    free = shutil.disk_usage(fleet.path.parent).free
    writable = os.access(fleet.path.parent, os.W_OK)
    mend = "" if free > LEAST_FREE_BYTES else "make room: the journal and the logs need it"
    yield Finding(
        "disk",
        free > LEAST_FREE_BYTES and writable,
        f"{free / 2**30:.1f} GiB free" + ("" if writable else f"; {fleet.path.parent} can't be written"),
        mend if writable else f"make {fleet.path.parent} writable, for .muster lives there",
    )


def _journal(fleet: Fleet) -> Iterator[Finding]:
    if not fleet.journal.exists():
        yield Finding("journal", True, "none yet")
        return
    anew = "the services begin a new one at once" if supervision.SUPERVISOR in supervision.pids(fleet) else "muster up"
    mend = f"mv {fleet.journal} {fleet.journal}.bad, then {anew}; who was stopped is read from {fleet.registry.name}"
    try:
        with closing(ReadOnlyDatabase(fleet.journal)) as database, database.reading() as connection:
            (verdict,) = connection.execute("PRAGMA quick_check").fetchone()
            (waiting,) = connection.execute("SELECT coalesce(sum(seq - published), 0) FROM source").fetchone()
    except OtherVersion as error:
        found, _, mend = str(error).partition("; ")
        yield Finding("journal", False, found, mend)
    except JournalUnavailable as error:
        yield Finding("journal", False, str(error), mend if error.is_damage else "")
    else:
        found = f"{verdict}, {waiting} events not yet published"
        yield Finding("journal", verdict == "ok", found, "" if verdict == "ok" else mend)


def _bus_and_services(fleet: Fleet) -> Iterator[Finding]:
    endpoints = endpoints_of(fleet)
    bus = read_presence(fleet, 2.0) if endpoints else None
    found = f"{', '.join(map(str, endpoints)) or 'none yet'} {'does not answer' if bus is None else 'answers'}"
    pids = supervision.pids(fleet)
    mend = "muster up (or look at .muster/logs/broker.log)" if bus is None else ""
    if bus is None and "broker" in pids:
        mend = f"its process (pid {pids['broker']}) runs and hangs: muster down, then muster up"
    yield Finding("bus", bus is not None, found, mend)
    supervised = supervision.SUPERVISOR in pids
    found = "runs" if supervised else "does not run: nobody restarts what dies"
    yield Finding("supervisor", supervised, found, "" if supervised else "muster up")
    for name in fleet.services:
        state = bus.services.get(name) if bus else None
        if name not in pids:
            yield Finding(name, False, "does not run", "muster up")
        elif state is None or state.status is Presence.OFFLINE:
            yield Finding(name, False, f"runs (pid {pids[name]}) but the bus does not know it", "see the bus above")
        else:
            good = state.status is Presence.ONLINE
            mend = "" if good else f"look at {supervision.log_of(fleet, name)}"
            yield Finding(name, good, f"{state.status.value} (pid {pids[name]}) {plain(state.reason)}".rstrip(), mend)
