"""The board under load: what an event costs, and how long it takes until it is painted in a browser.

Broker, registrar and board are the real processes, and each agent has a tmux session. `board_load` speaks as spawner,
monitor and reconciler: after all agents were started, it tells so many events a second, spread over them. The page is
open in Chromium; it is told when a change is in the DOM and a frame was painted after it. Baselines in the same run: a
plain subscriber that receives the same events, and a naive server that serialises all states for each of them.

`--idle` measures the board while nothing happens, with the page closed and open, against `muster status --json` once
a second. `--profile FILE` writes a flame graph of the board process (`py-spy`, on the PATH or beside Python).
Run: python -m tests.bench.bench_board [--cards 500] [--rate 50] [--seconds 60] [--idle]
"""

import argparse
import contextlib
import json
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import psutil
from paho.mqtt.enums import CallbackAPIVersion

from shared.client.board_access import BoardAccess, page_url, running_address
from shared.fleet import load_fleet
from shared.messaging.broker import credentials
from shared.system.tmux import Tmux
from shared.system.tmux.server import end_server
from tests.bench.bench_drift import percentile
from tests.bench.bench_idle import spent_s
from tests.bench.board_load import LOADS, PlannedEvent, account_of, agent_name, spawn_of, story
from tests.bench.board_page import MeasuredPage, Shown, browser_page
from tests.fixtures.broker import PrivateBroker, wait_until

ROOT = Path(__file__).parents[2]
SHOWN_BUDGET_MS, LONG_TASK_BUDGET_MS = 250.0, 100.0
CPU_BUDGET, MEMORY_BUDGET_MB = 15.0, 120.0
SETTLES_S = 5.0
WARMS_UP_S = 15.0
"""Under load, before anything counts: by then as many agents ask a person as will be all the time."""
NAIVE_MESSAGES = 200
STATUS_RUNS = 5


class Subscriber:
    """A plain paho client that notes when each message came."""

    def __init__(self, broker: PrivateBroker) -> None:
        self.received: list[tuple[float, str, bytes]] = []
        self._client = paho.Client(CallbackAPIVersion.VERSION2)
        self._client.username_pw_set(*credentials(broker.home, "viewer"))
        self._client.on_message = lambda _c, _u, m: self.received.append((time.time(), m.topic, bytes(m.payload)))
        self._client.connect(broker.endpoint.host, broker.endpoint.port)
        self._client.subscribe("muster/#", 1)
        self._client.loop_start()

    def first_times(self, topic_end: str, text_of: str) -> dict[int, float]:
        """When the number of each event was first seen in a field of the documents of a topic."""
        found: dict[int, float] = {}
        for at, topic, payload in list(self.received):
            if topic.endswith(topic_end) and payload:
                number = re.search(r"#(\d+)", json.loads(payload)["data"].get(text_of, ""))
                if number:
                    found.setdefault(int(number[1]), at)
        return found

    def payloads(self, topic_end: str) -> list[tuple[str, bytes]]:
        return [(topic, payload) for _, topic, payload in self.received if topic.endswith(topic_end) and payload]

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


