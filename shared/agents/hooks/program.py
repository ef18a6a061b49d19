"""The program that an agent runs for each hook: it stores the payload in the spool and wakes the monitor.

    python -I -S program.py DIRECTORY [PID]

DIRECTORY is a fleet's `.muster/hooks`, PID the agent's process if the caller knows it. It never fails or prints: agents
read the output and exit status of a hook as a decision. It does not need the monitor to run.

It runs at every tool call, so it imports only modules that are built into the interpreter, and exits without cleanup.
`shared/agents/hooks/spool.py` reads the files.
"""

import _signal  # type: ignore[import-not-found]
import posix
import sys
import time

PATIENCE_S = 2.0
"""After this pause the payload counts as complete, though the agent keeps the pipe open."""
LONGEST_S = 15.0
"""How long the payload may take in all, on a busy machine. Agents wait at most 5 s for a hook."""
PIECE = 1 << 16
KEPT = 1 << 20
"""How many bytes of a payload are kept. Its important fields come first; a longer payload holds the text of a file."""
MOST_FILES = 20_000
MOST_BYTES = 200_000_000
OLDEST_NS = 24 * 3600 * 10**9
"""The limits of the spool: nothing reads it while Muster is down, and payloads may hold secrets."""
HALF_WRITTEN_S = 60.0
"""A temporary file that is older was left by a killed hook."""
ONE_IN = 256
"""One in so many calls prunes, since listing costs more than the rest."""
IS_WHAT, IS_PIPE = 0o170000, 0o010000


class _Late(Exception):
    pass


def _too_late(*_: object) -> None:
    raise _Late


def read_payload() -> bytes:
    """The payload, or its beginning. All of it is read: a closed pipe could kill the agent."""
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


def store(directory: str, pid: str, at_ns: int, payload: bytes) -> None:
    """Write one file atomically."""
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
    """Write one byte into the pipe, if it is one; without a reader, opening it fails at once."""
    how = posix.O_WRONLY | posix.O_NONBLOCK | posix.O_NOFOLLOW | posix.O_CLOEXEC
    pipe = posix.open(f"{directory}/wake", how)
    if posix.fstat(pipe).st_mode & IS_WHAT == IS_PIPE:
        posix.write(pipe, b"!")


def prune(spool: str) -> None:
    """Remove the oldest files above the limits, and what killed hooks left."""
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
        except OSError:  # the monitor may have removed it
            continue


if __name__ == "__main__":
    directory, pid, *_ = (*sys.argv[1:], "", "")
    try:
        began = time.time_ns()
        if (payload := read_payload()) and directory:
            store(directory, pid, began, payload)
            wake(directory)
    except BaseException:  # noqa: BLE001, S110 - a full disk or no reader must not disturb the agent
        pass
    try:
        if directory and time.time_ns() // 1000 % ONE_IN == 0:
            prune(f"{directory}/spool")
    except BaseException:  # noqa: BLE001, S110 - as above
        pass
    posix._exit(0)
