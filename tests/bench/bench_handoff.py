"""What watching git remotes costs, and how soon a push reaches an agent.

Cost: a whole fleet with so many loops, each on a local remote of its own, and one broken: CPU of handoff and of all git
that it starts. The baseline is a `git fetch` in a clone for each remote and poll.
Latency: from the end of `git push` to the event at a subscriber, and to the text in the input box (`sent`); told by a
`poll` command as a hook of the remote would send it, or by Muster's own look at refs. The baseline is what git takes to
ask and fetch once by hand.
Run: python -m tests.bench.bench_handoff [--remotes 50] [--seconds 60] [--pushes 20]
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from tests.fixtures.broker import Client, wait_until
from tests.fixtures.fleet import RunningFleet
from tests.fixtures.repositories import Clone, bare, git

BUDGET = 2.0
POLL_S = 20.0


def remotes_in(directory: Path, count: int) -> list[Clone]:
    clones = []
    for number in range(count):
        clone = Clone(bare(directory / f"r{number}.git"), directory / f"c{number}")
        clone.commit("begin", README_md="x\n")
        clone.push()
        clones.append(clone)
    return clones


def fleet_of(directory: Path, count: int) -> RunningFleet:
    loops: dict[str, Any] = {
        f"l{number}": {
            "remote": f"r{number}.git",
            "poll_s": POLL_S,
            "roles": {"build": "builder"},
            "patterns": {"claim": {"to": "build"}},
        }
        for number in range(count)
    }
    loops["broken"] = {**loops["l0"], "remote": "nowhere.git"}
    return RunningFleet(directory, {"builder": {}}, loops=loops)


def spent_s(process: psutil.Process) -> float:
    return float(sum(process.cpu_times()[:4]))  # what its children spent is in it, once they have ended


def cost_percent(fleet: RunningFleet, seconds: float) -> float:
    process = psutil.Process(fleet.pid("handoff"))
    before, began = spent_s(process), time.monotonic()
    time.sleep(seconds)
    return (spent_s(process) - before) / (time.monotonic() - began) * 100


def naive_percent(clones: list[Clone]) -> float:
    """A fetch in each clone, once in a poll."""
    before = spent_s(psutil.Process())
    for clone in clones:
        git(clone.path, "fetch", "--quiet", "origin")
    return (spent_s(psutil.Process()) - before) / POLL_S * 100


def by_hand_s(clone: Clone, mirror: Path) -> float:
    """What git itself takes to learn that something moved, and to have it."""
    began = time.monotonic()
    git(mirror, "ls-remote", str(clone.remote), "refs/heads/main")
    git(mirror, "fetch", "--quiet", str(clone.remote), "+refs/heads/main:refs/heads/main")
    return time.monotonic() - began


def latencies(
    fleet: RunningFleet, client: Client, clone: Clone, pushes: int, tell: Callable[[], None]
) -> tuple[list[float], list[float]]:
    """To the event, and to the text in the box."""
    events, texts = [], []
    for number in range(pushes):
        wait_until(lambda: "working" not in fleet.screen("builder"), "the agent is idle", 30)
        known = [_count(client, end) for end in ("loop/l0/event", "lifecycle")]
        clone.commit(f"claim: {number}")
        clone.push()
        pushed = time.monotonic()
        tell()
        wait_until(lambda: _count(client, "loop/l0/event") > known[0], "the event", 60)  # noqa: B023
        events.append(time.monotonic() - pushed)
        wait_until(lambda: _count(client, "lifecycle") > known[1], "the text", 60)  # noqa: B023
        texts.append(time.monotonic() - pushed)
    return events, texts


def _count(client: Client, end: str) -> int:
    return sum(1 for message in list(client.received) if message.topic.endswith(end))


def show(how: str, events: list[float], texts: list[float], by_hand: float) -> None:
    event, text = statistics.median(events), statistics.median(texts)
    print(
        f"  {how}: event {event * 1000:.0f} ms (worst {max(events) * 1000:.0f}), text in the box {text * 1000:.0f} ms"
        f" (worst {max(texts) * 1000:.0f}); {event / by_hand:.1f} and {text / by_hand:.1f} times git by hand"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--remotes", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--pushes", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        clones = remotes_in(directory, options.remotes)
        fleet = fleet_of(directory, options.remotes)
        try:
            fleet.up()
            wait_until(
                lambda: "remote_unreachable" in [each["kind"] for each in fleet.told("handoff")], "all asked", 60
            )
            time.sleep(POLL_S)
            cost, naive = cost_percent(fleet, options.seconds), naive_percent(clones)
            client = fleet.client("viewer")
            client.subscribe("muster/#")
            mirror = bare(directory / "mirror.git")
            by_hand = statistics.median(by_hand_s(clones[0], mirror) for _ in range(10))
            polled = latencies(
                fleet, client, clones[0], options.pushes, lambda: fleet.command("poll", json.dumps({"loop": "l0"}))
            )
            hinted = latencies(fleet, client, clones[0], options.pushes, lambda: None)
        finally:
            fleet.end()
    print(
        f"{options.remotes} remotes every {POLL_S:g} s, one more broken, {options.seconds:g} s: {cost:.2f} % of a core,"
        f" {'within' if cost <= BUDGET else 'OVER'} the budget of {BUDGET:g} %;"
        f" 1/{naive / cost:.1f} of a fetch for each ({naive:.2f} %)"
    )
    print(f"push -> agent, medians of {options.pushes}; git by hand asks and fetches in {by_hand * 1000:.0f} ms")
    show("told by `poll`", *polled, by_hand)
    show("seen by itself", *hinted, by_hand)


if __name__ == "__main__":
    main()
