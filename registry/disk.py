"""The registry's file as bytes: read, locked, and put in the place of another without losing anybody's edit."""

import contextlib
import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from registry.exchange import exchange
from registry.faults import ChangedMeanwhile, SwappedOut

LOCK = ".registry.lock"

Stamp = tuple[int, int, int]
"""Inode, time and size: what a file is known by."""

NO_FILE: Stamp = (0, 0, 0)


_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NotAFile(OSError):
    """Something else than a file has its name."""


@dataclass(frozen=True, slots=True)
class Content:
    """A file as it was at one moment; `data` is None where there was none."""

    stamp: Stamp
    data: bytes | None


@dataclass(frozen=True, slots=True)
class Replaced:
    """A file that was put in place, and the one that had the name before."""

    stamp: Stamp
    out: SwappedOut | None


def stamp_of(status: os.stat_result) -> Stamp:
    return (status.st_ino, status.st_mtime_ns, status.st_size)


def stamp(path: Path) -> Stamp:
    try:
        return stamp_of(path.stat())
    except FileNotFoundError:
        return NO_FILE


def read(path: Path) -> Content:
    """The whole file. Raises OSError, for a directory or a pipe too."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return Content(NO_FILE, None)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            what = "a directory" if stat.S_ISDIR(status.st_mode) else "no file"
            raise NotAFile(errno.EINVAL, f"it is {what}")
        content = Content(stamp_of(status), content_of(descriptor))
        if (now := stamp_of(os.fstat(descriptor))) != content.stamp:  # a new text must not look as old as the last one
            content = Content(now, content_of(descriptor))
        return content
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Only one process writes at a time, of those who lock the same directory; readers need no lock."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(directory / LOCK, flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def replace(path: Path, basis: Content, data: bytes) -> Replaced:
    """Put new content in the place of `basis`, durably and in one step.

    Raises ChangedMeanwhile, with nothing changed, when the file is not (any more) what `basis` says; OSError, with
    nothing changed either, when the disk does not take it.
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
    """An existing file keeps its mode and, where we may say so, its owner; a new one is private."""
    with contextlib.suppress(FileNotFoundError):
        old = path.stat()
        own = os.fstat(descriptor)
        if (old.st_uid, old.st_gid) != (own.st_uid, own.st_gid):
            with contextlib.suppress(PermissionError):
                os.fchown(descriptor, old.st_uid, old.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode) & 0o777)


def _create(fresh: Path, path: Path) -> None:
    """Give a new file its name, unless somebody else made one meanwhile."""
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
    """Exchange the files; if what comes out is not what our text was made from, exchange them back."""
    if stamp(path) != basis.stamp:  # writing took its time: this keeps the exchange for the last microseconds
        raise ChangedMeanwhile(path)
    try:
        swapped = exchange(fresh, path)
        out = os.open(fresh if swapped else path, _LOOK)
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
    if stamp(fresh)[0] != ours[0]:  # somebody replaced the file once more in between: theirs is the newest
        exchange(fresh, path)
    return SwappedOut(os.open(fresh, _LOOK), ours)


def content_of(descriptor: int) -> bytes:
    """All that a file holds at this moment."""
    parts = []
    at = 0
    while part := os.pread(descriptor, 1 << 20, at):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def clean_up(path: Path) -> None:
    """Remove what a killed writer left. Call with the lock held.

    It is our new text that never came into place, or the old file that it was made from: the name says which that was.
    Anything else was somebody's edit, swapped out in the very instant of the kill; that is kept beside the file.
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
    """A name beside the file that nobody has yet."""
    number = 1
    while (name := path.with_name(f"{path.name}.{why}-{number}")).exists():
        number += 1
    return name