class BoardFleet:
    """A fleet as the board sees one: broker, registrar and board as processes, a tmux session for each agent."""

    def __init__(self, directory: Path, agents: int, rate: float, seconds: float) -> None:
        self._directory, self._agents, self._rate, self._seconds = directory, agents, rate, seconds
        self._socket = f"muster-bench-{directory.name[-8:]}"
        declared = {
            "host": "box",
            "tmux": {"socket": self._socket},
            "agents": {agent_name(n): {"backend": "claude", "account": account_of(n)} for n in range(agents)},
        }
        self.path = directory / "fleet.yaml"
        self.path.write_text(json.dumps(declared))  # JSON is YAML
        self.fleet = load_fleet(self.path)
        self._broker = PrivateBroker(self.fleet.home, self.fleet.space)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.story = story(agents, rate, seconds)

    @contextlib.contextmanager
    def running(self) -> Iterator[Subscriber]:
        """All of it, every agent at work or waiting; ended with the block."""
        tmux = Tmux(self._socket)
        subscriber = None
        try:
            for name in map(agent_name, range(self._agents)):
                tmux.start(
                    session=name,
                    argv=["sleep", "100000"],
                    cwd=self._directory,
                    env={},
                    agent=name,
                    spawn=spawn_of(name),
                    fleet=self.fleet.stamp,
                )
            self._broker.start()
            subscriber = Subscriber(self._broker)
            for service in ("registrar", "board"):
                self._start(service, f"services.{service}", "--fleet", str(self.path))
            wait_until(lambda: running_address(self.fleet.home), "the board serves its page")
            for load in LOADS:
                self._start_load(load.name)
                if load.name == "spawner":
                    self._wait_for_states(subscriber, "starting")
            self._wait_for_states(subscriber, "working", "waiting")
            yield subscriber
        finally:
            for process in self._processes.values():
                process.kill()
                process.wait()
            if subscriber is not None:
                subscriber.close()
            self._broker.close()
            tmux.close()
            end_server(self._socket)

    def _start(self, name: str, *module: str) -> None:
        with (self._directory / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", *module], stdout=log, stderr=log, cwd=ROOT, start_new_session=True
            )

    def _start_load(self, name: str) -> None:
        story_is = ("--agents", str(self._agents), "--rate", str(self._rate), "--seconds", str(self._seconds))
        where = ("--fleet", str(self.path), "--directory", str(self._directory))
        self._start(name, "tests.bench.board_load", name, *where, *story_is)

    def _wait_for_states(self, subscriber: Subscriber, *columns: str) -> None:
        def are_there() -> bool:
            time.sleep(0.5)
            last = dict(subscriber.payloads("/state"))
            cards = [json.loads(payload)["data"] for topic, payload in last.items() if "/box/board/" in topic]
            return sum(card["column"] in columns and "spawn" in card for card in cards) == self._agents

        wait_until(are_there, f"all cards are {columns}; see {self._directory}", 120)

    def process(self, name: str) -> psutil.Process:
        if name == "broker":
            assert self._broker.process is not None
            return psutil.Process(self._broker.process.pid)
        return psutil.Process(self._processes[name].pid)

    def link(self) -> str:
        address = running_address(self.fleet.home)
        assert address is not None
        return f"{page_url(self.fleet, address)}/#{BoardAccess(self.fleet.home).make_link(acts=False)}"

    def tell(self) -> float:
        """Begin the story in a moment; returns when."""
        begin = time.time() + 1.0
        written = self._directory / "begin.new"
        written.write_text(str(begin))
        written.rename(self._directory / "begin")
        return begin

    def told(self) -> dict[int, float]:
        """When each event was told, once all were."""
        files = [self._directory / f"{load.name}.json" for load in LOADS]
        wait_until(lambda: all(file.exists() for file in files[1:]), "the whole story was told", 60)
        return {int(n): at for file in files if file.exists() for n, at in json.loads(file.read_text()).items()}


# --- what the board process costs ---


@dataclass(frozen=True)
class Cost:
    """What a process has spent so far."""

    at: float
    cpu_s: float
    memory_mb: float
    wakeups: int

    @classmethod
    def of(cls, process: psutil.Process) -> "Cost":
        threads = Path(f"/proc/{process.pid}/task").glob("*/status")
        switches = [re.search(r"^voluntary_ctxt_switches:\s+(\d+)", file.read_text(), re.MULTILINE) for file in threads]
        wakeups = sum(int(found[1]) for found in switches if found)
        return cls(time.monotonic(), spent_s(process), process.memory_info().rss / 1e6, wakeups)

    def percent_since(self, before: "Cost") -> float:
        return (self.cpu_s - before.cpu_s) / (self.at - before.at) * 100

    def wakeups_since(self, before: "Cost") -> float:
        """Per second."""
        return (self.wakeups - before.wakeups) / (self.at - before.at)


def naive_percent(states: Sequence[tuple[str, bytes]], rate: float) -> tuple[float, float]:
    """What a server would cost that sends all states for each message; and how many megabytes a second it sends.

    Only its reading and writing of JSON counts: no journal, no broker, no connection.
    """
    known = {topic: json.loads(payload)["data"] for topic, payload in states}
    sent, messages = 0, states[-NAIVE_MESSAGES:]
    began = time.process_time()
    for topic, payload in messages:
        known[topic] = json.loads(payload)["data"]
        sent += len(json.dumps(known).encode())
    spent = time.process_time() - began
    return spent / len(messages) * rate * 100, sent / len(messages) * rate / 1e6


def status_percent(path: Path) -> float:
    """What `muster status --json` costs, once a second."""
    before = _children_s()
    for _ in range(STATUS_RUNS):
        command = [sys.executable, "-m", "services.cli", "--fleet", str(path), "status", "--json"]
        subprocess.run(command, capture_output=True, check=False, cwd=ROOT)
    return (_children_s() - before) / STATUS_RUNS * 100


