"""Runs one program to its end, or ends it: in its own process group, with a deadline and bounded output.

No child outlives the process that started it: an orphaned tmux control client would keep a tmux server without
sessions alive for ever, and an orphaned query to a model would cost money for an answer that nobody reads.
"""

import ctypes
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

AT_MOST_BYTES = 1 << 20
"""Of its output, from the beginning, unless more is asked for."""
LAST_BYTES = 1 << 16
"""Of its complaints, from the end: that is where they say what it was."""
LOOKS_S, CLOSED_LOOKS_S = 0.1, 0.01
GOES_WITHIN_S = 2.0
"""Who is told to end has so long before it is killed."""


@dataclass(frozen=True)
class ProgramResult:
    """What a program left: its status (None: it was ended), and what it wrote."""

    status: int | None
    out: str
    err: str


@dataclass
class OutputBuffer:
    """What came through one pipe."""

    keeps: int
    last: bool = False
    """Whether the end of it counts, and not the beginning."""
    _data: bytearray = field(default_factory=bytearray)

    def take(self, more: bytes) -> None:
        self._data += more
        if len(self._data) > self.keeps:
            self._data = self._data[-self.keeps :] if self.last else self._data[: self.keeps]

    @property
    def text(self) -> str:
        return self._data.decode("utf-8", "replace")


def run(
    argv: Sequence[str],
    env: Mapping[str, str],
    workspace: Path,
    stdin: Path | bytes | None,
    timeout_s: float,
    cancelled: threading.Event,
    is_hopeless: Callable[[str], bool] = lambda _complaints: False,
    *,
    at_most_bytes: int = AT_MOST_BYTES,
    ends_with_us: bool = True,
) -> ProgramResult:
    """What came of it. Its status is None where it was ended: after its time, when somebody cancels it, or where its
    complaints say that it is hopeless. Nothing of its group is left. May raise OSError.

    `ends_with_us`: also when this process is killed. That costs a whole copy of this process for each start, so what is
    started all the time is marked by a variable instead, and looked for by the next one: `shared.processes.end_marked`.
    """
    with _opened(stdin) as given:
        process = subprocess.Popen(
            argv,
            env=dict(env),
            cwd=workspace,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # its children are in its group, and are ended with it
            preexec_fn=end_with_parent if ends_with_us else None,  # noqa: PLW1509 - one system call, and no lock
        )
    out, err = OutputBuffer(at_most_bytes), OutputBuffer(LAST_BYTES, last=True)
    with process, selectors.DefaultSelector() as pipes:
        for pipe, written in ((process.stdout, out), (process.stderr, err)):
            assert pipe is not None  # noqa: S101 - for the type checker
            os.set_blocking(pipe.fileno(), False)
            pipes.register(pipe, selectors.EVENT_READ, written)
        if (ending := _ending(process)) is not None:
            pipes.register(ending, selectors.EVENT_READ)
        until = time.monotonic() + timeout_s
        try:
            ended = False
            while not (ended or cancelled.is_set() or time.monotonic() >= until or is_hopeless(err.text)):
                ended = _wait(process, pipes)
        finally:
            _end(process, pipes)
            if ending is not None:
                os.close(ending)
    return ProgramResult(process.returncode if ended else None, out.text, err.text)


def _opened(stdin: Path | bytes | None) -> IO[bytes]:
    if not isinstance(stdin, bytes):
        return (stdin or Path(os.devnull)).open("rb")
    file = tempfile.TemporaryFile()  # noqa: SIM115 - a pipe would have to be filled while its reader is read
    file.write(stdin)
    file.seek(0)
    return file


def _ending(process: "subprocess.Popen[bytes]") -> int | None:
    """What can be read as soon as it has ended, so that nobody has to look again and again; not on every system."""
    try:
        return os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        return None


def _wait(process: "subprocess.Popen[bytes]", pipes: selectors.BaseSelector) -> bool:
    """Whether it has come to its end. What others still write to its pipes then is not waited for."""
    ended = _has_ended(process)
    _read(pipes, 0.0 if ended else LOOKS_S)
    return ended


def _read(pipes: selectors.BaseSelector, wait_s: float) -> None:
    """Take in all that is there."""
    if not pipes.get_map():
        time.sleep(min(wait_s, CLOSED_LOOKS_S))
        return
    for key, _ in pipes.select(wait_s):
        while key.data is not None:
            try:
                data = os.read(key.fd, LAST_BYTES)
            except BlockingIOError:
                break
            if not data:
                pipes.unregister(key.fileobj)
                break
            key.data.take(data)


def _end(process: "subprocess.Popen[bytes]", pipes: selectors.BaseSelector) -> None:
    """End the whole group. Its leader is not taken note of before, so that its number can't be another's meanwhile."""
    if not _has_ended(process):
        _signal(process, signal.SIGTERM)
        until = time.monotonic() + GOES_WITHIN_S
        while not _has_ended(process) and time.monotonic() < until:
            _read(pipes, LOOKS_S)
    _signal(process, signal.SIGKILL)
    process.wait()


def _has_ended(process: "subprocess.Popen[bytes]") -> bool:
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _signal(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def end_with_parent() -> None:
    """To be called in a child before it becomes its program. Where the system has no such thing, nothing is done.

    On Linux the parent is the thread that started it, so that must live as long.
    """
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
