"""A private tmux server for a test, and what its tests say to it."""

import os
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shared.system.tmux import LogPipe, Pane, Tmux
from shared.system.tmux.server import end_server

SLEEPER = ["sleep", "1000"]
NASTY = [
    *("", " ", "a b", "'", '"', "\\", "a;", ";", "\\;", ";;", "$HOME", "$(touch pwned)", "`touch pwned`", "#{pid}"),
    *("#", "##", "#[fg=red]", "~", "~root", "-x", "--", "{", "}", "%if", "%1", "=a:", "a\nb", "\n", "\t", "\r", "\x1b"),
    *("é ✳ 漢字 🦀", "a=b", "|", "&", "*", "!", "C:\\new\\table\\012", "\udcff\udcfe", "\x7f"),
]


class Server:
    """A private tmux server, watched through a `Tmux` of which every change is counted."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.socket = f"muster-test-{secrets.token_hex(6)}"
        self.changes = 0
        self.tmux = self.watch()

    def watch(self, **options: Any) -> Tmux:
        return Tmux(self.socket, on_change=self.count, **options)

    def count(self) -> None:
        self.changes += 1

    def start(self, session: str = "one", argv: list[str] | None = None, **options: Any) -> Pane:
        return start_by(self.tmux, self.home, session, argv=argv or SLEEPER, **options)

    def run(self, *arguments: str) -> str:
        """Use tmux as a person would, past the code under test."""
        ran = subprocess.run(["tmux", "-u", "-L", self.socket, *arguments], capture_output=True, text=True, check=True)
        return ran.stdout.removesuffix("\n")

    @property
    def pid(self) -> int:
        return int(self.told("display-message", "-p", "#{pid}"))

    def clients(self, words: str) -> list[str]:
        return self.told("list-clients", "-F", words, ";", "display-message", "-p", "end").split("\n")[:-1]

    def told(self, *arguments: str) -> str:
        """Ask what has an answer: under load tmux now and then loses what a plain client should print."""
        told = ""
        deadline = time.monotonic() + 10
        while not told and time.monotonic() < deadline:
            told = self.run(*arguments)
        return told

    @property
    def path(self) -> Path:
        return Path("/tmp") / f"tmux-{os.getuid()}" / self.socket  # noqa: S108  where tmux keeps its sockets

    def attached(self) -> str:
        """Say where the connection is, once looking has brought it back from where it was sent away."""
        found: list[str] = []

        def is_somewhere() -> bool:
            self.tmux.look()
            found[:] = self.clients("#{client_session}")
            return bool(found) and self.tmux.connected

        eventually(is_somewhere)
        (session,) = found
        return session

    def pane(self, session: str) -> Pane:
        """The agent's own pane of a session that is stamped as a whole, else the first."""
        pane, *_ = [pane for pane in self.tmux.look() if pane.session == session]
        return pane

    def connect(self) -> None:
        """Look until changes are pushed: on a busy machine the first attempt to connect may have failed."""

        def is_connected() -> bool:
            self.tmux.look()
            return self.tmux.connected

        if not self.tmux.connected:
            eventually(is_connected)

    @contextmanager
    def pushed(self) -> Iterator[None]:
        """What is done inside must be told."""
        self.connect()
        before = self.changes
        yield
        eventually(lambda: self.changes > before)

    def clean_up(self) -> None:
        self.tmux.close()
        end_server(self.socket)


def start_by(tmux: Tmux, home: Path, session: str, **options: Any) -> Pane:
    given: dict[str, Any] = {"argv": SLEEPER, "cwd": home, "env": {}, "agent": session, "fleet": "home"}
    return tmux.start(session=session, **{**given, "spawn": f"{session}-1", **options})


def log_to(path: Path) -> LogPipe:
    return LogPipe(path, 10_000_000, 3)


def eventually(holds: Callable[[], object], timeout_s: float = 10) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, "it did not come to hold in time"
        time.sleep(0.005)


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True
