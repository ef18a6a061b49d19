"""A whole fleet goes up, loses its tmux server, and goes down: the seconds of each, against bare tmux.

The agents are `sleep` programs, with the default `start` settings. The baseline is what tmux alone takes in this run
to start so many sessions, one client each, and to end them.
Run: python -m tests.bench.bench_scale [--agents 500]
"""

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from services.cli import supervision
from shared.contract.ids import new_id
from shared.system.tmux.server import end_server
from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import RunningFleet

BUDGET_S = 15.0
BETWEEN_LOOKS_S = 0.1
SLEEPER = {"sleeper": {"binary": "sleep", "argv": ["{binary}", "100000"], "deliver": "arg"}}


def timed(do: Callable[[], object]) -> float:
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


def bare_tmux(number: int) -> tuple[float, float]:
    """Seconds to start so many sessions, and to end them."""
    socket = f"muster-bench-{new_id()[-10:]}"

    def tmux(*arguments: str) -> None:
        subprocess.run(["tmux", "-L", socket, *arguments], check=True)

    def start() -> None:
        for each in range(number):
            tmux("new-session", "-d", "-s", f"agent-{each:03}", "sleep", "100000")

    def end() -> None:
        for each in range(number):
            tmux("kill-session", "-t", f"=agent-{each:03}")

    try:
        return timed(start), timed(end)
    finally:
        end_server(socket)


def all_run(fleet: RunningFleet) -> bool:
    """Whether each agent has a session, and the registry says which."""
    time.sleep(BETWEEN_LOOKS_S)  # to look costs the same processors
    sessions = {each.agent: each.spawn for each in fleet.tmux.stamps(fleet.fleet.stamp)}
    if len(sessions) < len(fleet.fleet.agents):
        return False
    return sessions == {agent: record.spawn for agent, record in fleet.records().items() if record.is_running}


def cpu_seconds(fleet: RunningFleet) -> dict[str, float]:
    found = {}
    server = (fleet.tmux.server or "").split("-")[0]
    for name, pid in [*supervision.pids(fleet.fleet).items(), ("tmux", int(server))]:
        used = psutil.Process(pid).cpu_times()
        found[name] = round(used.user + used.system, 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=500)
    parser.add_argument("--cpu", action="store_true", help="also print what each service used")
    number = (options := parser.parse_args()).agents
    agents = {f"agent-{each:03}": {"backend": "sleeper"} for each in range(number)}
    took: list[tuple[str, float, float]] = []
    with tempfile.TemporaryDirectory() as directory:
        start_s, end_s = bare_tmux(number)
        fleet = RunningFleet(Path(directory), agents, backends=SLEEPER)

        def stamps() -> set[str]:
            return {each.spawn for each in fleet.tmux.stamps(fleet.fleet.stamp)}

        def up() -> None:
            fleet.up()
            wait_until(lambda: all_run(fleet), "all sessions, and the registry", 300)

        def recovery() -> None:
            before = stamps()
            end_server(fleet.socket)
            fleet.tmux.close()
            wait_until(lambda: all_run(fleet) and not before & stamps(), "all sessions again", 300)

        try:
            took.append(("up → all run and are recorded", timed(up), start_s))
            if options.cpu:
                print("up:", cpu_seconds(fleet))
            took.append(("tmux server killed → all run again and are recorded", timed(recovery), start_s))
            if options.cpu:
                print("and recovery:", cpu_seconds(fleet))
            took.append(("down --agents", timed(lambda: fleet.cli("down", "--agents")), end_s))
            assert not fleet.tmux.look()
            took.append(("up again, each where it was", timed(up), start_s))
        finally:
            fleet.end()
    for what, seconds, baseline in took:
        verdict = "within" if seconds <= BUDGET_S else "OVER"
        print(
            f"{number} agents: {what}: {seconds:.1f} s, {seconds / baseline:.1f} times bare tmux ({baseline:.1f} s);"
            f" {verdict} the budget of {BUDGET_S:g} s at 500"
        )


if __name__ == "__main__":
    main()
