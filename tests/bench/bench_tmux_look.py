"""One look at every session and screen over the control connection, against one tmux subprocess per question.

Also how soon a killed session is told. Run: python -m tests.bench.bench_tmux_look [--sessions 100 500]
"""

import argparse
import queue
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from shared.system.tmux import Pane, Tmux
from shared.system.tmux.change_lock import directory_of

BUDGET, BUDGET_AT = 100, 500
KILLS = 50
PROGRAM = ["sh", "-c", "echo '> fix the tests'; echo '* Reading files'; echo; echo '* Working'; exec sleep 100000"]


class Fleet:
    """Sessions on a tmux server of their own."""

    def __init__(self, socket: str, count: int) -> None:
        self.socket = socket
        self.told: queue.SimpleQueue[float] = queue.SimpleQueue()
        self.tmux = Tmux(socket, on_change=lambda: self.told.put(time.perf_counter()), timeout_s=30)
        self.panes = [self._start(f"agent-{place}") for place in range(count)]

    def _start(self, name: str) -> Pane:
        return self.tmux.start(
            session=name, argv=PROGRAM, cwd=Path("/"), env={}, agent=name, spawn=f"{name}-1", fleet="bench"
        )

    def look(self) -> dict[str, str]:
        return self.tmux.screens([pane.pane_id for pane in self.tmux.look()])

    def look_by_subprocess(self) -> None:
        for pane in self.panes:
            self.run("list-panes", "-t", pane.pane_id, "-F", "#{pane_pid} #{pane_current_command} #{pane_title}")
            self.run("capture-pane", "-p", "-t", pane.pane_id)

    def run(self, *arguments: str) -> None:
        subprocess.run(["tmux", "-L", self.socket, *arguments], check=True, stdout=subprocess.DEVNULL)

    def wait_for_screens(self) -> None:
        deadline = time.monotonic() + 60
        while not all("Working" in screen for screen in self.look().values()):
            if time.monotonic() > deadline:
                raise TimeoutError("the sessions did not show their text within 60 s")

    def wait_for_quiet(self) -> None:
        while True:
            try:
                self.told.get(timeout=0.05)
            except queue.Empty:
                return


@contextmanager
def fleet_of(count: int) -> Iterator[Fleet]:
    fleet = Fleet(f"muster-bench-{secrets.token_hex(4)}", count)
    try:
        fleet.wait_for_screens()
        yield fleet
    finally:
        fleet.tmux.close()
        fleet.run("kill-server")
        (directory_of(fleet.socket) / fleet.socket).unlink(missing_ok=True)


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def compare(count: int) -> None:
    with fleet_of(count) as fleet:
        ours = median(seconds(fleet.look) for _ in range(10))
        theirs = seconds(fleet.look_by_subprocess)
    ratio = theirs / ours
    verdict = "within" if ratio >= BUDGET else "OVER"
    budget = f", {verdict} the budget of 1/{BUDGET}" if count >= BUDGET_AT else ""
    print(
        f"{count} sessions, all screens: {ours * 1000:.1f} ms; by subprocesses {theirs * 1000:.0f} ms; "
        f"ratio 1/{ratio:.0f}{budget}"
    )


def time_pushes(count: int) -> None:
    latencies = []
    with fleet_of(count) as fleet:
        killer = Tmux(fleet.socket)
        killer.look()
        for pane in fleet.panes[:KILLS]:
            fleet.wait_for_quiet()
            began = time.perf_counter()
            killer.ask(["kill-session", "-t", pane.session_id])
            latencies.append(fleet.told.get(timeout=10) - began)
        killer.close()
    latencies.sort()
    p99 = latencies[min(len(latencies) - 1, round(0.99 * len(latencies)))]
    print(
        f"killed session told, {count} sessions, {len(latencies)} kills: "
        f"median {median(latencies) * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, nargs="+", default=[100, 500])
    for count in parser.parse_args().sessions:
        compare(count)
    time_pushes(100)


if __name__ == "__main__":
    main()
