"""`muster logs`: what an agent wrote to its terminal, as lines to read, while it runs and after.

Needs no service: it reads the files that tmux writes.
"""

import argparse
import difflib
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from services.cli import exits
from services.cli.fleet import open_fleet_leniently, say
from services.cli.words import ago, plain, table
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.ids import is_id
from shared.terminal import Fresh, Reading, tidy

LOOKS_EVERY_S = 0.5
FIRST_BYTES, MOST_BYTES = 1_000_000, 8_000_000
"""How much of a log's end is read to find the lines in; a megabyte takes half a second."""


class NobodyNamed(MusterError):
    exit_code = exits.USAGE


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
class Log:
    agent: str
    path: str
    bytes: int
    written: float
    older: int
    """How many older parts there are besides."""


def logs(fleet: Fleet) -> list[Log]:
    found = []
    for path in sorted(fleet.logs.glob("*.log")):
        status = path.stat()
        older = sum(part.suffix[1:].isdigit() for part in path.parent.glob(f"{path.name}.*"))
        found.append(Log(path.stem, str(path), status.st_size, status.st_mtime, older))
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
        close = difflib.get_close_matches(agent, known, n=1)
        hint = f" did you mean {close[0]!r}?" if close else ""
        raise MusterError(f"there is no agent and no log {plain(agent)!r};{hint} {_there_are(fleet)}")
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
    """The last lines as they are, and then what comes."""
    tail = Tail(path)
    end = tail.last(MOST_BYTES)
    yield b"".join(end.splitlines(keepends=True)[-lines:]) if lines > 0 else b""
    while follow:
        time.sleep(LOOKS_EVERY_S)
        yield tail.read()


def readable(path: Path, lines: int, *, follow: bool) -> Iterator[str]:
    """The last lines that a person could have read, and then those that come."""
    size = FIRST_BYTES
    while True:
        tail, reading, fresh = Tail(path), Reading(), Fresh()
        end = tail.last(size)
        reading.feed(end)
        found = tidy(fresh.begin(reading))
        if len(found) >= lines or len(end) < size or size >= MOST_BYTES:
            break
        size *= 4
    yield from found[-lines:] if lines > 0 else []
    last = found[-1] if found else ""
    while follow:
        time.sleep(LOOKS_EVERY_S)
        reading.feed(tail.read())
        for line in tidy([last, *fresh.look(reading)])[bool(last) :]:
            yield line
            last = line


class Tail:
    """The bytes of a log, each once, though the file is rotated, emptied or not there yet.

    It is rotated in two ways: copied to `.1` and emptied, or renamed to `.1` and made anew.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._older = path.with_name(f"{path.name}.1")
        self._older_inode = _inode(self._older)
        self._file: BinaryIO | None = None
        self._at = 0
        self._doubt = False

    def last(self, size: int) -> bytes:
        """The end of what there is, older part and newer one together; `read` goes on behind it."""
        now = self.read(skip_to=size)
        if len(now) < size and self._older.exists():
            with self._older.open("rb") as file:
                file.seek(-min(size - len(now), self._older.stat().st_size), os.SEEK_END)
                return file.read() + now
        return now

    def read(self, *, skip_to: int | None = None) -> bytes:
        """What was appended since; only the last `skip_to` bytes of it when that is given."""
        inode, older = _inode(self._path), _inode(self._older)
        if self._file is None and inode is not None:
            self._file, self._at = self._path.open("rb"), 0
        if self._file is None:
            return b""
        if inode is not None and inode != os.fstat(self._file.fileno()).st_ino:
            rest = self._take(self._file, skip_to)
            self._file.close()
            self._file, self._at, self._older_inode = self._path.open("rb"), 0, older
            return rest + self._take(self._file, skip_to)
        is_shorter, is_moved = self._file.seek(0, os.SEEK_END) < self._at, older != self._older_inode
        if is_moved and not is_shorter and not self._doubt:
            self._doubt = True  # copied and not emptied yet, or emptied and grown again: the next look knows
            return b""
        rest = self._rest_of_older() if is_moved else b""
        if is_moved or is_shorter:
            self._at, self._older_inode, self._doubt = 0, older, False
        return rest + self._take(self._file, skip_to)

    def _rest_of_older(self) -> bytes:
        try:
            with self._older.open("rb") as file:
                file.seek(self._at)
                return file.read()
        except FileNotFoundError:
            return b""

    def _take(self, file: BinaryIO, skip_to: int | None) -> bytes:
        if skip_to is not None:
            self._at = max(self._at, file.seek(0, os.SEEK_END) - skip_to)
        file.seek(self._at)
        taken = file.read()
        self._at += len(taken)
        return taken


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None
