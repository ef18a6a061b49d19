"""What an agent runs at each of its hooks: lays the payload into the spool, wakes the monitor, and says nothing.

    python -I -S hook.py DIRECTORY [PID]

DIRECTORY is a fleet's `.muster/hooks`, PID the agent's process where the caller knows it. It never fails or answers: an
agent reads what a hook prints, and how it ends, as a decision. It waits for nobody: the monitor need not run.

It runs at every tool call, so it imports nothing but what is built into the interpreter, and leaves without tidying up.
How the file is read is in `shared/hooks/spool.py`.
"""

import _signal  # type: ignore[import-not-found]
import posix
import sys
import time

PATIENCE_S = 2.0
"""An agent that says no more for so long, and keeps the pipe open, has said all."""
PIECE = 1 << 20
AT_MOST = 20_000
"""So many files may wait. Nobody prunes while Muster is down, and a disk has an end."""
ONE_IN = 256
"""How often that is looked after: listing costs more than all the rest."""


class _Late(Exception):
    pass


def _too_late(*_: object) -> None:
    raise _Late


def lay_down(directory: str, pid: str) -> None:
    """Write one file, whole or not at all."""
    now = time.time_ns()
    env = posix.environ
    fields = (
        b"1",
        b"%d" % now,
        env.get(b"MUSTER_STAMP_SPAWN", b""),
        env.get(b"TMUX_PANE", b""),
        env.get(b"TMUX", b"").rsplit(b",", 2)[0],
        (pid if pid.isdecimal() else str(posix.getppid())).encode(),
    )
    name = f"{now}-{posix.getpid()}"
    spool = f"{directory}/spool"
    hidden = f"{spool}/.{name}"
    file = posix.open(hidden, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC, 0o600)
    try:
        _write(file, b"\t".join(field.translate(None, b"\t\n") for field in fields) + b"\n")
        _copy(file)
        posix.rename(hidden, f"{spool}/{name}")
    except BaseException:
        posix.unlink(hidden)
        raise


def _copy(file: int) -> None:
    _signal.signal(_signal.SIGALRM, _too_late)
    try:
        while piece := posix.read(0, PIECE):
            _signal.setitimer(_signal.ITIMER_REAL, 0)
            _write(file, piece)
            _signal.setitimer(_signal.ITIMER_REAL, PATIENCE_S)
    except _Late:
        pass
    _signal.setitimer(_signal.ITIMER_REAL, 0)


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[posix.write(file, data) :]


def prune(spool: str) -> None:
    """Let go of the oldest: what an agent did last says most about what it does now."""
    names = [name for name in posix.listdir(spool) if name[0].isdigit()]
    if len(names) > AT_MOST:
        for name in sorted(names)[: len(names) - AT_MOST]:
            posix.unlink(f"{spool}/{name}")


def wake(directory: str) -> None:
    """One byte into a pipe; with nobody at its other end that fails at once."""
    pipe = posix.open(f"{directory}/wake", posix.O_WRONLY | posix.O_NONBLOCK | posix.O_CLOEXEC)
    posix.write(pipe, b"!")


if __name__ == "__main__":
    try:
        lay_down(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "")
        wake(sys.argv[1])
    except BaseException:  # noqa: BLE001, S110 - a full disk, nobody who listens: none of it is the agent's business
        pass
    try:
        if time.time_ns() // 1000 % ONE_IN == 0:
            prune(f"{sys.argv[1]}/spool")
    except BaseException:  # noqa: BLE001, S110 - as above
        pass
    posix._exit(0)
