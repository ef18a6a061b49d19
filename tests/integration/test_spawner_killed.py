"""The spawner is SIGKILLed at every point of a command: neither a doubled session nor a lost command comes of it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from shared.fleet import Fleet, load_fleet
from shared.ids import new_id
from shared.journal import Journal, Request
from shared.tmux import Pane, Tmux
from shared.tmux.server import end_server
from tests.fixtures.broker import wait_until

POINTS = range(1, 16)
"""More than there are in any of these commands: the last ones show a life without an accident."""


class Lives:
    """One fleet without a broker, of which only the spawner is run, life after life."""

    def __init__(self, directory: Path) -> None:
        self.socket = f"muster-test-{new_id()[-10:]}"
        declared = {
            "host": "box",
            "tmux": {"socket": self.socket},
            "polls": {"alone_s": 0.05},
            "broker": {"endpoints": ["mqtt://127.0.0.1:1"]},
            "agents": {"builder": {"enabled": False, "prompt": "build"}},
        }
        path = directory / "fleet.yaml"
        path.write_text(json.dumps(declared))
        self.fleet: Fleet = load_fleet(path)
        self.tmux = Tmux(self.socket)
        self.journal = Journal(self.fleet.journal, "cli")

    @contextmanager
    def life(self, module: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, "--fleet", str(self.fleet.path)],
            env={**os.environ, **environment},
            stderr=subprocess.DEVNULL,
            cwd=Path(__file__).parents[2],
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def ask(self, verb: str, **arguments: Any) -> str:
        request_id = new_id()
        payload = json.dumps({"agent": "builder", "id": request_id, **arguments}).encode()
        now = time.time()
        request = Request(request_id, verb, payload, f"muster/box/reply/{request_id}", now, now + 60, agent="builder")
        self.journal.requests.accept([request], "spawner")
        return request_id

    def answer(self, request_id: str) -> dict[str, Any]:
        answered = wait_until(lambda: self.journal.requests.answer_to(request_id, "spawner"), "an answer")
        reply: dict[str, Any] = json.loads(answered)
        return reply

    def carried_out_over_a_death(self, point: int, verb: str, **arguments: Any) -> dict[str, Any]:
        request_id = self.ask(verb, **arguments)
        with self.life("tests.fixtures.dying_spawner", DIE_AT=str(point)) as first:
            wait_until(
                lambda: first.poll() is not None or self.journal.requests.answer_to(request_id, "spawner"),
                "its death, or an answer",
            )
            assert first.poll() in (None, -signal.SIGKILL)
        with self.life("services.spawner"):
            reply = self.answer(request_id)
            self.settle()
        return reply

    def settle(self) -> None:
        """Wait until the spawner has had some more turns, in which it could do something twice."""
        again = self.ask("stop", agent="nobody")
        assert self.answer(again)["code"] == "unknown_agent"

    def heard(self) -> list[str]:
        """What the agent was told, by its own record."""
        files = (self.fleet.home / "demo").glob("*.jsonl")
        entries = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        return [entry["text"] for entry in entries if entry["who"] == "user"]

    def sessions(self) -> list[Pane]:
        return [pane for pane in self.tmux.look() if pane.agent]

    def told(self) -> list[dict[str, Any]]:
        entries = Journal(self.fleet.journal, "cli").entries("spawner", 0)
        return [json.loads(entry.payload)["data"] for entry in entries]

    def end(self) -> None:
        self.journal.close()
        self.tmux.close()
        end_server(self.socket)


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    lives = Lives(tmp_path)
    yield lives
    lives.end()


@pytest.mark.parametrize("point", POINTS)
def test_a_spawn_is_carried_out_once(lives: Lives, point: int) -> None:
    reply = lives.carried_out_over_a_death(point, "spawn")
    assert reply["ok"], reply
    (session,) = lives.sessions()
    assert not session.dead
    told = lives.told()
    assert [data["kind"] for data in told] == ["spawned"]
    assert told[0]["spawn"] == session.spawn == reply["result"]["spawn"]


@pytest.mark.parametrize("point", POINTS)
def test_a_restart_is_carried_out_once(lives: Lives, point: int) -> None:
    with lives.life("services.spawner"):
        before = lives.answer(lives.ask("spawn"))["result"]["spawn"]
    reply = lives.carried_out_over_a_death(point, "restart", fresh=True)
    assert reply["ok"], reply
    (session,) = lives.sessions()
    told = [data for data in lives.told() if data["kind"] != "spawned"]
    assert session.spawn != before
    assert [data["kind"] for data in told] == ["restarted"]
    assert told[0]["spawn"] == session.spawn


@pytest.mark.parametrize("point", range(1, 28))
def test_a_text_is_submitted_once(lives: Lives, point: int) -> None:
    with lives.life("services.spawner"):
        lives.answer(lives.ask("spawn"))
    text = "do\nthis -- $(now)"
    reply = lives.carried_out_over_a_death(point, "send", text=text)
    assert reply["ok"], reply
    assert lives.heard() == ["build", text]
    assert [data["kind"] for data in lives.told()] == ["spawned", "sent"]
