"""The agents' output logs. tmux pipes what a program writes to a file, and a pipe can silently stop.

The writer of a log keeps its size, also while no service runs (`shared/system/tmux/log_pipe.py`). Here each log is
compared with the activity of its pane: `decide` (pure) says what to do, and `LogKeeper` does it. Logs of agents that
are gone stay: people read them after a death.
"""

import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path

import psutil

from shared.errors import MusterError
from shared.system.files import make_directory
from shared.system.tmux import LogPipe, Pane, Tmux
from shared.system.tmux.log_pipe import is_writer_of

MAX_BYTES, KEEP = 10_000_000, 3
LOG_GROWS_WITHIN_S = 5.0
"""A log must have grown so long after its pane was active. A healthy one takes milliseconds."""
FIRST_RETRY_AFTER_S, LONGEST_RETRY_AFTER_S = 5.0, 600.0
STEADY_AFTER_S = 60.0
"""A log that grows for so long after a repair counts as repaired."""
ROOM_BYTES = 1_000_000
TRIMMED_EVERY_S = 25.0
RENAMED_WITHIN_LOOKS, RENAMED_WITHIN_S = 5, 0.02
"""At a rotation, there is no file of this name for some 0.3 ms."""


class LogAction(StrEnum):
    PIPE = "pipe"
    """tmux has no pipe for the pane: it was never made, or its writer ended, as it does when the disk is full."""
    REPLACE = "replace"
    """The log is larger than its writer would let it become: it is none of ours, or of other settings."""
    REPAIR = "repair"
    """There is a pipe, but what the program writes does not arrive."""
    WAIT_FOR_ROOM = "wait for room"


@dataclass(frozen=True, slots=True)
class LogObservation:
    """One look. `activity` is when tmux last read output of the window; keys, resizing and clients don't change it."""

    piped: bool
    activity: int
    size: int | None
    """None if there is no file."""
    written: float = 0.0
    """When the file last changed."""
    room: bool = True


@dataclass(frozen=True, slots=True)
class LogMemory:
    """What is remembered of a log between looks."""

    size: int
    grew: float
    """Until when the log was known to be complete."""
    ahead: float | None = None
    """Since when the pane has written more than the log has."""
    tries: int = 0
    tried: float = 0.0
    full: bool = False
    """Whether it was said that there is no room."""

    def may_try(self, now: float) -> bool:
        wait_s = min(FIRST_RETRY_AFTER_S * 2.0 ** min(self.tries - 1, 32), LONGEST_RETRY_AFTER_S) if self.tries else 0.0
        return not self.tried <= now < self.tried + wait_s


def decide(
    seen: LogObservation, memory: LogMemory | None, *, max_bytes: int, now: float
) -> tuple[LogAction | None, LogMemory]:
    """Say what to do about one log, and what to remember. Repairs that don't help are retried less and less often."""
    memory = _compare(seen, memory or LogMemory(size=seen.size or 0, grew=min(seen.written, now)), now)
    if not seen.piped or seen.size is None:
        wanted = LogAction.PIPE
    elif memory.ahead is not None and now >= memory.ahead + LOG_GROWS_WITHIN_S:
        wanted = LogAction.REPAIR
    elif seen.size > max_bytes:
        wanted = LogAction.REPLACE
    else:
        return None, memory
    if not seen.room:
        return (None if memory.full else LogAction.WAIT_FOR_ROOM), replace(memory, full=True)
    if not memory.may_try(now):
        return None, memory
    return wanted, replace(memory, tries=memory.tries + 1, tried=now, full=False, ahead=None, grew=now)


def _compare(seen: LogObservation, memory: LogMemory, now: float) -> LogMemory:
    """Has the log grown, and is the pane ahead of it?"""
    size = seen.size or 0
    if size > memory.size:
        steady = seen.piped and not memory.tried <= now < memory.tried + STEADY_AFTER_S
        return replace(memory, size=size, grew=now, ahead=None, tries=0 if steady else memory.tries)
    # tmux gives whole seconds and file times may lag: less than a second ahead means nothing.
    if seen.activity > min(memory.grew, now) + 1:
        return replace(memory, size=size, ahead=now if memory.ahead is None else min(memory.ahead, now))
    return replace(memory, size=size)


