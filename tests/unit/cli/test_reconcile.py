"""`muster reconcile`: who looks, what is said, and which exit code."""

import io
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from services.cli import reconcile, supervision
from services.cli.__main__ import main
from services.cli.words import Paint
from shared.client.request import StillWaits
from shared.contract.commands import Command, Reconcile, Reply
from shared.fleet import Fleet

MISSING = {"kind": "missing", "agent": "builder", "spawn": "s1", "session": "builder", "state": "new", "waits": ""}
MOVED = {
    **{"kind": "moved", "agent": "a", "spawn": "s2", "session": "b", "was_session": "a", "state": "told", "waits": ""},
    **{"workspace": "/w", "was_workspace": "/w"},
}
WAITING = MISSING | {"state": "waits", "waits": "the registrar has not read all"}
UNHEARD_OF = {"kind": "later_kind", "agent": "x", "state": "new", "waits": ""}


def test_a_drift_is_one_line() -> None:
    assert reconcile.as_text([MISSING, MOVED], Paint(io.StringIO())).splitlines() == [
        "a        moved    recorded as session a, but it is called b             (told)",
        "builder  missing  recorded as running, but tmux has no session builder  (new)",
    ]


def test_a_waiting_drift_says_for_what_and_an_unknown_kind_is_named() -> None:
    said = reconcile.as_text([WAITING, UNHEARD_OF], Paint(io.StringIO())).splitlines()
    assert said[0].endswith("(waits: the registrar has not read all)")
    assert said[1].split() == ["x", "later_kind", "(new)"]


def test_without_drifts_it_says_that_all_agrees() -> None:
    assert reconcile.as_text([], Paint(io.StringIO())) == "the record and the world agree"


# --- who looks ---


class World:
    """What runs, what a child would answer, and what the reconciler would."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path / "fleet.yaml"
        self.path.write_text("agents: {builder: {}}\n")
        self.pids: dict[str, int] = {}
        self.child = subprocess.CompletedProcess[str]([], 0, json.dumps({"drifts": [MISSING]}) + "\n", "{a log line}")
        self.reply: Reply | Exception = reply(drifts=[MOVED])
        self.children: list[tuple[str, ...]] = []
        self.asked: list[Command] = []
        self.became: list[str] = []
        monkeypatch.setattr(supervision, "pids", lambda _: self.pids)
        monkeypatch.setattr(supervision, "run_once", self._run)
        monkeypatch.setattr("services.cli.request.ask", self._ask)
        monkeypatch.setattr(reconcile, "become", self._become)

    def _run(self, _: Fleet, *words: str) -> subprocess.CompletedProcess[str]:
        self.children.append(words)
        return self.child

    def _ask(self, _: Fleet, command: Command, **_wait: float) -> Reply:
        self.asked.append(command)
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply

    def _become(self, argv: list[str]) -> None:
        self.became = argv
        raise SystemExit(0)

    def run(self, *arguments: str) -> int:
        return main(["--fleet", str(self.path), "reconcile", *arguments])


def reply(*, ok: bool = True, said: str = "looked", **result: Any) -> Reply:
    return Reply(id="c", verb="reconcile", ok=ok, said=said, result=result, by="reconciler", time=datetime.now(UTC))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


@pytest.mark.parametrize(("option", "dry"), [("--once", False), ("--dry-run", True)])
def test_a_running_reconciler_is_asked(world: World, option: str, dry: bool, capfd: pytest.CaptureFixture[str]) -> None:
    world.pids = {"reconciler": 7}
    assert world.run(option, "--json") == 0
    assert json.loads(capfd.readouterr().out) == {"drifts": [MOVED]}
    (asked,) = world.asked
    assert isinstance(asked, Reconcile)
    assert asked.dry_run is dry
    assert world.children == []


@pytest.mark.parametrize("option", ["--once", "--dry-run"])
def test_without_a_running_reconciler_a_child_looks(
    world: World, option: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert world.run(option) == 0
    assert capfd.readouterr() == ("builder  missing  recorded as running, but tmux has no session builder  (new)\n", "")
    assert world.children == [("reconciler", option)]
    assert world.asked == []


def test_a_dry_run_makes_no_directory_and_a_look_does(world: World) -> None:
    world.run("--dry-run")
    assert [path.name for path in world.path.parent.iterdir()] == ["fleet.yaml"]
    world.run("--once")
    assert (world.path.parent / ".muster" / ".gitignore").exists()


def test_the_error_of_a_child_is_shown(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    world.child = subprocess.CompletedProcess([], 1, "", "tmux did not answer\n")
    assert world.run("--once") == 1
    said = "muster: tmux did not answer\nthe reconciler could not look; it ended with 1\n"
    assert capfd.readouterr() == ("", said)


@pytest.mark.parametrize("said", ["", "{}", "[]", '{"drifts": 1}', "null"])
def test_a_child_that_answers_nonsense_is_not_taken_for_agreement(
    world: World, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    world.child = subprocess.CompletedProcess([], 0, said, "")
    assert world.run("--once") == 1
    assert "no list of drifts" in capfd.readouterr().err


def test_a_reconciler_that_was_started_meanwhile_is_asked(world: World) -> None:
    world.child = subprocess.CompletedProcess([], 75, "", "refused to start")
    assert world.run("--once") == 0
    assert len(world.asked) == 1


@pytest.mark.parametrize(
    ("drifts", "arguments", "code"),
    [
        ([MISSING], ["--dry-run"], 0),
        ([MISSING], ["--dry-run", "--exit-code"], 1),
        ([MISSING], ["--once", "--exit-code"], 1),
        ([], ["--dry-run", "--exit-code"], 0),
        ([MISSING], ["--once"], 0),
    ],
)
def test_drifts_change_the_exit_code_only_on_request(
    world: World, drifts: list[Any], arguments: list[str], code: int
) -> None:
    world.child = subprocess.CompletedProcess([], 0, json.dumps({"drifts": drifts}), "")
    assert world.run(*arguments) == code


def test_a_refusal_and_a_wait_have_their_exit_codes(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    world.pids = {"reconciler": 7}
    world.reply = reply(ok=False, said="not now")
    assert world.run("--once") == 1
    assert capfd.readouterr().err == "muster: not now\n"
    world.reply = StillWaits("it waits")
    assert world.run("--once") == 75


def test_without_an_option_it_keeps_comparing_unless_a_reconciler_runs(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        world.run()
    assert world.became == [sys.executable, "-P", "-m", "services.reconciler", "--fleet", str(world.path)]
    assert "`muster up` does this in the background" in capfd.readouterr().err
    world.pids = {"reconciler": 7}
    assert world.run() == 0
    assert "runs already (pid 7)" in capfd.readouterr().out


@pytest.mark.parametrize("option", ["--json", "--exit-code"])
def test_json_and_exit_code_are_refused_without_once(world: World, option: str) -> None:
    assert world.run(option) == 2
