"""The demo, as a newcomer runs it."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.cli.demo import NAME
from shared.agents.demo.demo_script import TEMPO
from tests.e2e.test_lifecycle import processes_about
from tests.fixtures.broker import wait_until

SOON_S = 120.0
"""On a machine of any load."""


class RunningDemo:
    """`muster demo` as a process, and all that it printed."""

    def __init__(self, directory: Path) -> None:
        self._environment = {**os.environ, "TMPDIR": str(directory), "HOME": str(directory), TEMPO: "6"}
        self._directory = directory
        self._out, self._err = directory / "out.txt", directory / "err.txt"
        with self._out.open("w") as out, self._err.open("w") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "services.cli", "demo"], stdout=out, stderr=err, env=self._environment
            )

    def said(self) -> list[str]:
        return self._err.read_text().splitlines()

    def story(self) -> list[tuple[str, str, str]]:
        """Whom each line is about, of which kind it is, and what happened."""
        lines = self._out.read_text().splitlines()
        return [(words[2], words[3], words[4]) for line in lines if len(words := line.split()) > 4]

    @property
    def socket(self) -> str:
        """The name of its tmux socket, as it told."""
        (found,) = (name for line in self.said() for name in re.findall(r"tmux -L (\S+) attach -t tester", line))
        return str(found)

    def wait_for(self, agent: str, family: str, what: str) -> None:
        wait_until(lambda: (agent, family, what) in self.story(), f"{agent} {what}; {self.said()[-3:]}", SOON_S)

    def cli(self, *arguments: str) -> str:
        (path,) = self._directory.glob(f"muster-demo-*/{NAME}/fleet.yaml")
        done = subprocess.run(
            [sys.executable, "-P", "-m", "services.cli", "--fleet", str(path), *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=self._environment,
        )
        assert done.returncode == 0, f"muster {arguments}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(SOON_S)


@contextlib.contextmanager
def running_demo(directory: Path) -> Iterator[RunningDemo]:
    demo = RunningDemo(directory)
    try:
        yield demo
    finally:
        if demo.process.poll() is None:
            demo.end(signal.SIGTERM)  # it cleans up as after Ctrl-C


def assert_nothing_is_left(directory: Path, socket: str) -> None:
    assert list(directory.glob("muster-demo-*")) == []
    assert processes_about(str(directory)) == []
    sockets = Path(os.environ.get("TMUX_TMPDIR", tempfile.gettempdir())) / f"tmux-{os.getuid()}"
    assert not (sockets / socket).exists()


SEEN = (
    ("deployer", "activity", "approval_needed"),
    ("architect", "activity", "approval_needed"),
    ("writer", "activity", "limit_hit"),
    ("writer", "activity", "limit_lifted"),
    ("translator", "activity", "limit_lifted"),
    ("tester", "drift", "missing"),
    ("tester", "state", "terminated"),
    ("tester", "lifecycle", "restarted"),
    ("orders", "event", "claim"),
    ("orders", "event", "review"),
    ("importer", "lifecycle", "gave_up"),
    ("changelog", "activity", "done"),
    ("benchmark", "lifecycle", "stopped"),
    ("triage", "activity", "stalled"),
)


def test_the_demo_shows_each_situation_once_answers_and_leaves_nothing(tmp_path: Path) -> None:
    with running_demo(tmp_path) as demo:
        demo.wait_for("deployer", "activity", "approval_needed")
        assert demo.cli("approve", "deployer") == "deployer was told yes\n"
        demo.wait_for("architect", "activity", "approval_needed")
        assert "a question of the agent" in demo.cli("explain", "architect")
        demo.cli("send", "architect", "--keys", "2")
        for step in SEEN:
            demo.wait_for(*step)
        working = ("deployer", "activity", "working")
        assert working in demo.story()[demo.story().index(("deployer", "activity", "approval_needed")) :]
        wait_until(lambda: any("shown once" in line for line in demo.said()), "all of it is told", SOON_S)
        assert demo.end(signal.SIGINT) == 0, demo.said()
    assert "saw the drift and its healing" in demo.said()[-1]
    assert_nothing_is_left(tmp_path, demo.socket)


@pytest.mark.long
def test_a_demo_cut_short_says_what_was_missing_and_fails(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "services.cli", "demo", "--seconds", "0"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 1
    assert "ended early" in done.stderr
    assert list(tmp_path.glob("muster-demo-*")) == []


@pytest.mark.long
def test_a_demo_that_ends_by_itself_has_seen_the_drift_and_its_healing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "services.cli", "demo", "--seconds", "30"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert "saw the drift and its healing" in done.stderr
    assert list(tmp_path.glob("muster-demo-*")) == []


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_closed_terminal_or_a_kill_cleans_up_too(tmp_path: Path, number: signal.Signals) -> None:
    with running_demo(tmp_path) as demo:
        demo.wait_for("tester", "lifecycle", "spawned")
        assert demo.end(number) == 1
    assert "ended early: " in demo.said()[-1]
    assert_nothing_is_left(tmp_path, demo.socket)
