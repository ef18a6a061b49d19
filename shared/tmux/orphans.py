"""No tmux client outlives the process that started it.

A control client whose reader was killed with output under way never ends, and a tmux server waits for its clients
before it ends itself: one orphan would keep a server without sessions alive for ever.
"""

import ctypes
import signal
import sys

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def end_with_parent() -> None:
    """To be called in a child before it becomes its program. Where the system has no such thing, nothing is done."""
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
