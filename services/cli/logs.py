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
        if (status := _status(path)) is not None:  # else it is just being rotated
            older = len(older_parts(path))
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

    At a rotation, older parts move from `.1` to `.2` and on, the file to `.1`, and a new one is made. What was removed
    before it could be read is left out.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._at = 0

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def last(self, size: int) -> bytes:
        """The end of the log, from the older part and the newer one; `read` continues behind it."""
        now = self.read(skip_to=size)
        older = _from(numbered(self._path, 1)) if len(now) < size else b""
        return older[-(size - len(now)) :] + now if older else now

    def read(self, *, skip_to: int | None = None) -> bytes:
        """What was appended since; only the last `skip_to` bytes of it when that is given."""
        if self._file is None:
            self._file = _opened(self._path)
        if self._file is None:
            return b""
        taken = self._take(self._file, skip_to)
        while (following := self._following(self._file)) is not None:
            taken += self._take(self._file, skip_to)  # to its end: it is not written any more
            self._file.close()
            self._file, self._at = following, 0
            taken += self._take(self._file, skip_to)
        return taken

    def _following(self, file: BinaryIO) -> BinaryIO | None:
        """The part that was begun after this one; None if this is the newest, or a rotation is under way."""
        ours = os.fstat(file.fileno())
        if _is(self._path, ours):
            return None
        numbers = [int(part.suffix[1:]) for part in older_parts(self._path)]
        # Upwards, as parts move: none is passed by unseen.
        number = next((n for n in range(1, max(numbers, default=0) + 2) if _is(numbered(self._path, n), ours)), None)
        if number is None:  # it was removed, by its writer or by a person
            newer = [n for n in numbers if (found := _status(numbered(self._path, n))) and _is_later(found, ours)]
            return _opened(numbered(self._path, max(newer)) if newer else self._path)
        following = _opened(numbered(self._path, number - 1) if number > 1 else self._path)
        if following is not None and not _is(numbered(self._path, number), ours):
            following.close()  # all have moved meanwhile
            return None
        return following

    def _take(self, file: BinaryIO, skip_to: int | None) -> bytes:
        end = file.seek(0, os.SEEK_END)
        if end < self._at:
            self._at = 0  # it was emptied
        if skip_to is not None:
            self._at = max(self._at, end - skip_to)
        file.seek(self._at)
        taken = file.read()
        self._at += len(taken)
        return taken


def numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def older_parts(path: Path) -> list[Path]:
    return [part for part in path.parent.glob(f"{path.name}.*") if part.suffix[1:].isdecimal()]


def _opened(path: Path) -> BinaryIO | None:
    try:
        return path.open("rb")
    except FileNotFoundError:
        return None


def _from(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _is(path: Path, ours: os.stat_result) -> bool:
    found = _status(path)
    return found is not None and os.path.samestat(found, ours)


def _is_later(found: os.stat_result, ours: os.stat_result) -> bool:
    return found.st_mtime_ns >= ours.st_mtime_ns
