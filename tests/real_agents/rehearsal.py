"""One situation brought about in a room, and what was to be seen there."""

import re
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.real_agents import bus, hooks, traces
from tests.real_agents.clis import Cli, Place
from tests.real_agents.furnishing import billed, furnish
from tests.real_agents.installs import installed
from tests.real_agents.keys import KEYS, LEAVE, NO
from tests.real_agents.model import Model
from tests.real_agents.screen_words import SIGHTS
from tests.real_agents.situations import Situation
from tests.real_agents.steps import Answer, Ask, Kill, Press, Quit, Reached, Running, See, Step, Still, Type
from tests.real_agents.workbench import LOOK_EVERY_S, Workbench, started

WITHIN_S = 30.0
STILL_FOR_S = 1.2
IN_IT_FOR_S = {"gemini": 3.5}
"""For at least a second an agent is in its situation before it is recorded. Gemini CLI shows the name of a hook for
three, in place of what it does otherwise.
"""
ROWS = 40
BLINKS = re.compile(r"[●○◯\d\s]")
"""What changes on a screen on which nothing happens: a mark that blinks, a clock."""


@dataclass
class Rehearsal:
    bench: Workbench
    model: Model
    hooks: Path
    began_at: float = 0.0
    """When the last key was pressed."""
    came_at: float = 0.0
    """When it was first seen to have had its effect."""
    last_sight: str = ""

    def play(self, situation: Situation) -> None:
        self.began_at = time.time()
        for step in situation.steps:
            self.step(step)
        time.sleep(IN_IT_FOR_S.get(self.bench.cli.name, 1.2))  # the situation lasts: that is what is recorded
        if self.last_sight:
            self.bench.wait_for(self.last_sight, within_s=2.0)

    def step(self, step: Step) -> None:
        match step:
            case Ask(text):
                self._submit(text)
            case Type(text):
                self._type(text)
            case Press(keys):
                self._press(*keys)
            case Answer(how):
                self._press(*self._keys(how))
            case See(sight):
                self.last_sight = SIGHTS[self.bench.cli.name].get(sight, sight)
                self.bench.wait_for(self.last_sight, WITHIN_S)
                self.came_at = time.time()
            case Running():
                self.bench.wait_for(lambda: "sleep" in self._names(), WITHIN_S)
            case Reached(prompts):
                self.bench.wait_for(lambda: len(self.model.prompts) >= prompts, WITHIN_S)
            case Still():
                self._wait_until_still()
            case Kill():
                self._kill()
            case Quit():
                self._submit(LEAVE[self.bench.cli.name])
                self.bench.wait_for(self._dead, WITHIN_S)

    def _keys(self, how: str) -> tuple[str, ...]:
        row = NO.search(self.bench.screen()) if how == "no" else None
        return (row[1],) if row else KEYS[self.bench.cli.name][how]

    def _type(self, text: str) -> None:
        self.bench.tmux("send-keys", "-t", self.bench.pane, "-l", text)
        self.bench.wait_until_still()
        self.began_at = time.time()

    def _submit(self, text: str) -> None:
        """A program that is still busy with its start may not hear the first Enter."""
        self._type(text)
        typed = self.bench.cursor_row()
        for _ in range(3):
            self._press("Enter")
            with suppress(AssertionError):
                self.bench.wait_for(lambda: self._dead() or self.bench.cursor_row() != typed, within_s=3.0)
                return

    def _dead(self) -> bool:
        return self.bench.ask("#{pane_dead}") == "1"

    def _learn_how_it_ended(self) -> None:
        """tmux may miss the end of a pane's own program until another child of its ends; it is told to look."""
        until = time.monotonic() + WITHIN_S
        while not self.bench.ask("#{pane_dead_status}#{pane_dead_signal}") and time.monotonic() < until:
            psutil.Process(int(self.bench.ask("#{pid}"))).send_signal(signal.SIGCHLD)
            time.sleep(LOOK_EVERY_S)

    def _press(self, *keys: str) -> None:
        for key in keys:
            self.bench.keys(key)
            time.sleep(0.3 if len(keys) > 1 else 0)  # a person's pace: the menu draws between two keys
        self.last_sight = ""
        self.began_at = time.time()

    def _wait_until_still(self) -> None:
        until = time.monotonic() + WITHIN_S
        seen, since = "", time.monotonic()
        while time.monotonic() - since < STILL_FOR_S:
            now = BLINKS.sub("", self.bench.screen())
            if now != seen:
                seen, since = now, time.monotonic()
            assert time.monotonic() < until, f"{self.bench.cli.name} is never still; its screen:\n{self.bench.screen()}"
            time.sleep(LOOK_EVERY_S)

    def _kill(self) -> None:
        tree = self._processes()
        max(tree, key=lambda process: process.memory_info().rss).kill()
        self.last_sight = ""
        self.began_at = time.time()
        self.bench.wait_for(self._dead, WITHIN_S)

    def _processes(self) -> list[psutil.Process]:
        pid = int(self.bench.ask("#{pane_pid}"))
        if not psutil.pid_exists(pid):
            return []
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]

    def _names(self) -> list[str]:
        names = []
        for process in self._processes():
            with suppress(psutil.NoSuchProcess):
                names.append(process.name())
        return names

    def seen(self) -> dict[str, Any]:
        """What tmux and the system know of it now."""
        dead = self._dead()
        if dead:
            self._learn_how_it_ended()
        status, number = self.bench.ask("#{pane_dead_status}"), self.bench.ask("#{pane_dead_signal}")
        return {
            "recorded_at": time.time(),
            "began_at": self.began_at,
            "title": self.bench.ask("#{pane_title}"),
            "screen": self.bench.screen(styles=True).splitlines(),
            "command": self.bench.ask("#{pane_current_command}"),
            "dead": dead,
            "exit_status": int(status) if status else None,
            "exit_signal": number or None,
            "processes": [] if dead else self._names(),
        }

    def written(self) -> dict[str, Any]:
        """What the program itself has told."""
        name, home = self.bench.cli.name, self.bench.home
        return {
            "live": traces.live(name, home),
            "hooks": [traces.cut(line) for line in hooks.told(self.hooks)],
            "transcript": traces.transcript(name, home),
            "subagent_transcripts": traces.subagents(name, home),
        }


@contextmanager
def rehearsal(cli: Cli, situation: Situation, room: Path, columns: int, *, hooked: bool = True) -> Iterator[Rehearsal]:
    """The program in an empty room, ready to be typed to (or at its question whether to trust the room)."""
    for name in ("home", "work"):
        shutil.rmtree(room / name, ignore_errors=True)
        (room / name).mkdir(parents=True)
    told = room / "hooks.jsonl"
    told.unlink(missing_ok=True)
    cli = billed(cli, situation)
    with Model().serving() as model:
        place = Place(room / "home", room / "work", model.url, situation.trusted, situation.allowed)
        arguments = furnish(cli, situation, place)
        if hooked:
            arguments += hooks.listen(cli, place, told)
        ready = threading.Event()
        with ExitStack() as stack:
            if hooked and cli.name == "opencode":
                port = bus.free_port()
                ready = stack.enter_context(bus.listening(port, told))
                arguments += ("--port", str(port))
            bench = stack.enter_context(started(cli, installed(cli), model, room, *arguments, size=(columns, ROWS)))
            bench.tmux("set-option", "-g", "remain-on-exit", "on")
            if situation.trusted:
                bench.wait_until_ready()
                bench.wait_until_still()
                ready.set()
            yield Rehearsal(bench, model, told)
