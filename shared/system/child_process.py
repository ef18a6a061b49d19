"""Runs a program in its own process group, with a deadline and bounded output.

Children end with the process that started them: an orphaned tmux control client would keep a tmux server without
sessions alive, and an orphaned query to a model would cost money for nothing.
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

OUTPUT_BYTES = 1 << 20
"""How much of the beginning of stdout is kept by default."""
ERROR_BYTES = 1 << 16
"""How much of the end of stderr is kept."""
CHECKED_EVERY_S, CHECKED_EVERY_WITHOUT_PIPES_S = 0.1, 0.01
KILLED_AFTER_S = 2.0
"""The time between SIGTERM and SIGKILL."""


@dataclass(frozen=True)
class ProgramResult:
    """A program's exit status (None if it was ended), stdout and stderr."""

    status: int | None
    out: str
    err: str


@dataclass
class OutputBuffer:
    """The beginning, or with `last` the end, of what came through one pipe."""

    keeps: int
    last: bool = False
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
    at_most_bytes: int = OUTPUT_BYTES,
    ends_with_us: bool = True,
) -> ProgramResult:
    """Run a program to its end. It is ended after `timeout_s`, when `cancelled` is set, or when `is_hopeless` of its
    stderr is true. Nothing of its process group is left. Raises OSError if it can't be started.

    `ends_with_us`: also when this process is killed. That costs a copy of this process for each start. Programs that
    are started often are marked by a variable instead, and ended later by `shared.system.processes.end_marked`.
    """
    with _opened(stdin) as given:
        process = subprocess.Popen(
            argv,
            env=dict(env),
            cwd=workspace,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # its children are in its group and end with it
            preexec_fn=end_with_parent if ends_with_us else None,  # noqa: PLW1509 - one system call, and no lock
        )
    out, err = OutputBuffer(at_most_bytes), OutputBuffer(ERROR_BYTES, last=True)
    with process, selectors.DefaultSelector() as pipes:
        for pipe, written in ((process.stdout, out), (process.stderr, err)):
            assert pipe is not None  # noqa: S101 - for the type checker
            os.set_blocking(pipe.fileno(), False)
            pipes.register(pipe, selectors.EVENT_READ, written)
        if (exited := _exit_descriptor(process)) is not None:
            pipes.register(exited, selectors.EVENT_READ)
        until = time.monotonic() + timeout_s
        try:
            ended = False
            while not (ended or cancelled.is_set() or time.monotonic() >= until or is_hopeless(err.text)):
                ended = _wait(process, pipes)
        finally:
            _end(process, pipes)
            if exited is not None:
                os.close(exited)
    return ProgramResult(process.returncode if ended else None, out.text, err.text)


def _opened(stdin: Path | bytes | None) -> IO[bytes]:
    if not isinstance(stdin, bytes):
        return (stdin or Path(os.devnull)).open("rb")
    file = tempfile.TemporaryFile()  # noqa: SIM115 - a pipe would have to be filled while the output is read
    file.write(stdin)
    file.seek(0)
    return file


def _exit_descriptor(process: "subprocess.Popen[bytes]") -> int | None:
    """A descriptor that becomes readable when the process ends; None on systems without."""
    try:
        return os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        return None


def _wait(process: "subprocess.Popen[bytes]", pipes: selectors.BaseSelector) -> bool:
    """Read once; whether the process has ended. What its children still write after that is not waited for."""
    ended = _has_ended(process)
    _read(pipes, 0.0 if ended else CHECKED_EVERY_S)
    return ended


def _read(pipes: selectors.BaseSelector, wait_s: float) -> None:
    """Read all that is available, waiting at most so long for it."""
    if not pipes.get_map():
        time.sleep(min(wait_s, CHECKED_EVERY_WITHOUT_PIPES_S))
        return
    for key, _ in pipes.select(wait_s):
        while key.data is not None:
            try:
                data = os.read(key.fd, ERROR_BYTES)
            except BlockingIOError:
                break
            if not data:
                pipes.unregister(key.fileobj)
                break
            key.data.take(data)


def _end(process: "subprocess.Popen[bytes]", pipes: selectors.BaseSelector) -> None:
    """End the whole group. The leader is reaped last, so that no other process can get its pid before."""
    if not _has_ended(process):
        _signal(process, signal.SIGTERM)
        until = time.monotonic() + KILLED_AFTER_S
        while not _has_ended(process) and time.monotonic() < until:
            _read(pipes, CHECKED_EVERY_S)
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
    """Have the kernel kill this child when its parent ends; call it in the child, before `exec`. Only on Linux.

    The parent is the thread that started the child, so that thread must live as long.
    """
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
