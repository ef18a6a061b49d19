"""One agent program at work in a tmux server of its own, and nothing left of it afterwards."""

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.real_agents.clis import Cli, Place, search_path
from tests.real_agents.model import Model

WITHIN_S = 90.0
"""A start takes 1 to 10 s on an idle machine; a loaded one may need many times that."""
LOOK_EVERY_S = 0.05
STILL_FOR_S = 0.3
ENDS_WITHIN_S = 10.0


@dataclass(frozen=True)
class Workbench:
    """A running program: its screen is read and its keys are pressed as a person's would be."""

    cli: Cli
    place: Place
    socket: Path
    pane: str = "%0"

    @property
    def home(self) -> Path:
        return self.place.home

    @property
    def work(self) -> Path:
        return self.place.work

    def tmux(self, *arguments: str, text: str | None = None) -> str:
        """One tmux command; a failure is the test's."""
        done = subprocess.run(
            ["tmux", "-S", str(self.socket), "-f", "/dev/null", *arguments],
            input=text,
            capture_output=True,
            encoding="utf-8",
            check=False,
            env={"PATH": search_path(), "LANG": "C.UTF-8", "HOME": str(self.home)},
        )
        assert done.returncode == 0, f"tmux {' '.join(arguments)[:200]}: {done.stderr.strip()}"
        return done.stdout

    def screen(self, *, styles: bool = False) -> str:
        return self.tmux("capture-pane", "-p", *(["-e"] if styles else []), "-t", self.pane)

    def ask(self, form: str) -> str:
        """What tmux knows of the pane, such as `#{cursor_x}`."""
        return self.tmux("display-message", "-p", "-t", self.pane, form).rstrip("\n")

    def keys(self, *keys: str) -> None:
        self.tmux("send-keys", "-t", self.pane, *keys)

    def paste(self, text: str) -> None:
        """As a terminal pastes, bracketed where the program asked for it; tmux changes no byte of it."""
        self.tmux("load-buffer", "-b", "prompt", "-", text=text)
        self.tmux("paste-buffer", "-p", "-r", "-d", "-b", "prompt", "-t", self.pane)

    def wait_for(self, what: str | Callable[[], bool], within_s: float = WITHIN_S) -> str:
        """Until the words are on the screen (an expression), or the condition holds; gives the screen."""
        until = time.monotonic() + within_s
        while True:
            screen = self.screen()
            if re.search(what, screen) if isinstance(what, str) else what():
                return screen
            assert time.monotonic() < until, f"{self.cli.name} never came to {what!r}; its screen:\n{screen}"
            time.sleep(LOOK_EVERY_S)

    def wait_until_ready(self) -> str:
        """Until the program's input box takes text."""
        return self.wait_for(self.cli.ready)

    def wait_until_still(self, within_s: float = WITHIN_S) -> str:
        """Until neither the cursor nor its row has changed for a moment: what was sent is taken in."""
        until = time.monotonic() + within_s
        seen, since = "", time.monotonic()
        while time.monotonic() - since < STILL_FOR_S:
            now = self.cursor_row()
            if now != seen:
                seen, since = now, time.monotonic()
            assert time.monotonic() < until, f"{self.cli.name} is never still; its screen:\n{self.screen()}"
            time.sleep(LOOK_EVERY_S)
        return self.screen()

    def cursor_row(self) -> str:
        where = self.ask("#{cursor_x} #{cursor_y}")
        return f"{where} {self.screen().splitlines()[int(where.split()[1])]}"


@contextmanager
def started(
    cli: Cli,
    binary: Path,
    model: Model,
    room: Path,
    *arguments: str,
    trusted: bool = True,
    size: tuple[int, int] = (120, 40),
) -> Iterator[Workbench]:
    """The program in a HOME and a directory below `room`; gone, with all it started, when the block ends.

    A room that was used before is used again as it is, with its conversations: give it the same model.
    """
    place = Place(room / "home", room / "work", model.url, trusted)
    if not place.home.exists():
        place.home.mkdir(parents=True)
        place.work.mkdir()
        cli.prepare(place)
    bench = Workbench(cli, place, room / "tmux.sock")
    given = [word for name, value in cli.environment(place).items() for word in ("-e", f"{name}={value}")]
    columns, rows = map(str, size)
    window = ["new-session", "-d", "-s", "agent", "-x", columns, "-y", rows, "-c", str(place.work), *given]
    try:
        bench.tmux(*window, "--", str(binary), *cli.arguments(), *arguments)
        yield bench
    finally:
        _end(place.home)
        bench.socket.unlink(missing_ok=True)


def _end(home: Path) -> None:
    """End everything that runs in that HOME: the tmux server, the program, and what has cut itself loose of both."""
    for attempt in (psutil.Process.terminate, psutil.Process.kill):
        there = list(_living_in(home))
        for process in there:
            try:
                attempt(process)
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(there, timeout=ENDS_WITHIN_S)
    assert not list(_living_in(home)), f"{home} is still lived in"


def _living_in(home: Path) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get("HOME") == str(home):
                yield process
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
