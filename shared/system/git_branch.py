"""The git branch of a workspace, read from its files, without git. Agents can write them, so reading is bounded."""

import os
import stat
from contextlib import suppress
from pathlib import Path

MOST_BYTES = 4096
LONGEST_NAME = 200
HEAD = "ref: refs/heads/"
ELSEWHERE = "gitdir: "


def branch_of(workspace: Path) -> str | None:
    """The branch that is checked out, the beginning of a commit's id, or None if the directory is no work tree."""
    git = workspace / ".git"
    with suppress(OSError, ValueError):
        if stat.S_ISREG(git.lstat().st_mode):  # of a linked work tree
            where = _first_line(git)
            if not where.startswith(ELSEWHERE):
                return None
            git = workspace / where.removeprefix(ELSEWHERE)
        head = _first_line(git / "HEAD")
        if head.startswith(HEAD):
            return head.removeprefix(HEAD)[:LONGEST_NAME] or None
        return head[:10] if len(head) >= 40 and head.isalnum() else None
    return None


def _first_line(path: Path) -> str:
    # Not blocking: it may be a pipe that nobody writes to.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        return os.read(descriptor, MOST_BYTES).decode(errors="replace").partition("\n")[0].strip()
    finally:
        os.close(descriptor)
