"""Files that only their owner may read, replaced whole: a reader sees the old text or the new one, never a part."""

import os
import tempfile
from pathlib import Path

from shared.errors import MusterError


def make_directory(path: Path) -> None:
    """Make the directory with mode 0700, or tighten it when it is there already."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_uid != os.geteuid():
        raise MusterError(f"{path} belongs to another user; remove it, or run as the user who owns it")
    path.chmod(0o700)


def write(path: Path, text: str) -> None:
    """Replace the file by this text, with mode 0600, so that a crash leaves the old or the new one."""
    # mkstemp gives 0600 from the first moment on, whatever the umask.
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