def _children_s() -> float:
    times = psutil.Process().cpu_times()
    return times.children_user + times.children_system


# --- when it was seen ---


def shown_ms(
    planned: Iterable[PlannedEvent], told: Mapping[int, float], shown: Iterable[Shown]
) -> tuple[list[float], list[float], int]:
    """How long after it was told each change was painted: on its card, and in its column or in the strip.

    An agent's later event stands for an earlier one that it overtook. The third is how many were never seen.
    """
    by_agent: dict[str, list[Shown]] = {}
    for each in shown:
        by_agent.setdefault(each.agent, []).append(each)
    first, placed, lost = list[float](), list[float](), 0
    for event in planned:
        if event.kind not in ("status_changed", "approval_needed"):
            continue
        seen = [each for each in by_agent.get(agent_name(event.agent), ()) if each.number >= event.number]
        if not seen:
            lost += 1
            continue
        first.append((min(each.at for each in seen) - told[event.number]) * 1000)
        placed += [(min(there) - told[event.number]) * 1000] if (there := [e.at for e in seen if e.is_in_place]) else []
    return first, placed, lost


def in_short(took: Sequence[float]) -> str:
    return (
        f"median {percentile(list(took), 0.5):.0f} ms, p95 {percentile(list(took), 0.95):.0f} ms, worst {max(took):.0f}"
    )


def verdict(value: float, budget: float, unit: str) -> str:
    return f"{'within' if value <= budget else 'OVER'} the budget of {budget:g}{unit}"


# --- the runs ---


def under_load(options: argparse.Namespace, directory: Path) -> None:
    fleet = BoardFleet(directory, options.cards, options.rate, WARMS_UP_S + options.seconds)
    with fleet.running() as subscriber, browser_page() as page:
        with page.traced() as opening:
            page.open(fleet.link(), options.cards)
        processes = {name: fleet.process(name) for name in ("board", "registrar", "monitor", "broker")}
        page.wait(SETTLES_S)
        begin = fleet.tell()
        _watch(page, begin + WARMS_UP_S)
        heap = page.heap_mb()  # it stands still meanwhile
        page.wait(1.0)
        page.take()
        began = time.time()
        with profiled(options.profile, processes["board"], options.seconds - 5.0), page.traced() as tasks:
            before, figures = {name: Cost.of(each) for name, each in processes.items()}, page.metrics()
            _watch(page, begin + WARMS_UP_S + options.seconds)
            after, spent = {name: Cost.of(each) for name, each in processes.items()}, page.metrics()
        told = {number: at for number, at in fleet.told().items() if at >= began}
        page.wait(2.0)
        page.take()
        offset, heap_after, nodes = page.clock_offset_s(), page.heap_mb(), page.metrics()["Nodes"]
    planned = [each for each in fleet.story if each.number in told]
    shown = [replace(each, at=each.at - offset) for each in page.shown]
    _report_times(options, planned, told, shown, subscriber)
    longest, late = max(own for _, own in tasks), sum(took > LONG_TASK_BUDGET_MS for took, _ in tasks)
    print(
        f"page: longest task {longest:.0f} ms without waiting for a processor,"
        f" {verdict(longest, LONG_TASK_BUDGET_MS, ' ms')} ({max(took for took, _ in tasks):.0f} ms with it,"
        f" {late} over the budget); {max(own for _, own in opening):.0f} ms while it opened;"
        f" of a core {_shares(figures, spent)};"
        f" heap {heap:.1f} → {heap_after:.1f} MB, nodes {figures['Nodes']:.0f} → {nodes:.0f}"
    )
    naive, naive_mb = naive_percent(subscriber.payloads("/state"), options.rate)
    percents = {name: cost.percent_since(before[name]) for name, cost in after.items()}
    percent, board = percents.pop("board"), after["board"]
    others = ", ".join(f"{name} {each:.1f} %" for name, each in percents.items())
    print(
        f"board process: {percent:.1f} % of a core, {verdict(percent, CPU_BUDGET, ' %')} ({others});"
        f" {before['board'].memory_mb:.1f} → {board.memory_mb:.1f} MB,"
        f" {verdict(board.memory_mb, MEMORY_BUDGET_MB, ' MB')}; {board.wakeups_since(before['board']):.0f} wakeups/s;"
        f" {percent / naive:.2f} of a server that serialises all for each event ({naive:.0f} %, {naive_mb:.0f} MB/s)"
    )


