"""What a fleet costs whose agents are idle, or at work and print now and then: Muster's processes and tmux.

In shares of one core and in memory. What tmux spends on the agents themselves is not Muster's: it is measured after
`muster down`, which leaves them. The baseline is a tool that asks tmux for each screen by a subprocess each second.
Run: python -m tests.bench.bench_idle [--agents 10 100 500] [--kind "idle" "at work"] [--seconds 30]
"""

import argparse
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import psutil

from services.cli import supervision
from shared.client.presence import read_presence
from tests.bench.agent_load import Kind, fleet_of, printing
from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import RunningFleet

MEMORY_BUDGET_MB = 300.0
SETTLES_S = {Kind.IDLE: 75.0, Kind.AT_WORK: 65.0}
"""Agents are looked at more often while they are young."""
ACTIVITY = {Kind.IDLE: "waiting", Kind.AT_WORK: "working"}
TMUX = "tmux"


@dataclass(frozen=True)
class CpuBudget:
    """Percent of one core."""

    services: float
    tmux: float


BUDGETS = {
    (Kind.IDLE, 100): CpuBudget(1.0, 1.0),
    (Kind.AT_WORK, 100): CpuBudget(3.0, 3.0),
    (Kind.AT_WORK, 500): CpuBudget(12.0, 12.0),
}
TOGETHER = {(Kind.AT_WORK, 500): 12.0}
"""Services and tmux."""


def _settled(fleet: RunningFleet, kind: Kind) -> bool:
    time.sleep(1)  # reading all of it again and again would keep the services from their work
    return all(each.activity == ACTIVITY[kind] for each in fleet.records().values())


def processes_of(fleet: RunningFleet) -> dict[str, psutil.Process]:
    return {name: psutil.Process(pid) for name, pid in supervision.pids(fleet.fleet).items()}


def tmux_of(fleet: RunningFleet) -> psutil.Process:
    try:
        return psutil.Process(int(fleet.tmux.ask(("display-message", "-p", "#{pid}"))[0].text))
    finally:
        fleet.tmux.close()


def spent_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def percents(there: Mapping[str, psutil.Process], seconds: float) -> dict[str, float]:
    """Percent of one core that each process takes for so long."""
    before = {name: spent_s(process) for name, process in there.items()}
    began = time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    return {name: (spent_s(process) - before[name]) / took * 100 for name, process in there.items()}


def turns_of(fleet: RunningFleet) -> dict[str, int]:
    """How many turns each service has had, as it last told."""
    report = read_presence(fleet.fleet, 5.0)
    return {name: state.health.get("steps", 0) for name, state in report.services.items()} if report else {}


def naive_percent(fleet: RunningFleet, agents: int) -> float:
    """What one subprocess per agent and second costs, children included."""
    panes = [pane.pane_id for pane in fleet.tmux.look()][:agents]
    spent = sum(psutil.Process().cpu_times()[:4])
    for pane in panes:
        subprocess.run(["tmux", "-L", fleet.socket, "capture-pane", "-p", "-t", pane], check=True, capture_output=True)
    return (sum(psutil.Process().cpu_times()[:4]) - spent) * 100


@dataclass(frozen=True)
class Costs:
    """Percents of one core and megabytes (PSS), by process."""

    cpu: Mapping[str, float]
    memory: Mapping[str, float]
    turns: Mapping[str, float]
    """Per second, by service."""
    tmux_alone: float
    """What tmux takes while nothing of Muster runs."""
    writer: float
    naive: float

    @property
    def services(self) -> float:
        return sum(share for name, share in self.cpu.items() if name != TMUX)

    @property
    def tmux(self) -> float:
        return max(0.0, self.cpu[TMUX] - self.tmux_alone)

    @property
    def megabytes(self) -> float:
        return sum(size for name, size in self.memory.items() if name != TMUX)


def measure(kind: Kind, agents: int, seconds: float) -> Costs:
    with tempfile.TemporaryDirectory() as directory:
        fleet = fleet_of(Path(directory), agents, kind)
        try:
            fleet.up()
            wait_until(lambda: len(fleet.records()) == agents, "all agents", 180)
            with printing(fleet) if kind is Kind.AT_WORK else nullcontext() as writer:
                wait_until(lambda: _settled(fleet, kind), f"all agents told to be {ACTIVITY[kind]}", 180)
                time.sleep(SETTLES_S[kind])
                there = processes_of(fleet) | {TMUX: tmux_of(fleet)}
                if writer is not None:
                    there["writer"] = psutil.Process(writer.pid)
                turns, began = turns_of(fleet), time.monotonic()
                cpu = percents(there, seconds)
                took = time.monotonic() - began
                turned = {name: (number - turns.get(name, 0)) / took for name, number in turns_of(fleet).items()}
                writes = cpu.pop("writer", 0.0)
                memory = {name: there[name].memory_full_info().pss / 1e6 for name in cpu}
                naive = naive_percent(fleet, agents)
                fleet.tmux.close()
                fleet.cli("down")
                alone = percents({TMUX: there[TMUX]}, seconds)[TMUX]
            return Costs(cpu, memory, turned, alone, writes, naive)
        finally:
            fleet.end()


def show(kind: Kind, agents: int, seconds: float, costs: Costs) -> None:
    for name, share in costs.cpu.items():
        turns = f"  {costs.turns[name]:5.2f} turns/s" if name in costs.turns else ""
        print(f"  {name:<12} {share:6.2f} % of a core  {costs.memory[name]:6.1f} MB{turns}")
    print(
        f"  tmux takes {costs.tmux_alone:.2f} % for the agents alone; the writer of their output {costs.writer:.2f} %"
    )
    budget, verdict = BUDGETS.get((kind, agents)), ""
    if budget is not None:
        together = costs.services + costs.tmux <= TOGETHER.get((kind, agents), float("inf"))
        within = costs.services <= budget.services and costs.tmux <= budget.tmux and together
        verdict = f", {'within' if within else 'OVER'} the budget of {budget.services:g} and {budget.tmux:g} %"
    fits = "within" if costs.megabytes <= MEMORY_BUDGET_MB else "OVER"
    print(
        f"{agents} agents, {kind.value}, {seconds:g} s: services {costs.services:.2f} % of a core and tmux for them"
        f" {costs.tmux:.2f} %{verdict}; {costs.megabytes:.0f} MB, {fits} {MEMORY_BUDGET_MB:g} MB;"
        f" 1/{costs.naive / max(costs.services, 0.01):.0f} of a subprocess per agent and second ({costs.naive:.0f} %)",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, nargs="+", default=[100])
    parser.add_argument("--kind", type=Kind, nargs="+", default=list(Kind), choices=list(Kind))
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    for kind in options.kind:
        for agents in options.agents:
            show(kind, agents, options.seconds, measure(kind, agents, options.seconds))


if __name__ == "__main__":
    main()
