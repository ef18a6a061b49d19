"""Real agents tell what they do through hooks that they were given for one run, or that somebody has installed; the
user's own settings stay as they are, and the user's own hooks run as well.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from pathlib import Path

import pytest

from services.cli.__main__ import main
from shared.agents.codex import hooks as codex
from shared.agents.hooks.formats import FORMATS
from shared.agents.hooks.injection import InjectedHooks, given
from shared.agents.hooks.spool import HookEvent, Spool
from shared.fleet.launch_needs import fill
from shared.fleet.profiles import shipped
from tests.real_agents.clis import Claude, Cli, Codex, Gemini, Place
from tests.real_agents.installs import installed
from tests.real_agents.model import Model
from tests.real_agents.workbench import Workbench, started

pytestmark = [pytest.mark.real_agent, pytest.mark.timeout(300)]

SPAWN = "spawn-1"
OWN_EVENT = {"claude": "Stop", "codex": "Stop", "gemini": "AfterAgent"}
"""The event for which the user has a hook already."""


class Agent:
    """A real program with its hooks, and what they have told."""

    def __init__(self, bench: Workbench, spool: Spool) -> None:
        self.bench = bench
        self._spool = spool

    def told(self) -> list[HookEvent]:
        return self._spool.read()

    def names(self) -> list[str]:
        return [event.name for event in self.told()]

    def says(self, text: str, then: str) -> None:
        """Send a text, and wait for an event."""
        before, known = self.names().count(then), len(self.names())
        self.bench.paste(text)
        self.bench.wait_until_still()
        with suppress(AssertionError):  # Gemini CLI takes an Enter that comes soon for a part of the paste
            self.bench.keys("Enter")
            self.bench.wait_for(lambda: len(self.names()) > known, within_s=10)
        if len(self.names()) == known:
            self.bench.keys("Enter")
        self.wait_for(then, before + 1)

    def answers(self, key: str, then: str, times: int) -> None:
        """Press a key in a dialog until it has had its effect: one that was just painted may not hear the first."""
        for _ in range(5):
            self.bench.keys(key)
            with suppress(AssertionError):
                self.bench.wait_for(lambda: self.names().count(then) >= times, within_s=5)
                return

    def wait_for(self, name: str, times: int = 1) -> None:
        self.bench.wait_for(lambda: self.names().count(name) >= times)


@contextmanager
def hooked(cli: Cli, model: Model, room: Path, *arguments: str, install: bool = False) -> Iterator[Agent]:
    """The program with a user's own hook beside ours. Afterwards the user's settings are as they were."""
    place = Place(room / "home", room / "work", model.url)
    for directory in (place.home, place.work):
        directory.mkdir()
    cli.prepare(place)
    own = _with_own_hook(cli, place)
    fleet = room / "fleet.yaml"
    fleet.write_text("agents: {}\n")
    directory = room / ".muster" / "hooks"
    before = own.read_bytes()
    if install:
        command = ["--fleet", str(fleet), "hooks"]
        options = ["--backend", cli.name, "--home", str(place.home)]
        assert main([*command, "install", *options]) == 0
        hooks = InjectedHooks()
    else:
        backend = shipped()[cli.name]
        hooks = given(backend.hooks, directory, backend.argv, {})
        assert not hooks.withheld
        hooks.lay_out(directory)
    words = [fill(word, hooks.values) for word in hooks.args]
    stamped = _with_environment(cli, {**hooks.env, "MUSTER_STAMP_SPAWN": SPAWN})
    with started(stamped, installed(cli), model, room, *words, *arguments) as bench:
        yield Agent(bench, Spool(directory))
    if install:
        assert own.read_bytes() != before
        assert main([*command, "remove", *options]) == 0
    assert own.read_bytes() == before
    assert set((place.home / "own.log").read_text().split()) == {"theirs"}


def _with_environment(cli: Cli, more: Mapping[str, str]) -> Cli:
    kind = type(cli)

    class Stamped(kind):  # type: ignore[valid-type,misc]
        def own_environment(self, place: Place) -> dict[str, str]:
            return {**super().own_environment(place), **more}

    return Stamped(**{each.name: getattr(cli, each.name) for each in fields(cli)})


def _with_own_hook(cli: Cli, place: Place) -> Path:
    """Settings with a hook of the user's that they trust, and an odd layout."""
    path = FORMATS[cli.name].settings({"HOME": str(place.home)})
    document = json.loads(path.read_text()) if path.exists() else {}
    command = f"echo theirs >> '{place.home}/own.log'"
    entry = FORMATS[cli.name].entry(command)
    document["hooks"] = {OWN_EVENT[cli.name]: [entry]}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=3) + "\n\n")
    if cli.name == "codex":
        trusted = f'\n[hooks.state."{path}:stop:0:0"]\ntrusted_hash = "{codex.trusted_hash("Stop", command)}"\n'
        config = path.with_name("config.toml")
        config.write_text(config.read_text() + trusted)
    return path


