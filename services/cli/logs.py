"""`muster logs`: what an agent wrote to its terminal, as lines to read, while it runs and after.

Needs no service: it reads the files that tmux writes.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from services.cli import exit_codes
from services.cli.fleet_option import open_fleet_leniently, say
from services.cli.tables import table
from services.cli.terminal import LineReading, UnseenLines, tidy
from services.cli.words import ago, did_you_mean, plain
from shared.contract.ids import is_id
from shared.errors import MusterError
from shared.fleet import Fleet

POLL_INTERVAL_S = 0.5
TAIL_BYTES = 2_000_000
"""How much of a log's end is read to find lines in: a megabyte takes half a second."""
MANY_LINES, LONG_TAIL_BYTES = 500, 10_000_000
"""For more lines than this, so much is read."""


class NobodyNamed(MusterError):
    exit_code = exit_codes.USAGE


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", nargs="?", help="whose output; with --list none")
    parser.add_argument("-f", "--follow", action="store_true", help="go on showing what comes, until Ctrl-C")
    parser.add_argument("-n", "--lines", type=int, default=50, metavar="N", help="how many lines to begin with (50)")
    parser.add_argument("--raw", action="store_true", help="the bytes as the program wrote them, for a terminal")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--list", action="store_true", help="say which logs there are")


def run(options: argparse.Namespace) -> int:
    fleet, _ = open_fleet_leniently(options)
    if options.list:
        _list(fleet, as_json=options.json)
        return 0
    if not options.agent:
        raise NobodyNamed(f"whose log? {_there_are(fleet)}")
    path = _find(fleet, options.agent, follow=options.follow)
    if options.raw:
        for piece in raw(path, options.lines, follow=options.follow):
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
    else:
        for line in readable(path, options.lines, follow=options.follow):
            print(json.dumps({"agent": options.agent, "line": line}) if options.json else plain(line), flush=True)
    return 0


# --- which logs there are ---


@dataclass(frozen=True)
class OutputLog:
    agent: str
    path: str
    bytes: int
    written: float
    older: int
    """How many older parts there are besides."""


def logs(fleet: Fleet) -> list[OutputLog]:
    found = []
    for path in sorted(fleet.logs.glob("*.log")):
        status = path.stat()
        older = sum(part.suffix[1:].isdigit() for part in path.parent.glob(f"{path.name}.*"))
        found.append(OutputLog(path.stem, str(path), status.st_size, status.st_mtime, older))
    return found


def _list(fleet: Fleet, *, as_json: bool) -> None:
    found = logs(fleet)
    if as_json:
        print(json.dumps([vars(log) for log in found]))
    elif found:
        rows = [
            [log.agent, f"{log.bytes:,}", str(log.older), ago(time.time() - log.written), log.path] for log in found
        ]
        print(table(["agent", "bytes", "older parts", "last grew", "file"], rows))
    else:
        print(f"there are no logs in {fleet.logs}; one begins when its agent is started")


def _find(fleet: Fleet, agent: str, *, follow: bool) -> Path:
    path = fleet.logs / f"{agent}.log"
    if is_id(agent) and path.exists():
        return path
    if agent not in fleet.agents:
        known = sorted({*fleet.agents, *(log.agent for log in logs(fleet))})
        hint = did_you_mean(agent, known)
        raise MusterError(f"there is no agent and no log {plain(agent)!r}; {hint}{_there_are(fleet)}")
    if not follow:
        raise MusterError(
            f"{agent} has no log yet: {path} begins when it is started; muster logs -f {agent} waits for it"
        )
    say(f"waits for {path}")
    return path


def _there_are(fleet: Fleet) -> str:
    names = [log.agent for log in logs(fleet)]
    return f"there are logs of: {', '.join(names)}" if names else "there are no logs yet"


# --- reading ---


