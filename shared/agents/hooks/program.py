"""What an agent runs at each of its hooks: lays the payload into the spool, wakes the monitor, and says nothing.

    python -I -S program.py DIRECTORY [PID]

DIRECTORY is a fleet's `.muster/hooks`, PID the agent's process where the caller knows it. It never fails or answers: an
agent reads what a hook prints, and how it ends, as a decision. It waits for nobody: the monitor need not run.

It runs at every tool call, so it imports nothing but what is built into the interpreter, and leaves without tidying up.
How the file is read is in `shared/agents/hooks/spool.py`.
"""

import _signal  # type: ignore[import-not-found]
import posix
import sys
import time

PATIENCE_S = 2.0
"""An agent that says no more for so long, and keeps the pipe open, has said all."""
LONGEST_S = 15.0
"""So long it may take to begin, on a busy machine, and to end. Agents themselves wait for a hook for 5 s at most."""
PIECE = 1 << 16
KEPT = 1 << 20
"""So many bytes of a payload are kept. Who told what comes first in it; what is that long is the text of some file."""
MOST_FILES = 20_000
MOST_BYTES = 200_000_000
OLDEST_NS = 24 * 3600 * 10**9
"""So much may wait, and so long. Nobody reads while Muster is down, a disk has an end, and payloads hold secrets."""
HALF_WRITTEN_S = 60.0
"""A hook that wrote for so long was killed."""
ONE_IN = 256
"""How often that is looked after: listing costs more than all the rest."""
IS_WHAT, IS_PIPE = 0o170000, 0o010000


class _Late(Exception):
    pass


def _too_late(*_: object) -> None:
    raise _Late


def taken() -> bytes:
    """What the agent says, or its beginning. All is read, whatever becomes of it: writing to nobody may be deadly."""
    pieces: list[bytes] = []
    size = 0
    until = time.monotonic() + LONGEST_S
    _signal.signal(_signal.SIGALRM, _too_late)
    try:
        while time.monotonic() < until:
            _signal.setitimer(_signal.ITIMER_REAL, PATIENCE_S if size else LONGEST_S)
            piece = posix.read(0, PIECE)
            if not piece:
                break
            if size < KEPT:
                pieces.append(piece)
                size += len(piece)
    except (_Late, OSError):
        pass
    _signal.setitimer(_signal.ITIMER_REAL, 0)
    return b"".join(pieces)[:KEPT]


def lay_down(directory: str, pid: str, at_ns: int, payload: bytes) -> None:
    """Write one file, whole or not at all."""
    env = posix.environ
    fields = (
        b"1",
        b"%d" % at_ns,
        env.get(b"MUSTER_STAMP_SPAWN", b""),
        env.get(b"TMUX_PANE", b""),
        env.get(b"TMUX", b"").rsplit(b",", 2)[0],
        (pid if pid.isdecimal() else str(posix.getppid())).encode(),
    )
    name = f"{at_ns}-{posix.getpid()}"
    spool = f"{directory}/spool"
    hidden = f"{spool}/.{name}"
    file = posix.open(hidden, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC, 0o600)
    try:
        data = b"\t".join(field.translate(None, b"\t\n") for field in fields) + b"\n" + payload
        while data:
            data = data[posix.write(file, data) :]
        posix.rename(hidden, f"{spool}/{name}")
    except BaseException:
        posix.unlink(hidden)
        raise


def wake(directory: str) -> None:
    """One byte into a pipe, and into nothing else; with nobody at its other end that fails at once."""
    how = posix.O_WRONLY | posix.O_NONBLOCK | posix.O_NOFOLLOW | posix.O_CLOEXEC
    pipe = posix.open(f"{directory}/wake", how)
    if posix.fstat(pipe).st_mode & IS_WHAT == IS_PIPE:
        posix.write(pipe, b"!")


def prune(spool: str) -> None:
    """Let go of the oldest, what an agent did last says most about what it does now; and of what killed hooks left."""
    names = posix.listdir(spool)
    _prune(spool, names)
    if "bad" in names:
        _prune(f"{spool}/bad", posix.listdir(f"{spool}/bad"))


def _prune(folder: str, names: list[str]) -> None:
    now = time.time_ns()
    size = place = 0
    for name in sorted(names, reverse=True):
        file = f"{folder}/{name}"
        try:
            if name[0] == ".":
                goes = posix.lstat(file).st_mtime < now / 1e9 - HALF_WRITTEN_S
            elif name[0].isdigit():
                place += 1
                size += posix.lstat(file).st_size
                goes = place > MOST_FILES or size > MOST_BYTES or name < str(now - OLDEST_NS)
            else:
                continue
            if goes:
                posix.unlink(file)
        except OSError:  # the monitor was faster, say
            continue


if __name__ == "__main__":
    directory, pid, *_ = (*sys.argv[1:], "", "")
    try:
        began = time.time_ns()
        if (payload := taken()) and directory:
            lay_down(directory, pid, began, payload)
            wake(directory)
    except BaseException:  # noqa: BLE001, S110 - a full disk, nobody who listens: none of it is the agent's business
        pass
    try:
        if directory and time.time_ns() // 1000 % ONE_IN == 0:
            prune(f"{directory}/spool")
    except BaseException:  # noqa: BLE001, S110 - as above
        pass
    posix._exit(0)
