"""Reads what the hook program stored, in the order of the events.

A file stays until the reader drops it, so a crash in between loses nothing. Of a long payload only the beginning is
stored; its JSON is read as far as it is complete.
"""

import json
import os
import re
import select
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.agents.hooks.program import HALF_WRITTEN_S, KEPT
from shared.system.files import make_directory

_BETWEEN = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def whole_members(text: str) -> dict[str, Any]:
    """The complete members of a truncated JSON object; {} if it is no object."""
    found: dict[str, Any] = {}
    place = _behind(text, 0, "{")
    while place is not None:
        try:
            key, end = _DECODER.raw_decode(text, place)
            colon = _behind(text, end, ":")
            if colon is None or not isinstance(key, str):
                break
            value, end = _DECODER.raw_decode(text, colon)
        except (ValueError, RecursionError):
            break
        place = _behind(text, end, ",")
        if place is not None:  # without a comma the value may be truncated too, as 12 of 123
            found[key] = value
    return found


def _behind(text: str, place: int, mark: str) -> int | None:
    """The start of the next value, if this mark comes before it."""
    at = _skip(text, place)
    return _skip(text, at + 1) if text.startswith(mark, at) else None


def _skip(text: str, place: int) -> int:
    found = _BETWEEN.match(text, place)
    return found.end() if found else place


FORMAT = "1"
AT_MOST = 1_000
"""How many events `read` returns at most; if it returns as many, there may be more."""
BAD_KEPT = 20
LOOK_EVERY_S = 1.0
"""How often the pipe is checked to be the one that hooks write to."""


@dataclass(frozen=True)
class HookEvent:
    """One call of a hook."""

    at: float
    """When the hook ran, in seconds since the epoch."""
    spawn: str | None
    """The spawn id, if Muster started the agent. This and the next two are from the environment of `pid`."""
    pane: str | None
    """tmux's id of the pane, if there is one."""
    socket: str | None
    """The path of the tmux server's socket."""
    pid: int
    """The agent's process. A Codex daemon works for many panes with the environment of the first one: if this process
    is not below the pane's, ignore the three above and use the session in the payload.
    """
    payload: dict[str, Any] = field(repr=False)
    """The agent's own data, which can be encoded as UTF-8; the beginning, if it was too long."""
    file: Path

    @property
    def name(self) -> str:
        """The agent's name of the event; empty if it has none."""
        name = self.payload.get("hook_event_name")
        return name if isinstance(name, str) else ""


class MalformedHook(Exception):
    """Not a complete file of the hook program; the message says what is wrong."""


