"""`down --agents` ends what it promises, says how far it is, and leaves nothing, whatever happens to it meanwhile."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from services.cli import supervision
from services.spawner.commands.stops import ENDED_IN_A_TURN
from shared.client.processes import down_lock
from shared.messaging.journal import Journal
from shared.system.lock import hold
from tests.fixtures.broker import wait_until
from tests.fixtures.by_hand import run_tmux
from tests.fixtures.fleet import RunningFleet

SLEEPER = {"sleeper": {"binary": "sleep", "argv": ["{binary}", "100000"], "deliver": "arg"}}
AGENTS = {f"agent-{number:02}": {"backend": "sleeper"} for number in range(ENDED_IN_A_TURN + 10)}
STUBBORN = "trap '' HUP TERM; while :; do sleep 1; done"
PROGRESS = f"ended {ENDED_IN_A_TURN} of {len(AGENTS)} agents"


@pytest.fixture(scope="module")
def sleepers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFleet]:
    directory = tmp_path_factory.mktemp("sleepers")
    fleet = RunningFleet(directory, AGENTS, backends=SLEEPER, board={"enabled": False}, handoff={"enabled": False})
    try:
        yield fleet
    finally:
        fleet.end()


@pytest.fixture
def up(sleepers: RunningFleet) -> RunningFleet:
    """All of it runs, as after any `up`."""
    sleepers.up()
    wait_until(lambda: all_run(sleepers), "all agents", 60)
    return sleepers


def all_run(fleet: RunningFleet) -> bool:
    stamps = {each.agent: each.spawn for each in fleet.tmux.stamps(fleet.fleet.stamp)}
    return len(stamps) == len(AGENTS) and stamps == {a: r.spawn for a, r in fleet.records().items() if r.is_running}


def begin(fleet: RunningFleet, *verb: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-P", "-m", "services.cli", "--fleet", str(fleet.path), *verb]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd="/")


def says(process: "subprocess.Popen[str]", words: str) -> None:
    assert process.stderr is not None
    seen = []
    while (line := process.stderr.readline()) and words not in line:
        seen.append(line)
    assert words in line, seen


def server_of(fleet: RunningFleet) -> psutil.Process:
    return psutil.Process(int(run_tmux(fleet.socket, "display-message", "-p", "#{pid}")))


def test_all_are_ended_and_told_of_and_nothing_is_left(up: RunningFleet) -> None:
    server = server_of(up)
    done = up.cli("down", "--agents")
    assert PROGRESS in done.stderr
    assert f"{len(AGENTS)} agents were stopped" in done.stderr
    assert {record.status for record in up.records().values()} == {"stopped"}
    assert supervision.pids(up.fleet) == {}
    wait_until(lambda: not server.is_running(), "no tmux server")


@pytest.mark.parametrize("spawner", ["runs", "is dead"])
def test_a_program_that_outlives_its_session_is_ended_too(tmp_path: Path, spawner: str) -> None:
    stubborn = {"stubborn": {"binary": "sh", "argv": ["{binary}", "-c", STUBBORN], "deliver": "arg"}}
    slow = {"first_wait_s": 600, "longest_wait_s": 600}
    fleet = RunningFleet(tmp_path, {"a": {"backend": "stubborn", "restart": slow}}, backends=stubborn)
    try:
        fleet.up()
        program = psutil.Process(fleet.wait_for_status("a", "running").pid or 0)
        if spawner == "is dead":
            for each in ("supervisor", "spawner"):
                fleet.signal(each, signal.SIGKILL)
        else:
            fleet.signal("spawner", signal.SIGSTOP)  # so that it does not start the agent anew at once
        run_tmux(fleet.socket, "kill-server")
        assert program.is_running(), "it ignores that its terminal is gone"
        with begin(fleet, "down", "--agents") as down:
            if spawner == "runs":
                fleet.signal("spawner", signal.SIGCONT)
            assert down.wait(60) == 0
        wait_until(lambda: not program.is_running(), "its program has ended")
    finally:
        fleet.end()


def test_all_are_ended_though_the_services_die(up: RunningFleet) -> None:
    server, told = server_of(up), len(up.told("spawner"))
    for program in ("supervisor", "spawner"):  # in this order: nobody starts a spawner again
        up.signal(program, signal.SIGKILL)
    wait_until(lambda: not {"supervisor", "spawner"} & supervision.pids(up.fleet).keys(), "neither")
    assert PROGRESS in up.cli("down", "--agents").stderr
    assert supervision.pids(up.fleet) == {}
    wait_until(lambda: not server.is_running(), "no tmux server")
    assert sorted(event["agent"] for event in up.told("spawner")[told:] if event["kind"] == "stopped") == list(AGENTS)
    up.up()
    wait_until(lambda: all_run(up), "all agents", 60)
    assert [event["kind"] for event in up.told("reconciler") if event["kind"] == "missing"] == []


def test_all_are_ended_though_the_fleet_file_is_broken_and_nothing_runs(up: RunningFleet) -> None:
    server, good = server_of(up), up.path.read_text()
    up.cli("down")
    up.path.write_text("agents: [\n")
    try:
        assert "going by the file that was good" in up.cli("down", "--agents").stderr
    finally:
        up.path.write_text(good)
    wait_until(lambda: not server.is_running(), "no tmux server")


def test_what_is_left_of_a_killed_down_ends_nothing_after_the_next_up(up: RunningFleet) -> None:
    sessions = up.tmux.stamps(up.fleet.stamp)
    up.signal("spawner", signal.SIGSTOP)
    down = begin(up, "down", "--agents")
    try:
        says(down, "the spawner has not answered yet")
        with closing(Journal(up.fleet.journal, "spawner")) as journal:
            wait_until(journal.requests.waiting, "the command in the journal")
            down.kill()
            down.wait()
            up.signal("spawner", signal.SIGCONT)
            assert "already up" in up.cli("up").stderr
            wait_until(lambda: not journal.requests.waiting(), "the answer to it")
    finally:
        down.kill()
        down.communicate()
    assert up.tmux.stamps(up.fleet.stamp) == sessions


def test_muster_leaves_a_person_s_server_whoever_ended_the_agents(up: RunningFleet) -> None:
    run_tmux(up.socket, "new-session", "-d", "-s", "mine", "sleep", "100000")
    up.cli("down")
    for session in {pane.session_id for pane in up.tmux.look() if pane.agent}:
        run_tmux(up.socket, "kill-session", "-t", session)
    up.cli("down", "--agents")
    assert run_tmux(up.socket, "list-sessions", "-F", "#{session_name}") == "mine"
    server = server_of(up)
    run_tmux(up.socket, "kill-session", "-t", "=mine")
    wait_until(lambda: not server.is_running(), "no tmux server")


def test_who_ends_sessions_for_a_down_ends_with_it(up: RunningFleet) -> None:
    for program in ("supervisor", "spawner"):
        up.signal(program, signal.SIGKILL)
    wait_until(lambda: not {"supervisor", "spawner"} & supervision.pids(up.fleet).keys(), "neither")
    down = begin(up, "down", "--agents")
    try:
        says(down, "down: ")
        alone = up.signal("spawner", signal.SIGSTOP)
    finally:
        down.kill()
        down.communicate()
    os.kill(alone, signal.SIGCONT)
    wait_until(lambda: "spawner" not in supervision.pids(up.fleet), "it has ended")


def test_all_are_ended_though_the_disk_is_full(up: RunningFleet) -> None:
    server = server_of(up)
    up.runs_under = ("sh", "-c", 'ulimit -f 0; exec "$@"', "sh")  # an error from each write, as on a full disk
    try:
        done = up.cli("down", "--agents")
    finally:
        up.runs_under = ()
    assert f"{up.fleet.home} can't be written: " in done.stderr
    assert supervision.pids(up.fleet) == {}
    wait_until(lambda: not server.is_running(), "no tmux server")


def test_all_are_ended_though_the_journal_was_lost(up: RunningFleet) -> None:
    server = server_of(up)
    up.cli("down")
    for each in up.fleet.home.glob("journal.db*"):
        each.unlink()
    up.cli("down", "--agents")
    wait_until(lambda: not server.is_running(), "no tmux server")


def test_up_waits_for_a_down_and_says_when_a_down_has_ended_it(up: RunningFleet) -> None:
    with hold(down_lock(up.fleet)):
        waits = begin(up, "up")
        says(waits, "waiting for `muster down`")
    says(waits, "already up")
    assert waits.wait() == 0
    up.cli("down")
    ends = begin(up, "up")
    wait_until(lambda: "supervisor" in supervision.pids(up.fleet), "it begins")
    ends.send_signal(signal.SIGSTOP)  # however slow `down` is, this is not yet done
    up.cli("down")
    ends.send_signal(signal.SIGCONT)
    _, said = ends.communicate()
    assert ends.returncode == 1
    assert "the supervisor ended before all services were ready" in said
    assert waits.stderr is not None
    waits.stderr.close()
