"""What is seen of a running fleet's agents, and what agents and accidents do, for the tests of the monitor."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import psutil

from shared.agents.recognition import program_in
from shared.system.processes import Processes
from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import ROOT, RunningFleet, Watcher


def is_doing(fleet: RunningFleet, agent: str, activity: str, within_s: float = 20.0) -> str:
    """Wait for it; gives the spawn id."""

    def spawn() -> str | None:
        record = fleet.records().get(agent)
        return record.spawn if record is not None and record.activity == activity else None

    return wait_until(spawn, f"{agent} {activity}", within_s)


def say(fleet: RunningFleet, agent: str, text: str) -> None:
    fleet.command("send", json.dumps({"agent": agent, "text": text}))


def events(watcher: Watcher, agent: str, spawn: str | None = None) -> list[dict[str, Any]]:
    """What was told of it since the watcher came, in order, duplicates by number left out."""
    found = {(doc["epoch"], doc["seq"]): doc["data"] for doc in watcher.documents(f"agent/{agent}/activity")}
    return [found[key] for key in sorted(found) if spawn in (None, found[key]["spawn"])]


def story(watcher: Watcher, agent: str, spawn: str | None = None) -> list[str]:
    return [*map(_what, events(watcher, agent, spawn))]


def _what(event: dict[str, Any]) -> str:
    return str(event.get("status", event["kind"]))


def wait_for_story(watcher: Watcher, agent: str, *statuses: str, spawn: str | None = None) -> list[dict[str, Any]]:
    def told() -> list[dict[str, Any]] | None:
        found = events(watcher, agent, spawn)
        return found if [*map(_what, found)][-len(statuses) :] == list(statuses) else None

    return wait_until(told, f"{statuses} of {agent}")


def dialog(fleet: RunningFleet, agent: str, text: str) -> None:
    say(fleet, agent, text)
    is_doing(fleet, agent, "needs_approval")
    assert "Do you allow this?" in fleet.screen(agent)


def told(fleet: RunningFleet, agent: str) -> list[str]:
    """The same by the journal, from the beginning."""
    found = fleet.told()
    return [_what(each) for each in found if each["agent"] == agent]


def program(fleet: RunningFleet, agent: str) -> psutil.Process:
    pane = fleet.pane(agent)
    assert pane is not None
    found = wait_until(lambda: program_in(Processes.look(), fleet.fleet.backends["demo"], pane.pid), "its program")
    return psutil.Process(found.pid)


def call_a_hook(fleet: RunningFleet, spawn: str, event: str) -> None:
    """As an agent does."""
    payload = {"hook_event_name": event, "session_id": "c1", "transcript_path": "/nowhere", "cwd": "/"}
    argv = [sys.executable, "-I", "-S", str(ROOT / "shared/agents/hooks/program.py"), str(fleet.fleet.home / "hooks")]
    done = subprocess.run(
        argv, input=json.dumps(payload), text=True, env={"MUSTER_STAMP_SPAWN": spawn}, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@contextlib.contextmanager
def without_monitor(fleet: RunningFleet) -> Iterator[None]:
    fleet.signal("supervisor", signal.SIGSTOP)
    try:
        os.kill(pid := fleet.pid("monitor"), signal.SIGKILL)
        wait_until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie", "it ends")
        yield
    finally:
        fleet.signal("supervisor", signal.SIGCONT)
