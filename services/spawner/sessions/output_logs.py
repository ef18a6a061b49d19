"""The agents' output logs. tmux pipes what a program writes to a file, and a pipe can silently stop.

Each log is compared with the activity of its pane. `decide` (pure) says what to do; `LogKeeper` does it. Logs of agents
that are gone stay: people read them after a death.
"""

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import psutil

from shared.errors import MusterError
from shared.system.files import make_directory
from shared.system.tmux import Pane, Tmux

MAX_BYTES, KEEP = 10_000_000, 3
LOG_GROWS_WITHIN_S = 5.0
"""A log must have grown so long after its pane was active. A healthy one takes milliseconds."""
FIRST_RETRY_AFTER_S, LONGEST_RETRY_AFTER_S = 5.0, 600.0
STEADY_AFTER_S = 60.0
"""A log that grows for so long after a repair counts as repaired."""
ROOM_BYTES = 1_000_000
WRITER_STOPS_WITHIN_S = 0.5


class LogAction(StrEnum):
    ROTATE = "rotate"
    PIPE = "pipe"
    """tmux has no pipe for the pane: it was never made, or `cat` ended, as it does when the disk is full."""
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
        wanted = LogAction.ROTATE
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

    def path_for(self, agent: str) -> Path:
        """The log of an agent. It is created here with its mode, since tmux would let others read it.

        Never raises: an agent runs without a log too, and `tend` says what is wrong.
        """
        path = log_of(self._directory, agent)
        with suppress(OSError, MusterError):
            self._make(path)
        return path

    def tend(self, panes: Iterable[Pane], now: float) -> list[str]:
        """Repair and rotate the logs of these panes; returns sentences for people."""
        living = {pane.agent: pane for pane in panes if pane.agent and not pane.dead}
        self._memories = {agent: kept for agent, kept in self._memories.items() if agent in living}
        return [said for agent, pane in living.items() if (said := self._tend(agent, pane, now))]

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
                    return f"{agent}: its output is not logged: the disk of {path} is full; free some space"
                case LogAction.ROTATE:
                    said = self._rotate(pane, path)
                    self._memories[agent] = replace(memory, size=0, tries=0)
                    return said and f"{agent}: {said}"
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
        try:
            status = path.stat()
        except FileNotFoundError:
            return LogObservation(pane.piped, pane.activity, None)
        room = pane.piped or shutil.disk_usage(path.parent).free > ROOM_BYTES
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
        self._tmux.pipe(pane.pane_id, path)
        return f"its output went to no log; from now on it is appended to {path}"

    def _repair(self, pane: Pane, path: Path) -> str:
        stopped = [writer for writer in writers(self._tmux, path) if writer.status() == psutil.STATUS_STOPPED]
        for writer in stopped:
            writer.resume()  # a new pipe would drop what waits in the old one
        if stopped:
            return f"the writer of its log {path} had been stopped, and was woken"
        self._pipe(pane, path)
        return f"its log {path} did not grow while it wrote to its screen; the pipe to it was made anew"

    # --- rotation ---

    def _rotate(self, pane: Pane, path: Path) -> str | None:
        """Copy the log to `.1`, older parts one further, and truncate it, while its writer is suspended.

        A rename and a new pipe would be simpler, but tmux drops what waits in the old pipe: of a program that wrote 500
        lines a second, one in six such rotations lost some.
        """
        suspended = writers(self._tmux, path)
        if not suspended:
            self._make_way(path)
            path.rename(numbered(path, 1)) if self._keep else path.unlink()
            self._pipe(pane, path)
            return f"its log {path} was rotated by a new pipe, as its writer was not to be seen; a line may be missing"
        copy = numbered(path, 0)
        with _suspended(suspended):
            try:
                os.close(os.open(copy, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600))
                shutil.copyfile(path, copy)
                self._make_way(path)
                copy.rename(numbered(path, 1)) if self._keep else None
            finally:
                copy.unlink(missing_ok=True)
            os.truncate(path, 0)  # last: after a crash before this, the lines are there twice and not lost
        return None

    def _make_way(self, path: Path) -> None:
        for number in range(self._keep, 0, -1):
            with suppress(FileNotFoundError):
                old = numbered(path, number)
                old.rename(numbered(path, number + 1)) if number < self._keep else old.unlink()


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
    return [child for child in server.children() if _writes(child, path)]


def numbered(path: Path, number: int) -> Path:
    """An older part of a log; 1 is the newest."""
    return path.with_name(f"{path.name}.{number}")


def _writes(process: psutil.Process, path: Path) -> bool:
    with suppress(psutil.Error, OSError):
        return process.name() == "cat" and any(path.samefile(file.path) for file in process.open_files())
    return False


@contextmanager
def _suspended(processes: list[psutil.Process]) -> Iterator[None]:
    """Suspend these processes for the block: tmux buffers what they would write."""
    try:
        for process in processes:
            process.suspend()
        until = time.monotonic() + WRITER_STOPS_WITHIN_S
        while any(process.status() != psutil.STATUS_STOPPED for process in processes):
            if time.monotonic() > until:
                raise MusterError("its writer does not stop, as if the disk did not answer; it is tried again later")
            time.sleep(0.001)
        yield
    finally:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.resume()


def _rarely(memory: LogMemory, agent: str, said: str) -> str | None:
    """Say it at the first attempt and at the third, and not at every one for ever."""
    match memory.tries:
        case 1:
            return f"{agent}: {said}"
        case 3:
            return f"{agent}: {said}; that was the third time, and it goes on being tried: is something else at work?"
    return None
