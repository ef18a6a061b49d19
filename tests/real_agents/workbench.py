"""One agent program at work in a tmux server of its own, and nothing left of it afterwards."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.real_agents.clis import Cli
from tests.real_agents.model import Model

WITHIN_S = 60.0
"""A start takes 1 to 5 s on an idle machine; a loaded one may need many times that."""
LOOK_EVERY_S = 0.05
ENDS_WITHIN_S = 10.0


@dataclass
class Workbench:
    """A running program: its screen is read and its keys are pressed as a person's would be."""

    cli: Cli
    home: Path
    work: Path
    socket: Path
    pane: str = "%0"
    pids: set[int] = field(default_factory=set)

    def tmux(self, *arguments: str, text: str | None = None) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(self.socket), "-f", "/dev/null", *arguments],
            input=text,
            capture_output=True,
            encoding="utf-8",
            check=False,
            env={"PATH": os.defpath + ":/usr/local/bin", "LANG": "C.UTF-8", "HOME": str(self.home)},
        )
        assert done.returncode == 0, f"tmux {' '.join(arguments)[:200]}: {done.stderr.strip()}"
        return done.stdout

    def screen(self, *, styles: bool = False) -> str:
        return self.tmux("capture-pane", "-p", *(["-e"] if styles else []), "-t", self.pane)

    def ask(self, form: str) -> str:
        return self.tmux("display-message", "-p", "-t", self.pane, form).rstrip("\n")

    def keys(self, *keys: str) -> None:
        self.tmux("send-keys", "-t", self.pane, *keys)

    def paste(self, text: str) -> None:
        """As a terminal pastes, bracketed where the program asked for it."""
        self.tmux("load-buffer", "-b", "prompt", "-", text=text)
        self.tmux("paste-buffer", "-p", "-r", "-d", "-b", "prompt", "-t", self.pane)

    def wait_for(self, what: str | Callable[[], bool], within_s: float = WITHIN_S) -> str:
        """Until the words are on the screen (a regular expression), or the condition holds; gives the screen."""
        until = time.monotonic() + within_s
        while True:
            screen = self.screen()
            if re.search(what, screen) if isinstance(what, str) else what():
                return screen
            assert time.monotonic() < until, f"{self.cli.name} never came to {what!r}; its screen:\n{screen}"
            time.sleep(LOOK_EVERY_S)

    def remember(self) -> None:
        """Note every process of the program, to see that they go."""
        root = int(self.ask("#{pane_pid}"))
        try:
            process = psutil.Process(root)
            self.pids |= {root, *(child.pid for child in process.children(recursive=True))}
        except psutil.NoSuchProcess:
            pass


@contextmanager
def started(
    cli: Cli,
    binary: Path,
    model: Model,
    place: Path,
    *arguments: str,
    trusted: bool = True,
    size: tuple[int, int] = (120, 40),
) -> Iterator[Workbench]:
    """The program in a fresh HOME and directory below `place`; gone, with all it started, when the block ends."""
    home, work = place / "home", place / "work"
    if not home.exists():
        home.mkdir(parents=True)
        work.mkdir()
        cli.prepare(home, work, model.url, trusted=trusted)
    bench = Workbench(cli, home, work, place / "tmux.sock")
    environment = cli.whole_environment(home, model.url)
    given = [word for name, value in environment.items() for word in ("-e", f"{name}={value}")]
    columns, rows = map(str, size)
    window = ["new-session", "-d", "-s", "agent", "-x", columns, "-y", rows, "-c", str(work), *given]
    bench.tmux(*window, "--", str(binary), *cli.arguments(), *arguments)
    server = psutil.Process(int(bench.ask("#{pid}")))
    try:
        yield bench
    finally:
        end(bench, server)


def end(bench: Workbench, server: psutil.Process) -> None:
    """End the tmux server and all that ran below it, by process, and remove its socket."""
    below = server.children(recursive=True) if server.is_running() else []
    if server.is_running():
        server.send_signal(signal.SIGTERM)
    _, alive = psutil.wait_procs([server, *below], timeout=ENDS_WITHIN_S)
    for process in alive:
        process.kill()
    psutil.wait_procs(alive, timeout=ENDS_WITHIN_S)
    bench.socket.unlink(missing_ok=True)