class LogKeeper:
    """Keeps the logs of a fleet in one directory, readable by its owner alone."""

    def __init__(self, tmux: Tmux, directory: Path, *, max_bytes: int = MAX_BYTES, keep: int = KEEP) -> None:
        self._tmux = tmux
        self._directory = directory
        self._max_bytes = max_bytes
        self._keep = keep
        self._memories: dict[str, LogMemory] = {}
        self._trimmed = 0.0

    def pipe_for(self, agent: str) -> LogPipe:
        """The log of an agent, for tmux. Its file is created here, readable by its owner alone.

        Never raises: an agent runs without a log too, and `tend` says what is wrong.
        """
        path = log_of(self._directory, agent)
        with suppress(OSError, MusterError):
            self._make(path)
        return LogPipe(path, self._max_bytes, self._keep)

    def tend(self, panes: Iterable[Pane], now: float) -> list[str]:
        """Repair the logs of these panes, and keep all others within their bounds; returns sentences for people."""
        living = {pane.agent: pane for pane in panes if pane.agent and not pane.dead}
        self._memories = {agent: kept for agent, kept in self._memories.items() if agent in living}
        repaired = [said for agent, pane in living.items() if (said := self._tend(agent, pane, now))]
        return [*repaired, *self._trim_all(living, now)]

    def _tend(self, agent: str, pane: Pane, now: float) -> str | None:
        path = log_of(self._directory, agent)
        try:
            seen = self._look(pane, path)
            act, memory = decide(seen, self._memories.get(agent), max_bytes=self._max_bytes, now=now)
            self._memories[agent] = memory
            match act:
                case None:
                    return None
                case LogAction.WAIT_FOR_ROOM:
                    return (
                        f"{agent}: its output is not logged: {path} can't be written or its disk is full; see to that"
                    )
                case LogAction.REPLACE:
                    self._pipe(pane, path)
                    said = f"its log {path} was larger than it may be, and has a new writer; a line may be missing"
                    return _rarely(memory, agent, said)
                case LogAction.PIPE:
                    return _rarely(memory, agent, self._pipe(pane, path))
                case LogAction.REPAIR:
                    return _rarely(memory, agent, self._repair(pane, path))
        except (OSError, MusterError, psutil.Error) as error:
            memory = self._memories.get(agent, LogMemory(size=0, grew=now))
            if memory.tried != now:  # the look itself failed
                if not memory.may_try(now):
                    return None
                memory = self._memories[agent] = replace(memory, tries=memory.tries + 1, tried=now)
            return _rarely(memory, agent, f"its log {path} can't be kept: {error}")

    def _look(self, pane: Pane, path: Path) -> LogObservation:
        if (status := _status(path)) is None:
            return LogObservation(pane.piped, pane.activity, None)
        room = pane.piped or (shutil.disk_usage(path.parent).free > ROOM_BYTES and _is_writable(path))
        return LogObservation(pane.piped, pane.activity, status.st_size, status.st_mtime, room)

    def _make(self, path: Path) -> None:
        make_directory(self._directory)
        descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)

    def _pipe(self, pane: Pane, path: Path) -> str:
        self._make(path)
        self._tmux.pipe(pane.pane_id, LogPipe(path, self._max_bytes, self._keep))
        return f"its output went to no log; from now on it is appended to {path}"

    def _repair(self, pane: Pane, path: Path) -> str:
        stopped = [writer for writer in writers(self._tmux, path) if writer.status() == psutil.STATUS_STOPPED]
        for writer in stopped:
            writer.resume()  # a new pipe would drop what waits in the old one
        if stopped:
            return f"the writer of its log {path} had been stopped, and was woken"
        self._pipe(pane, path)
        return f"its log {path} did not grow while it wrote to its screen; the pipe to it was made anew"

    # --- old parts ---

    def _trim_all(self, panes: Mapping[str, Pane], now: float) -> Iterator[str]:
        """Remove or cut what is more than may be kept: of an agent that is gone, by older settings or writers.

        A log that is written is left to its writer.
        """
        if self._trimmed <= now < self._trimmed + TRIMMED_EVERY_S:
            return
        self._trimmed = now
        with suppress(OSError), os.scandir(self._directory) as found:
            for entry in found:
                agent, dot, part = entry.name.partition(".log")
                number = int(part[1:]) if part[1:].isdecimal() else 0
                if not dot or (part and not number) or (not number and agent in panes):
                    continue
                try:
                    if number > self._keep:
                        Path(entry.path).unlink()
                    elif (size := entry.stat().st_size) > self._max_bytes:
                        keep_end(Path(entry.path), self._max_bytes)
                        yield f"{agent}: the oldest {size - self._max_bytes:,} bytes of {entry.path} were dropped"
                except FileNotFoundError:
                    continue  # its writer has just renamed it
                except OSError as error:
                    yield f"{agent}: {entry.path} can't be made smaller: {error}"


def keep_end(path: Path, size: int) -> None:
    """Cut a file that nobody writes to its last bytes."""
    copy = path.with_name(f".{path.name}.cut")
    try:
        with path.open("rb") as whole, open(copy, "wb", opener=partial(os.open, mode=0o600)) as end:
            whole.seek(-size, os.SEEK_END)
            shutil.copyfileobj(whole, end)
            if os.path.samestat(path.stat(), os.fstat(whole.fileno())):  # else its writer has just renamed it
                copy.replace(path)
    finally:
        copy.unlink(missing_ok=True)


def _status(path: Path) -> os.stat_result | None:
    """Its status; None if there is no such file, also after the moment in which its writer renames it."""
    for _ in range(RENAMED_WITHIN_LOOKS):
        with suppress(FileNotFoundError):
            return path.stat()
        time.sleep(RENAMED_WITHIN_S / RENAMED_WITHIN_LOOKS)
    return None


def _is_writable(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def log_of(directory: Path, agent: str) -> Path:
    return directory / f"{agent}.log"


def is_logged(tmux: Tmux, path: Path) -> bool:
    """Whether a process of tmux is known to append to this log."""
    with suppress(psutil.Error):
        return bool(writers(tmux, path))
    return False


def writers(tmux: Tmux, path: Path) -> list[psutil.Process]:
    """The processes that append to this file for tmux; none where they can't be seen."""
    server = psutil.Process(int(tmux.ask(("display-message", "-p", "#{pid}"))[0].text))
    return [each for child in server.children() if _writes(child, path) for each in (child, *child.children())]


def _writes(process: psutil.Process, path: Path) -> bool:
    with suppress(psutil.Error):
        return is_writer_of(path, process.cmdline())
    return False


def _rarely(memory: LogMemory, agent: str, said: str) -> str | None:
    """Say it at the first attempt and at the third, and not at every one for ever."""
    match memory.tries:
        case 1:
            return f"{agent}: {said}"
        case 3:
            return f"{agent}: {said}; that was the third time, and it goes on being tried: is something else at work?"
    return None