def _watch(page: MeasuredPage, until: float) -> None:
    while (left := until - time.time()) > 0:
        page.wait(min(left, 5.0))
        page.take()


def _shares(before: Mapping[str, float], after: Mapping[str, float]) -> str:
    """What the page spent of a core, and with what."""
    took = after["Timestamp"] - before["Timestamp"]
    names = {
        "all": "TaskDuration",
        "scripts": "ScriptDuration",
        "style": "RecalcStyleDuration",
        "layout": "LayoutDuration",
    }
    return ", ".join(f"{name} {(after[key] - before[key]) / took * 100:.0f} %" for name, key in names.items())


def _report_times(
    options: argparse.Namespace,
    planned: Sequence[PlannedEvent],
    told: Mapping[int, float],
    shown: Sequence[Shown],
    subscriber: Subscriber,
) -> None:
    first, placed, lost = shown_ms(planned, told, shown)
    stages = {
        "subscriber": ("/activity", "reason"),
        "registrar's state": ("/state", "activity_reason"),
        "card's state": ("/state", "reason"),
    }
    times: dict[str, list[float]] = {}
    for stage, where in stages.items():
        seen = subscriber.first_times(*where)
        times[stage] = [(seen[number] - at) * 1000 for number, at in told.items() if number in seen]
        print(f"  told → {stage:<18} {in_short(times[stage])}")
    print(f"  told → in its place       {in_short(placed)} (cards move 8 times a second at most)")
    p95 = percentile(first, 0.95)
    print(
        f"event → pixels, {options.cards} cards, {options.rate:g} events/s for {options.seconds:g} s: {in_short(first)}"
        f" ({len(first)} seen, {lost} not), {verdict(p95, SHOWN_BUDGET_MS, ' ms')};"
        f" {statistics.median(first) / statistics.median(times['subscriber']):.1f} × a plain subscriber"
    )


def idle(options: argparse.Namespace, directory: Path) -> None:
    fleet = BoardFleet(directory, options.cards, 1.0, 0.0)
    with fleet.running():
        board = fleet.process("board")
        time.sleep(SETTLES_S * 3)
        costs = {"closed": _cost_over(board, options, "closed", time.sleep)}
        with browser_page() as page:
            page.open(fleet.link(), options.cards)
            page.wait(SETTLES_S * 3)
            before = page.metrics()
            costs["open"] = _cost_over(board, options, "open", page.wait)
            after = page.metrics()
        status = status_percent(fleet.path)
    busy = (after["TaskDuration"] - before["TaskDuration"]) / (after["Timestamp"] - before["Timestamp"]) * 100
    print(f"the open page itself: {busy:.1f} % of a core")
    for how, (percent, memory_mb, wakeups) in costs.items():
        print(
            f"{options.cards} idle cards, page {how}, {options.seconds:g} s: {percent:.2f} % of a core,"
            f" {memory_mb:.1f} MB, {wakeups:.1f} wakeups/s;"
            f" 1/{status / max(percent, 0.01):.0f} of `muster status --json` once a second"
            f" ({status:.0f} %)"
        )


def _cost_over(board: psutil.Process, options: argparse.Namespace, how: str, wait: Any) -> tuple[float, float, float]:
    profile = options.profile.with_stem(f"{options.profile.stem}-{how}") if options.profile else None
    with profiled(profile, board, options.seconds):
        before = Cost.of(board)
        wait(options.seconds)
        after = Cost.of(board)
    return after.percent_since(before), after.memory_mb, after.wakeups_since(before)


@contextlib.contextmanager
def profiled(file: Path | None, process: psutil.Process, seconds: float) -> Iterator[None]:
    """With a file: samples of the process as a flame graph, or as text if its name ends so."""
    if file is None:
        yield
        return
    program = shutil.which("py-spy") or str(Path(sys.executable).with_name("py-spy"))
    kind = "raw" if file.suffix == ".txt" else "flamegraph"
    command = [program, "record", "--pid", str(process.pid), "--duration", str(int(seconds)), "--rate", "200"]
    sampling = subprocess.Popen(
        [*command, "--format", kind, "--output", str(file), "--nonblocking"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        sampling.wait(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cards", type=int, help="500, or 100 with --idle")
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--idle", action="store_true")
    parser.add_argument("--profile", type=Path, metavar="FILE")
    options = parser.parse_args()
    options.cards = options.cards or (100 if options.idle else 500)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that its processes end with it
    with tempfile.TemporaryDirectory() as directory:
        (idle if options.idle else under_load)(options, Path(directory))


if __name__ == "__main__":
    main()
