"""The builder and reviewer example, as a person begins it: three phases to the end, unattended, whatever dies."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import ROOT, RunningFleet
from tests.fixtures.repositories import git

SOON_S = 90.0


class Example(RunningFleet):
    """What `muster init --example builder-reviewer` writes, on a tmux socket of its own."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, {})
        self.path.unlink()
        self.cli("init", "--example", "builder-reviewer")
        text = self.path.read_text()
        self.path.write_text(f"{text}\nhost: box\ntmux: {{socket: {self.socket}}}\n")

    def happened(self, loop: str = "main") -> list[dict[str, Any]]:
        return [each for each in self.told("handoff") if each.get("loop") == loop]

    def kinds(self, loop: str = "main") -> list[str]:
        return [each["kind"] for each in self.happened(loop)]

    def wait_for(self, kind: str, count: int = 1) -> None:
        def told() -> bool:
            for watcher in self._watchers:
                watcher.read()  # a pipe that nobody empties would hold up mosquitto_sub
            return self.kinds().count(kind) >= count

        wait_until(told, f"{kind}; told was {self.kinds()}", SOON_S)

    def subjects(self) -> list[str]:
        return git(self.path.parent / "remote.git", "log", "--reverse", "--format=%s", "main").split("\n")


@pytest.fixture
def example(tmp_path: Path) -> Iterator[Example]:
    running = Example(tmp_path)
    try:
        running.up()
        yield running
    finally:
        running.end()


ONE_PHASE = ["claim", "review", "status"]


@pytest.mark.long
@pytest.mark.waits_long
@pytest.mark.real_broker_down
def test_three_phases_are_played_to_the_end_with_the_broker_and_handoff_killed_on_the_way(example: Example) -> None:
    watcher = example.watch()
    example.wait_for("claim")
    example.signal("handoff", signal.SIGKILL)
    example.wait_for("phase_advanced", 2)
    with example.broker_down():
        example.wait_for("phase_advanced", 3)  # a whole phase without a broker
        assert "phase 3 of 3, polish" in example.cli("phase", "show").stdout
        example.signal("handoff", signal.SIGKILL)
    example.wait_for("sequence_complete")
    example.wait_for_status("wrap-up", "exited", SOON_S)
    for agent in ("builder", "reviewer"):
        assert example.wait_for_status(agent, "stopped").desired == "stopped"
    kinds = [kind for kind in example.kinds() if kind != "kicked_off"]
    begun = [kind for kind in kinds if not kind.startswith(("remote_", "message_"))]
    assert begun == [
        *("phase_advanced", *ONE_PHASE),
        *("phase_advanced", *ONE_PHASE),
        *("phase_advanced", *ONE_PHASE, "sequence_complete"),
    ]
    assert example.kinds().count("kicked_off") == 6
    phases = ("outline", "draft", "polish")
    played = [
        subject
        for phase in phases
        for subject in (f"claim: {phase} is ready", f"review: {phase} is fine", f"status: {phase} is done")
    ]
    assert example.subjects() == ["begin", *played, "summary: all phases are done"]
    models = [
        each.get("model") for each in example.happened() if each["kind"] == "kicked_off" and each["agent"] == "builder"
    ]
    assert models == [None, None, "large"]
    from_claim = example.kinds()[example.kinds().index("claim") :]  # by then the watcher was surely there
    seen = "all of it at mosquitto_sub, in order"
    wait_until(lambda: watcher.kinds("loop/main/event")[-len(from_claim) :] == from_claim, seen)
    assert "is complete" in example.cli("phase", "show").stdout
    shown = json.loads(example.cli("phase", "show", "--json").stdout)["loops"]["main"]
    assert [each["state"] for each in shown["phases"]] == ["done", "done", "done"]

    text = example.path.read_text()
    example.path.write_text(text.replace("    on_complete:", "      - name: encore\n    on_complete:"))
    example.wait_for("sequence_complete", 2)
    assert example.subjects()[-1] in ("status: encore is done", "summary: all phases are done")


def test_a_person_moves_a_loop_and_hears_what_is_wrong(example: Example) -> None:
    example.wait_for("kicked_off", 2)
    assert example.cli("phase", "set", "polish").stdout == "main: phase 3, polish, begins\n"
    refused = example.cli("phase", "set", "nonsense", code=1)
    assert "there is no phase 'nonsense'; there are: outline, draft, polish, or 1 to 3" in refused.stderr
    assert "there is no loop 'other'" in example.cli("phase", "next", "other", code=1).stderr
    reply = example.ask("phase_set", phase="1")
    assert (reply["ok"], reply["result"]["phase"]) == (True, "outline")
    assert example.cli("poll").stdout == "1 remotes are asked now\n"
    wait_until(
        lambda: example.spawn_of("builder") and example.wait_for_status("builder", "running"), "it is started anew"
    )
    assert "phase_advanced" in example.cli("events", "--since", "5m", "--seconds", "1").stdout


def test_an_example_is_laid_out_once_and_replaces_nothing(tmp_path: Path) -> None:
    def init(*more: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-P", "-m", "services.cli", "init", "--example", "builder-reviewer", *more]
        env = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "MUSTER_FLEET": ""}
        return subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    assert init().returncode == 0
    (tmp_path / "prompts" / "builder.md").write_text("mine")
    again = init()
    assert (again.returncode, "fleet.yaml is there already" in again.stderr) == (1, True)
    head = git(tmp_path / "remote.git", "rev-parse", "main")
    assert init("--force").returncode == 0
    assert (tmp_path / "prompts" / "builder.md").read_text() != "mine"
    assert git(tmp_path / "remote.git", "rev-parse", "main") == head