FOREGROUND = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"]
BACKGROUND = [*FOREGROUND, "UserPromptSubmit", "Stop"]
"""The main agent stops while the subagent works, and goes on by itself when that has finished."""


@pytest.mark.parametrize(("version", "main_agent"), [("2.1.197", FOREGROUND), ("2.1.325", BACKGROUND)])
def test_claude_tells_of_itself_and_of_its_subagents(
    version: str, main_agent: list[str], model: Model, tmp_path: Path
) -> None:
    cli = replace(Claude(), version=version)
    with hooked(cli, model, tmp_path, "--permission-mode", "default") as agent:
        agent.bench.wait_until_ready()
        agent.wait_for("SessionStart")
        agent.says("DO-AGENT DO-BASH touch made.txt", then="PermissionRequest")
        agent.bench.wait_for(r"Do you want to proceed\?")
        agent.answers("1", "PostToolUse", 2)
        agent.wait_for("Stop", main_agent.count("Stop"))
        events = agent.told()
        pid = int(agent.bench.ask("#{pane_pid}"))
        server = str(agent.bench.socket)
    assert {(event.spawn, event.pane, event.socket, event.pid) for event in events} == {(SPAWN, "%0", server, pid)}
    assert [event.name for event in events if "agent_id" not in event.payload] == main_agent
    of_subagents = [event for event in events if "agent_id" in event.payload]
    assert [event.name for event in of_subagents] == [
        *("SubagentStart", "PreToolUse", "PermissionRequest", "PostToolUse", "SubagentStop"),
    ]
    assert len({event.payload["agent_id"] for event in of_subagents}) == 1


def test_codex_is_asked_nothing_and_tells_of_an_interrupt(model: Model, tmp_path: Path) -> None:
    with hooked(Codex(), model, tmp_path) as agent:
        assert "Hooks need review" not in agent.bench.wait_until_ready()
        agent.says("hello", then="Stop")
        agent.says("DO-BASH touch never.txt", then="PermissionRequest")
        agent.bench.wait_for("Would you like to run")
        agent.bench.keys("Escape")
        agent.wait_for("Interrupt")
        events = agent.told()
    assert {(event.spawn, event.pane) for event in events} == {(SPAWN, "%0")}
    assert [event.name for event in events] == [
        *("SessionStart", "UserPromptSubmit", "Stop"),
        *("UserPromptSubmit", "PreToolUse", "PermissionRequest", "Interrupt"),
    ]


def test_gemini_tells_through_hooks_that_somebody_installed(model: Model, tmp_path: Path) -> None:
    with hooked(Gemini(), model, tmp_path, install=True) as agent:
        agent.bench.wait_until_ready()
        agent.wait_for("SessionStart")
        agent.says("DO-BASH touch made.txt", then="Notification")
        agent.bench.wait_for("Allow once")
        agent.bench.keys("1")
        agent.wait_for("AfterAgent")
        events = agent.told()
    assert {(event.spawn, event.pane) for event in events} == {(SPAWN, "%0")}
    assert [event.name for event in events] == [
        *("SessionStart", "BeforeAgent", "BeforeTool", "Notification", "AfterTool", "AfterAgent"),
    ]
