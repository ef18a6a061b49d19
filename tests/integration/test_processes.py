"""Real processes: seen, told apart, and gone."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from shared.agents.recognition import agent_in
from shared.fleet.profiles import shipped
from shared.system.processes import (
    Processes,
    ProcessesOnDemand,
    arguments_of,
    cwd_of,
    environment_of,
    is_there,
    opened_by,
    table,
)
from tests.fixtures.broker import wait_until

WAITS = "print('up', flush=True); input()"


@contextmanager
def running(*argv: str | Path, cwd: Path | None = None, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """A program that has said `up`, and waits until its input ends."""
    process = subprocess.Popen(
        list(argv), cwd=cwd, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        yield process
    finally:
        process.communicate()


def script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_look_agrees_with_psutil(tmp_path: Path) -> None:
    with running(sys.executable, "-c", WAITS) as child:
        found = Processes.look().get(child.pid)
        known = psutil.Process(child.pid)
        assert found is not None
        assert (found.parent, found.name) == (os.getpid(), known.name())
        assert abs(found.started - known.create_time()) < 1.5
        assert is_there(found)
    assert not is_there(found)


def test_the_other_way_of_looking_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is where there is no /proc."""
    with running(sys.executable, "-c", WAITS) as child:
        monkeypatch.setattr(psutil, "LINUX", False)
        processes = Processes.look()
        found = processes.get(child.pid)
        assert found is not None
        assert (found.parent, found.ticks) == (os.getpid(), None)
        assert processes.below(child.pid) == [found]
        assert list(processes.arguments(found)) == [sys.executable, "-c", WAITS]


def test_what_a_process_was_started_with(tmp_path: Path) -> None:
    holds = "held = open('held.txt', 'a'); held.write('12345'); held.flush()\n" + WAITS
    with running(sys.executable, "-c", holds, cwd=tmp_path, COLOUR="blue") as child:
        found = Processes.look().get(child.pid)
        assert found is not None
        assert environment_of(found)["COLOUR"] == "blue"
        assert cwd_of(found) == tmp_path
        assert [file.path for file in opened_by(found)] == [tmp_path / "held.txt"]
        assert [file.position for file in opened_by(found, ".log", ".txt")] == [5 if psutil.LINUX else None]
        assert opened_by(found, ".log") == []
        by_psutil = [Path(file.path) for file in psutil.Process(child.pid).open_files()]
        assert by_psutil == [file.path for file in opened_by(found)]
        (tmp_path / "held.txt").unlink()
        assert opened_by(found) == []
    assert (list(arguments_of(found)), environment_of(found), cwd_of(found), opened_by(found)) == ([], {}, None, [])


def test_a_reused_number_is_not_asked(tmp_path: Path) -> None:
    with running(sys.executable, "-c", WAITS, cwd=tmp_path, COLOUR="blue") as child:
        found = Processes.look().get(child.pid)
        assert found is not None
        earlier = replace(found, started=found.started - 10, ticks=(found.ticks or 1000) - 1000)
        assert (list(arguments_of(earlier)), environment_of(earlier), cwd_of(earlier)) == ([], {}, None)


def test_a_name_may_hold_anything(tmp_path: Path) -> None:
    odd = script(tmp_path / "a) R 1 (b", "#!/bin/sh\necho up\nread line\n")
    with running(odd) as child:
        found = Processes.look().get(child.pid)
        assert found is not None
        assert (found.name, found.parent) == ("a) R 1 (b", os.getpid())


def test_one_that_has_ended_and_was_not_fetched_is_not_there() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    try:
        wait_until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE, "its end")
        assert Processes.look().below(child.pid) == []
    finally:
        child.wait()


def test_an_agent_is_found_below_the_shell_that_somebody_typed_into(tmp_path: Path) -> None:
    agent = script(tmp_path / "claude", "#!/bin/sh\necho up\nread line\n")
    shell = script(tmp_path / "start", f"#!/bin/sh\n{agent} --resume codex\n")
    with running(shell) as child:
        processes = Processes.look()
        answer = agent_in(processes, shipped(), child.pid)
        assert answer is not None
        assert answer[0] == "claude"
        assert answer[1].parent == child.pid


STARTS_IN_A_THREAD = """
import subprocess, sys, threading
started = []
start = lambda: started.append(subprocess.Popen(["sleep", "1000"]))
thread = threading.Thread(target=lambda: (start(), print("up", flush=True), sys.stdin.read()))
thread.start(); thread.join(); started[0].kill(); started[0].wait()
"""


def test_what_runs_below_a_process_is_found_without_all_others() -> None:
    """Also what a thread started that is not the first, which the system lists apart."""
    with running(sys.executable, "-c", STARTS_IN_A_THREAD) as child:
        whole, part = Processes.look(), ProcessesOnDemand()
        assert part.below(child.pid) == whole.below(child.pid)
        assert [process.name for process in part.below(child.pid)][1:] == ["sleep"]
        assert part.get(os.getpid()) == whole.get(os.getpid())
        assert {process.pid for process in part} >= {child.pid, os.getpid()}
    assert ProcessesOnDemand().below(child.pid) == []


def test_where_the_system_lists_no_children_all_processes_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "children_of", lambda _pid: None)
    with running(sys.executable, "-c", STARTS_IN_A_THREAD) as child:
        assert len(ProcessesOnDemand().below(child.pid)) == 2
