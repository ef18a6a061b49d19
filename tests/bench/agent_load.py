"""Agents for benchmarks: each looks like a Claude Code, with the screen, the title and the live file of a recorded one.

They cost next to nothing themselves: a shell that sleeps. What agents at work print comes from one process, which
writes to all their terminals: `python -m tests.bench.agent_load SOCKET`.
"""

import argparse
import heapq
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

from tests.fixtures.fleet import RunningFleet

RECORDED = Path(__file__).parents[1] / "real_agents" / "recorded" / "claude-2.1.197"
PRINTS_EVERY_S = 3.0
"""How often an agent at work prints, on average."""
TERMINALS_READ_EVERY_S = 1.0
BOTTOM_ROWS = 6
"""A Claude Code paints these rows anew below each new line: what it does, a blank one, its box, its footer."""

PROGRAM = """#!/bin/sh
# Looks like a Claude Code: its screen, its title and, with STATUS, its live file.
printf '\\033]2;%s\\007' "$TITLE"
cat "$HOME/$SCREEN"
if [ -n "$STATUS" ]; then
  set -- $(cut -d ' ' -f 22 /proc/$$/stat)
  mkdir -p "$HOME/.claude/sessions"
  now=$(date +%s)000
  said='{"pid":%d,"sessionId":"%s","cwd":"%s","procStart":"%s","startedAt":%s,"version":"2.1.197"'
  printf "$said"',"status":"%s","statusUpdatedAt":%s}' $$ \\
    "$(cat /proc/sys/kernel/random/uuid)" "$PWD" "$1" "$now" "$STATUS" "$now" > "$HOME/.claude/sessions/$$.json"
fi
sleep 1000000
"""


class Kind(StrEnum):
    IDLE = "idle"
    AT_WORK = "at work"


SITUATIONS = {Kind.IDLE: "fresh", Kind.AT_WORK: "tool"}


def recorded(kind: Kind) -> tuple[str, str]:
    """The screen and the title of a recorded Claude Code."""
    found = json.loads((RECORDED / f"{SITUATIONS[kind]}@120.json").read_text())
    return "\r\n".join(found["screen"]).rstrip(), found["title"]


def agents_of(kind: Kind, agents: int, home: Path, **more: Any) -> dict[str, dict[str, Any]]:
    """Of agents at work, every second one has no live file: only its screen and its title show that it works."""
    variables = {"HOME": str(home), "SCREEN": f"screen-{kind.name}", "TITLE": recorded(kind)[1]}
    status = {Kind.IDLE: ("idle", "idle"), Kind.AT_WORK: ("busy", "")}[kind]
    return {
        f"agent-{number:03}": {"backend": "claude", "env": {**variables, "STATUS": status[number % 2]}, **more}
        for number in range(agents)
    }


def fleet_of(
    directory: Path, agents: int, kind: Kind, agent: dict[str, Any] | None = None, **more: Any
) -> RunningFleet:
    """A fleet of such agents that all start at once. `agent`: what else is declared for each."""
    home = directory / "home"
    home.mkdir()
    (home / f"screen-{kind.name}").write_text(recorded(kind)[0])
    program = directory / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    program.chmod(0o755)
    return RunningFleet(
        directory,
        agents_of(kind, agents, home, **agent or {}),
        backends={"claude": {"binary": str(program)}},
        start={"at_once": agents, "gap_s": 0},
        **more,
    )


@contextmanager
def printing(fleet: RunningFleet) -> Iterator[subprocess.Popen[bytes]]:
    """All agents of a fleet print now and then."""
    writer = subprocess.Popen([sys.executable, "-m", "tests.bench.agent_load", fleet.socket])
    try:
        yield writer
    finally:
        writer.kill()
        writer.wait()


# --- the process that prints ---


class PrintedText:
    """What one agent prints: a line of what it did, and the rows below it again."""

    def __init__(self) -> None:
        screen, self._title = recorded(Kind.AT_WORK)
        self._bottom = screen.split("\r\n")[-BOTTOM_ROWS:]
        self._printed = 0

    def next(self) -> bytes:
        self._printed += 1
        line = f"\x1b[38;5;246m●\x1b[39m \x1b[1mRead\x1b[0m(src/part_{self._printed}.py)"
        title = self._title.replace("⠐", "⠂" if self._printed % 2 else "⠐")
        text = f"\x1b]2;{title}\x07\x1b[{BOTTOM_ROWS - 1}A\r\x1b[J" + "\r\n".join((line, "", *self._bottom))
        return text.encode()


class Terminals:
    """The terminals of a tmux server's panes, opened for writing, and when each is written to next."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self._open: dict[str, tuple[int, PrintedText]] = {}
        self._due: list[tuple[float, str]] = []
        self._read_at = float("-inf")
        self._most = 1

    def serve(self) -> None:
        now = time.monotonic()
        if len(self._open) < self._most and now - self._read_at >= TERMINALS_READ_EVERY_S:
            self._read(now)
        while self._due and self._due[0][0] <= now:
            _, terminal = heapq.heappop(self._due)
            self._print(terminal, now)
        time.sleep(max(0.0, min([at for at, _ in self._due[:1]], default=now + 0.1) - time.monotonic()))

    def _print(self, terminal: str, now: float) -> None:
        file, text = self._open[terminal]
        try:
            os.write(file, text.next())
        except BlockingIOError:
            pass
        except OSError:  # its session has ended, and the next one has a terminal of its own
            os.close(file)
            del self._open[terminal]
            return
        heapq.heappush(self._due, (now + random.uniform(0, 2 * PRINTS_EVERY_S), terminal))

    def _read(self, now: float) -> None:
        asked = ("list-panes", "-a", "-f", "#{@muster_agent}", "-F", "#{pane_tty}")
        answer = subprocess.run(["tmux", "-L", self._socket, *asked], capture_output=True, text=True, check=False)
        self._read_at = now
        for terminal in answer.stdout.split():
            if terminal not in self._open:
                with suppress(OSError):
                    file = os.open(terminal, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
                    self._open[terminal] = (file, PrintedText())
                    heapq.heappush(self._due, (now + random.uniform(1, 1 + 2 * PRINTS_EVERY_S), terminal))
        self._most = max(self._most, len(self._open))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("socket")
    terminals = Terminals(parser.parse_args().socket)
    while True:
        terminals.serve()


if __name__ == "__main__":
    main()
