"""The registry file as bytes: read, locked, and replaced atomically without losing a person's edit.

A replacement exchanges the old file and the new one in one step, and then looks at the old one: if a person saved into
it meanwhile, the two are exchanged back.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import re
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from shared.errors import Retryable

LOCK = ".registry.lock"

Stamp = tuple[int, int, int]
"""Inode, modification time and size: they change when the file does."""

NO_FILE: Stamp = (0, 0, 0)

_FOR_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NotAFile(OSError):
    """The path is a directory, a pipe or a device."""


@dataclass(frozen=True, slots=True)
class Content:
    """A file at one moment; `data` is None if there was none."""

    stamp: Stamp
    data: bytes | None


@dataclass(frozen=True, slots=True)
class SwappedOut:
    """A file that lost the registry's name; an editor may still have it open."""

    descriptor: int
    stamp: Stamp
    """Of the content that we know."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """The stamp of the new file, and the old file."""

    stamp: Stamp
    out: SwappedOut | None


class ChangedMeanwhile(Retryable):
    """A person edited the file since it was last read; nothing was written."""

    def __init__(self, path: Path, left: SwappedOut | None = None) -> None:
        self.left = left
        """Our own new file, if it had the name for an instant."""
        super().__init__(f"{path} was edited since it was last read; read it again and repeat the write")


# --- reading ---


def stamp_of(status: os.stat_result) -> Stamp:
    return (status.st_ino, status.st_mtime_ns, status.st_size)


def stamp(path: Path) -> Stamp:
    try:
        return stamp_of(path.stat())
    except FileNotFoundError:
        return NO_FILE


def read(path: Path) -> Content:
    """The whole file. Raises OSError, also for what is not a regular file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return Content(NO_FILE, None)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            what = "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise NotAFile(errno.EINVAL, f"it is {what}")
        content = Content(stamp_of(status), content_of(descriptor))
        if (now := stamp_of(os.fstat(descriptor))) != content.stamp:  # it was written while we read
            content = Content(now, content_of(descriptor))
        return content
    finally:
        os.close(descriptor)


def content_of(descriptor: int) -> bytes:
    """The bytes of an open file."""
    parts = []
    at = 0
    while part := os.pread(descriptor, 1 << 20, at):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


# --- writing ---


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Only one process at a time holds the lock of a directory. Readers need none."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(directory / LOCK, flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def replace(path: Path, basis: Content, data: bytes) -> Replaced:
    """Replace `basis` by new content, durably and in one step.

    Raises ChangedMeanwhile if the file is not what `basis` says, and OSError if the disk does not take it. Then nothing
    has changed.
    """
    fresh = path.with_name(f".{path.name}.new-{basis.stamp[0]}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            _write(file.fileno(), data)
            _take_over_rights(path, file.fileno())
            os.fsync(file.fileno())
            new = stamp_of(os.fstat(file.fileno()))
        out = None
        if basis.data is None:
            _create(fresh, path)
        else:
            out = _swap(fresh, path, basis, new)
    finally:
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()
    return Replaced(new, out)


def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def _take_over_rights(path: Path, descriptor: int) -> None:
    """An existing file keeps its mode and, if we may set it, its owner. A new one is private."""
    with contextlib.suppress(FileNotFoundError):
        old = path.stat()
        own = os.fstat(descriptor)
        if (old.st_uid, old.st_gid) != (own.st_uid, own.st_gid):
            with contextlib.suppress(PermissionError):
                os.fchown(descriptor, old.st_uid, old.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode) & 0o777)


def _create(fresh: Path, path: Path) -> None:
    """Give a new file its name, unless the name was taken meanwhile."""
    try:
        os.link(fresh, path)
    except FileExistsError as error:
        raise ChangedMeanwhile(path) from error
    except OSError:  # a file system without links
        if path.exists():
            raise ChangedMeanwhile(path) from None
        fresh.rename(path)
    sync_directory(path.parent)


def _swap(fresh: Path, path: Path, basis: Content, new: Stamp) -> SwappedOut:
    """Exchange the files; if the old one is not what our text was made from, exchange them back."""
    if stamp(path) != basis.stamp:  # writing took time: most edits show here, before anything is exchanged
        raise ChangedMeanwhile(path)
    try:
        swapped = exchange(fresh, path)
        out = os.open(fresh if swapped else path, _FOR_READING)
    except FileNotFoundError as error:
        raise ChangedMeanwhile(path) from error
    known = stamp_of(os.fstat(out))
    try:
        if content_of(out) != basis.data:
            raise ChangedMeanwhile(path)
        if not swapped:
            fresh.replace(path)
        sync_directory(path.parent)
    except BaseException as error:
        os.close(out)
        left = _swap_back(fresh, path, new) if swapped else None
        if isinstance(error, ChangedMeanwhile):
            raise ChangedMeanwhile(path, left) from None
        raise
    return SwappedOut(out, known)


def _swap_back(fresh: Path, path: Path, ours: Stamp) -> SwappedOut:
    exchange(fresh, path)
    if stamp(fresh)[0] != ours[0]:  # replaced once more in between: that edit is the newest
        exchange(fresh, path)
    return SwappedOut(os.open(fresh, _FOR_READING), ours)


def sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- exchanging ---

AT_FDCWD = -100
RENAME_EXCHANGE = 2  # Linux
RENAME_SWAP = 2  # macOS

_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


def exchange(first: Path, second: Path) -> bool:
    """Swap the names of two files in one step; False if the system can't. Raises OSError if one of them is missing."""
    libc = _libc()
    names = os.fsencode(first), os.fsencode(second)
    if hasattr(libc, "renameat2"):
        failed = libc.renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], ctypes.c_uint(RENAME_EXCHANGE))
    elif sys.platform == "darwin" and hasattr(libc, "renamex_np"):
        failed = libc.renamex_np(*names, ctypes.c_uint(RENAME_SWAP))
    else:
        return False
    if not failed:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(first), None, str(second))


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


# --- what is left behind ---


def clean_up(path: Path) -> None:
    """Remove what a killed writer left. Call with the lock held.

    It is either the new text that never came into place, or the old file that it was made from; the name has the inode
    of that. Anything else was a person's edit, swapped out in the instant of the kill: it is kept beside the file.
    """
    pattern = re.compile(rf"\.{re.escape(path.name)}(?:\.late-\d+)?\.new-(\d+)\Z")
    with os.scandir(path.parent) as found:
        left = [(Path(entry.path), int(named[1])) for entry in found if (named := pattern.match(entry.name))]
    for leftover, basis in left:
        if basis in (leftover.lstat().st_ino, stamp(path)[0]):
            leftover.unlink()
        else:
            leftover.rename(free_name(path, "late"))


def free_name(path: Path, why: str) -> Path:
    """A name beside the file that is not taken."""
    number = 1
    while (name := path.with_name(f"{path.name}.{why}-{number}")).exists():
        number += 1
    return name
