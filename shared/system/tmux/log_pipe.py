"""The log of a pane: the file, how large it may get, and the small program that tmux pipes the pane's output to. Pure.

Muster's services may be gone for hours: the writer itself keeps the bound. See `log_writer.sh`.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

WRITER = Path(__file__).with_name("log_writer.sh")


@dataclass(frozen=True)
class LogPipe:
    """All files of the log together are at most `keep` + 1 times `max_bytes` large."""

    path: Path
    max_bytes: int
    keep: int
    """How many older parts there may be: the path with `.1`, the newest, `.2` and so on."""

    def command(self) -> str:
        """For a shell."""
        return f"exec sh {shlex.join([str(WRITER), str(self.path.absolute()), str(self.max_bytes), str(self.keep)])}"


def is_writer_of(path: Path, command_line: Sequence[str]) -> bool:
    """Whether a process of this command line writes this log."""
    match command_line:
        case [_, script, written, *_]:
            return Path(script).name == WRITER.name and written == str(path.absolute())
    return False