class Spool:
    """A fleet's hooks directory. Methods raise OSError for disk errors, but for no content of a file."""

    def __init__(self, directory: Path, warn: Callable[[str], None] = lambda _said: None) -> None:
        self.directory = directory
        self._files = directory / "spool"
        self._bad = self._files / "bad"
        self._pipe = directory / "wake"
        self._warn = warn

    def prepare(self) -> None:
        """Create what is missing, readable by its owner only. Events before that are lost."""
        for each in (self.directory, self._files):
            make_directory(each)
        try:
            is_pipe = stat.S_ISFIFO(self._pipe.lstat().st_mode)
        except FileNotFoundError:
            is_pipe = False
        if not is_pipe:
            self._pipe.unlink(missing_ok=True)
            with suppress(FileExistsError):  # another service has just made it
                os.mkfifo(self._pipe, 0o600)
        self._pipe.chmod(0o600)

    def read(self, at_most: int = AT_MOST, but: Collection[str] = ()) -> list[HookEvent]:
        """The oldest events in the order of their times, without the files in `but`. Sets malformed files aside, with a
        warning."""
        found = []
        for name in [each for each in self._names() if each not in but][:at_most]:
            file = self._files / name
            try:
                found.append(read_event(file))
            except FileNotFoundError:
                continue  # a hook has just pruned it
            except (MalformedHook, OSError) as fault:
                self._set_aside(file, fault)
        return found

    def drop(self, names: Iterable[str]) -> None:
        """Remove files, by name, that were handled or that will never be needed."""
        for name in names:
            (self._files / name).unlink(missing_ok=True)

    def remove_foreign(self) -> int:
        """Remove the events of agents that Muster did not start; returns how many."""
        theirs = []
        with suppress(FileNotFoundError):
            for file in self._files.iterdir():
                with suppress(MalformedHook, OSError):
                    if file.name[0].isdigit() and not _head(_bytes(file))[0][2]:
                        theirs.append(file.name)
        self.drop(theirs)
        return len(theirs)

    def listen(self, on_wake: Callable[[], None]) -> Callable[[], None]:
        """Call `on_wake` from a new thread after hooks have written, once for many; returns a function that ends it."""
        over = threading.Event()
        thread = threading.Thread(target=self._listen, args=(on_wake, over), name="hooks", daemon=True)
        thread.start()

        def end() -> None:
            over.set()
            thread.join()

        return end

    def _names(self) -> list[str]:
        try:
            names = [file.name for file in self._files.iterdir()]
        except FileNotFoundError:
            self.prepare()
            return []
        for name in names:
            if name.startswith("."):
                self._remove_if_left(self._files / name)
        return sorted(name for name in names if name[0].isdigit())

    def _remove_if_left(self, half: Path) -> None:
        try:
            if half.lstat().st_mtime < time.time() - HALF_WRITTEN_S:
                half.unlink()
        except FileNotFoundError:
            return

    def _set_aside(self, file: Path, fault: Exception) -> None:
        make_directory(self._bad)
        for old in sorted(self._bad.iterdir())[: -(BAD_KEPT - 1)]:
            old.unlink(missing_ok=True)
        try:
            file.rename(self._bad / file.name)
        except OSError as error:
            self._warn(f"{file} is no hook's file ({fault}), and can't be set aside: {error}")
        else:
            self._warn(f"{file.name} was set aside in {self._bad}: {fault}")

    def _listen(self, on_wake: Callable[[], None], over: threading.Event) -> None:
        while not over.is_set():
            try:
                self.prepare()
                # Open for writing too: without a writer, a pipe would always be readable, at its end.
                pipe = os.open(self._pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            except Exception as error:  # noqa: BLE001 - a disk error may be temporary
                self._warn(f"hooks can't wake the monitor: {error}")
                over.wait(LOOK_EVERY_S)
                continue
            try:
                on_wake()  # for events from before
                while not over.is_set() and self._is_still(pipe):
                    if select.select([pipe], [], [], LOOK_EVERY_S)[0]:
                        os.read(pipe, 1 << 16)
                        on_wake()
            finally:
                os.close(pipe)

    def _is_still(self, pipe: int) -> bool:
        try:
            return os.path.samestat(os.fstat(pipe), self._pipe.lstat()) and self._files.is_dir()
        except OSError:
            return False


def read_event(file: Path) -> HookEvent:
    """Read one file. Raises MalformedHook or OSError."""
    fields, body = _head(_bytes(file))
    _, time_ns, spawn, pane, socket, pid = fields
    if not (time_ns.isdecimal() and time_ns.isascii() and pid.isdecimal() and pid.isascii()):
        raise MalformedHook("its first line has no time or no process")
    return HookEvent(
        int(time_ns[:20]) / 1e9, spawn or None, pane or None, socket or None, int(pid[:20]), _payload(body), file
    )


def _head(data: bytes) -> tuple[list[str], bytes]:
    """The fields of the first line, and the payload."""
    head, _, body = data.partition(b"\n")
    fields = os.fsdecode(head).split("\t")
    if len(fields) != 6 or fields[0] != FORMAT:
        raise MalformedHook(f"its first line is not of format {FORMAT}")
    return fields, body


def _bytes(file: Path) -> bytes:
    """The content of a plain file; a pipe might never end."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as opened:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise MalformedHook("it is not a plain file")
        return opened.read()


def _payload(body: bytes) -> dict[str, Any]:
    try:
        payload = _decoded(body)
        if b"\\ud" in body or b"\\uD" in body:  # a lone surrogate, in a text that the agent has cut
            payload = json.loads(json.dumps(payload, ensure_ascii=False).encode(errors="replace"))
    except (ValueError, RecursionError) as error:
        raise MalformedHook(f"the payload is not JSON: {error}") from error
    if not isinstance(payload, dict):
        raise MalformedHook("the payload is not an object")
    return payload


def _decoded(body: bytes) -> Any:
    text = body.decode(errors="replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if len(body) < KEPT or not (whole := whole_members(text)):
            raise
        return whole
