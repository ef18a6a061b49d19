"""What can be wrong with the registry, as sentences."""

from dataclasses import dataclass
from pathlib import Path

from shared.errors import MusterError, Retryable


class BadRegistry(MusterError):
    """The file was edited into something that can't be read."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.column = column

    @classmethod
    def at(cls, path: Path, line: int, column: int, said: str) -> "BadRegistry":
        """Something is wrong at a place in the file; lines and columns count from 1."""
        return cls(f"{path}, line {line}, column {column}: {said}; the last good state goes on", line, column)

    @classmethod
    def unreadable(cls, path: Path, said: object) -> "BadRegistry":
        return cls(f"{path} can't be read: {said}; the last good state goes on")


@dataclass(frozen=True, slots=True)
class SwappedOut:
    """A file that had the registry's name and has none now; somebody may still have it open."""

    descriptor: int
    stamp: tuple[int, int, int]
    """What it was known by when we last knew what was in it."""


class ChangedMeanwhile(Retryable):
    """Somebody edited the file since it was last read; nothing was written."""

    def __init__(self, path: Path, left: SwappedOut | None = None) -> None:
        self.left = left
        """Our own new file, if it had the name for an instant."""
        super().__init__(f"{path} was edited since it was last read; read it again, and write what is still to be said")


class LateSave(MusterError):
    """An editor saved an old state of the file, while somebody else edited it; both are kept."""

    def __init__(self, path: Path, kept: Path) -> None:
        super().__init__(
            f"{path} was saved from an old state while somebody else edited it; that save is kept as {kept.name}: "
            "take over from it what you need, and delete it"
        )
        self.kept = kept


class CantBeEdited(MusterError):
    """A text so odd that one thing in it can't be changed without another."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} can't be changed in place without changing something else in it; "
            "write the entries that have anchors or block texts in simpler lines"
        )
