"""No helper outlives the process that started it.

A tmux control client whose reader was killed with output under way never ends, and a tmux server waits for its clients
before it ends itself: one orphan would keep a server without sessions alive for ever. What asks a model would cost
money for an answer that nobody reads.
"""

import ctypes
import signal
import sys

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def end_with_parent() -> None:
    """To be called in a child before it becomes its program. Where the system has no such thing, nothing is done.

    On Linux the parent is the thread that started it, so that must live as long.
    """
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