def raw(path: Path, lines: int, *, follow: bool) -> Iterator[bytes]:
    """The last lines as they are; with `follow`, then what comes."""
    with closing(LogTail(path)) as tail:
        found = tail.last(LONG_TAIL_BYTES).split(b"\n")  # not by splitlines: repaints are full of carriage returns
        yield b"\n".join(found[-lines - (not found[-1]) :]) if lines > 0 else b""
        while follow:
            time.sleep(POLL_INTERVAL_S)
            yield tail.read()


def readable(path: Path, lines: int, *, follow: bool) -> Iterator[str]:
    """The last lines that a person could have read; with `follow`, then those that come."""
    with closing(LogTail(path)) as tail:
        reading, unseen = LineReading(), UnseenLines()
        reading.feed(tail.last(LONG_TAIL_BYTES if lines > MANY_LINES else TAIL_BYTES))
        found = tidy(unseen.begin(reading))
        yield from found[-lines:] if lines > 0 else []
        last = found[-1] if found else ""
        while follow:
            time.sleep(POLL_INTERVAL_S)
            reading.feed(tail.read())
            for line in tidy([last, *unseen.look(reading)])[bool(last) :]:
                yield line
                last = line


class LogTail:
    """The bytes of a log, each once, even if the file is rotated, emptied or not there yet.

    A log is rotated in two ways: copied to `.1` and emptied, or renamed to `.1` and made anew. Older parts move to `.2`
    and on.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._older = self._parts()[:1]
        self._file: BinaryIO | None = None
        self._at = 0
        self._unclear_parts: list[tuple[int, int]] = []
        """The older parts at a look that could not tell whether the file is to be emptied, or was and grew again."""

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def last(self, size: int) -> bytes:
        """The end of the log, from the older part and the newer one; `read` continues behind it."""
        now = self.read(skip_to=size)
        older = _from(numbered(self._path, 1), 0) if len(now) < size else b""
        return older[-(size - len(now)) :] + now if older else now

    def read(self, *, skip_to: int | None = None) -> bytes:
        """What was appended since; only the last `skip_to` bytes of it when that is given."""
        if self._file is None:
            try:
                self._file, self._at = self._path.open("rb"), 0
            except FileNotFoundError:
                return b""
        # In this order: a file is emptied after it was copied, so if it is seen emptied, the copy is seen, too.
        is_shorter = self._file.seek(0, os.SEEK_END) < self._at
        parts, here = self._parts(), _identity(self._path)
        if here and here[0] != os.fstat(self._file.fileno()).st_ino:
            rest = self._take(self._file, skip_to)
            self._file.close()
            self._file, self._at, self._older = self._path.open("rb"), 0, parts[:1]
            return rest + self._take(self._file, skip_to)
        is_moved = bool(parts) and parts[:1] != self._older
        if is_moved and not is_shorter and self._unclear_parts != parts:
            self._unclear_parts = parts  # the next look knows
            return b""
        rest = self._left_behind(parts) if is_moved else b""
        if is_moved or is_shorter:
            self._at, self._older, self._unclear_parts = 0, parts[:1], []
        return rest + self._take(self._file, skip_to)

    def _parts(self) -> list[tuple[int, int]]:
        """Which files are the older parts now, the newest first."""
        found: list[tuple[int, int]] = []
        while part := _identity(numbered(self._path, len(found) + 1)):
            found.append(part)
        return found

    def _left_behind(self, parts: list[tuple[int, int]]) -> bytes:
        """What the file held behind our place, and the parts that came after it."""
        news = parts.index(self._older[0]) if self._older and self._older[0] in parts else len(parts)
        places = [self._at, *[0] * news]
        return b"".join(_from(numbered(self._path, n), places[news - n]) for n in range(news, 0, -1))

    def _take(self, file: BinaryIO, skip_to: int | None) -> bytes:
        if skip_to is not None:
            self._at = max(self._at, file.seek(0, os.SEEK_END) - skip_to)
        file.seek(self._at)
        taken = file.read()
        self._at += len(taken)
        return taken


def numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _from(path: Path, place: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(place)
            return file.read()
    except FileNotFoundError:
        return b""


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file it is. An inode number alone may be given to another file later."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns
