"""What a fleet of idle agents costs: all of Muster's processes together, in shares of one core and in memory.

Each agent shows the recorded screen of a fresh Claude Code, has its title, and keeps a live file as that does, so all
that is looked at is there. The baseline is a tool that asks tmux for each screen with a subprocess, once a second.
Run: python -m tests.bench.bench_idle [--agents 100] [--seconds 30]
"""

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import psutil

from services.cli import supervision
from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import RunningFleet

CPU_BUDGET, MEMORY_BUDGET_MB = 3.0, 300.0
RECORDED = Path(__file__).parents[1] / "real_agents" / "recorded" / "claude-2.1.197" / "fresh@120.json"
SETTLES_S = 75.0
"""Agents are looked at more often while they are young."""

CLAUDE = """#!/bin/sh
# Looks like a Claude Code that waits: its screen, its title, its live file.
set -- $(cut -d ' ' -f 22 /proc/$$/stat)
mkdir -p "$HOME/.claude/sessions"
now=$(date +%s)000
said='{"pid":%d,"sessionId":"%s","cwd":"%s","procStart":"%s","startedAt":%s,"version":"2.1.197"'
printf "$said"',"status":"idle","statusUpdatedAt":%s}' $$ \\
  "$(cat /proc/sys/kernel/random/uuid)" "$PWD" "$1" "$now" "$now" > "$HOME/.claude/sessions/$$.json"
printf '\\033]2;✳ Claude Code\\007'
cat "$HOME/screen"
sleep 1000000
"""


def fleet_of(directory: Path, agents: int) -> RunningFleet:
    home = directory / "home"
    home.mkdir()
    (home / "screen").write_text("\r\n".join(json.loads(RECORDED.read_text())["screen"]).rstrip())
    program = directory / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(CLAUDE)
    program.chmod(0o755)
    return RunningFleet(
        directory,
        {f"agent-{number:03}": {"backend": "claude", "env": {"HOME": str(home)}} for number in range(agents)},
        backends={"claude": {"binary": str(program)}},
        start={"at_once": agents, "gap_s": 0},
    )


def _waiting(fleet: RunningFleet) -> int:
    time.sleep(1)  # reading all of it again and again would keep the services from their work
    return sum(each.activity == "waiting" for each in fleet.records().values())


def processes_of(fleet: RunningFleet) -> dict[str, psutil.Process]:
    return {name: psutil.Process(pid) for name, pid in supervision.pids(fleet.fleet).items()}


def spent_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def costs(fleet: RunningFleet, seconds: float) -> tuple[dict[str, float], dict[str, float]]:
    """Percent of one core and megabytes (PSS), by process."""
    there = processes_of(fleet)
    there["tmux"] = psutil.Process(int(fleet.tmux.ask(("display-message", "-p", "#{pid}"))[0].text))
    fleet.tmux.close()
    before = {name: spent_s(process) for name, process in there.items()}
    began = time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    cpu = {name: (spent_s(process) - before[name]) / took * 100 for name, process in there.items()}
    memory = {name: process.memory_full_info().pss / 1e6 for name, process in there.items()}
    return cpu, memory


def naive_percent(fleet: RunningFleet, agents: int) -> float:
    """What one subprocess per agent and second costs, children included."""
    panes = [pane.pane_id for pane in fleet.tmux.look()][:agents]
    spent = sum(psutil.Process().cpu_times()[:4])
    for pane in panes:
        subprocess.run(["tmux", "-L", fleet.socket, "capture-pane", "-p", "-t", pane], check=True, capture_output=True)
    return (sum(psutil.Process().cpu_times()[:4]) - spent) * 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        fleet = fleet_of(Path(directory), options.agents)
        try:
            fleet.up()
            wait_until(lambda: _waiting(fleet) == options.agents, "all agents told to be waiting", 180)
            time.sleep(SETTLES_S)
            cpu, memory = costs(fleet, options.seconds)
            naive = naive_percent(fleet, options.agents)
        finally:
            fleet.end()
    ours = {name: share for name, share in cpu.items() if name != "tmux"}
    for name in cpu:
        print(f"  {name:<12} {cpu[name]:5.2f} % of a core  {memory[name]:6.1f} MB")
    total, megabytes = sum(ours.values()), sum(size for name, size in memory.items() if name != "tmux")
    print(
        f"{options.agents} idle agents, {options.seconds:g} s: {total:.2f} % of a core,"
        f" {'within' if total <= CPU_BUDGET else 'OVER'} the budget of {CPU_BUDGET:g} %;"
        f" {megabytes:.0f} MB, {'within' if megabytes <= MEMORY_BUDGET_MB else 'OVER'} {MEMORY_BUDGET_MB:g} MB"
        f" (tmux itself {cpu['tmux']:.2f} %); 1/{naive / max(total, 0.01):.0f} of a subprocess per agent and second"
        f" ({naive:.0f} %)"
    )


if __name__ == "__main__":
    main()
