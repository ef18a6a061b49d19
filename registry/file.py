"""`registry.yaml`: read by anybody at any time, edited in place by its one writer, and by people."""

import contextlib
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from registry import disk
from registry.disk import Content, Stamp
from registry.document import Document, EditRefused
from registry.faults import BadRegistry, CantBeEdited, ChangedMeanwhile, LateSave
from registry.late import QUIET_FOR_S, OldFiles
from registry.migrations import VERSION, migrated
from registry.nodes import Fault, place_of
from registry.planning import Edit, Put, Remove
from registry.records import AgentRecord, EndedSession
from registry.validation import Validated, fields_of

HEADER = "# What runs, and what became of it. Kept by Muster's registrar; comments and keys of your own stay.\n"

NEW_FILE = f"{HEADER}version: {VERSION}\nagents: {{}}\n"

NOTHING = Document(())
"""What is written where there is no file."""

STAMP_TELLS_AFTER_NS = 100_000_000
"""A file system's clock ticks in milliseconds: a younger file may change once more without looking changed."""


class RegistryFile:
    """The records, read again whenever the file changed; only what changed in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._looked: Content | None = None
        """What the file was when we last looked."""
        self._age_ns = 0
        """How long nobody had written to the file when we last looked at it."""
        self._stamp_tells = False
        self._fault: BadRegistry | None = None
        self._basis: bytes | None = None
        """What the caller knows: the file as it was when `records` last answered, or as we wrote it."""
        self._settled = False
        self._written: bytes | None = None
        self._document: Document | None = None
        self._current: Document | None = None
        """The document as of our version; edits start from it."""
        self._agents = Validated(AgentRecord)
        self._ended = Validated(EndedSession)
        self._old = OldFiles()

    # --- reading ---

    def records(self) -> Mapping[str, AgentRecord]:
        """All records by agent. Raises BadRegistry, with line and column, for a file that can't be read.

        What is wrong with single entries of the history is no fault here.
        """
        self._refresh()
        self._basis = self._looked.data if self._looked is not None else None
        self._settled = self._age_ns > QUIET_FOR_S * 1e9
        return self._agents.by_name

    @property
    def is_there(self) -> bool:
        """Whether there was a file when `records` last answered, or there is one since, as we wrote it."""
        return self._basis is not None

    @property
    def settled(self) -> bool:
        """Whether nobody had written to the file for a while when `records` last answered.

        If not, it may be half of what an editor is saving in place: what is in it was written, but what is missing
        may be on its way. A file that is not there is settled; one that we just wrote is not.
        """
        return self._settled

    def history(self) -> Mapping[str, EndedSession]:
        """Sessions that are over, by spawn id. Raises BadRegistry, as `records` does, also for a single bad entry."""
        document = self._refresh()
        assert self._document is not None  # noqa: S101 - it was just read
        self._ended.take(document.history, self._document, self.path)
        return self._ended.by_name

    def ended_before(self, moment: datetime) -> list[str]:
        """The spawn ids of sessions that were over before a moment, without the entries that can't be understood.

        Those are for `history` to complain of, and stay as people wrote them. Raises BadRegistry as `records` does.
        """
        document = self._refresh()
        assert self._document is not None  # noqa: S101 - it was just read
        understood = self._ended.understood(document.history, self._document, self.path)
        return [spawn for spawn, session in understood.items() if session.ended < moment]

    def last_good(self) -> Mapping[str, AgentRecord]:
        """The records as they were last read or written, whatever has become of the file."""
        if self._current is None:
            return self.records()
        return self._agents.by_name

    @property
    def document(self) -> Document:
        """The text last read or written, and what it says."""
        if self._document is None:
            self._refresh()
        assert self._document is not None  # noqa: S101 - it was just read
        return self._document

    def changed(self) -> bool:
        """Whether the file is another than the one that was last read or written."""
        try:
            return self._look() is not None
        except BadRegistry:
            return True

    # --- writing ---

    def write(
        self,
        changes: Mapping[str, AgentRecord] | None = None,
        gone: Collection[str] = (),
        ended: Mapping[str, EndedSession] | None = None,
        pruned: Collection[str] = (),
    ) -> None:
        """Put changed records in their place and take out those that are gone; whatever else is in the file stays.

        So do entries of the history that can't be understood, unless it is they that are to be changed or pruned.
        Raises ChangedMeanwhile, with nothing written, when somebody edited the file since `records` last read it;
        OSError, with nothing written either, when the disk does not take it.
        """
        if self._current is None:
            self.records()
        if self._fault is not None and self._look() is None:
            raise self._fault
        path = self._target()
        with self._locked():
            disk.clean_up(path)
            now = disk.read(path)
            if now.data != self._basis:
                raise ChangedMeanwhile(self.path)
            edits = [*self._edits(changes or {}, gone, ended or {}, pruned)]
            edited = self._edited(edits)
            data = edited.text.encode()
            if data == now.data or (now.data is None and not edits):
                return
            stamp = self._put_in_place(path, now, data)
        self._looked, self._stamp_tells = Content(stamp, data), False
        self._basis, self._settled = data, False
        self._document = self._current = edited
        self._agents.take(edited.agents, edited, self.path)

    def take_up_late_save(self) -> bool:
        """Put in place what an editor wrote into a file that we had swapped out; whether there was any.

        It then is an edit like any other. Raises LateSave when the file has been edited since by somebody else: then
        both are kept.
        """
        save = self._old.late_save()
        if save is None:
            return False
        path = self._target()
        with self._locked():
            disk.clean_up(path)
            now = disk.read(path)
            if not save.overtaken and now.data is not None and now.data == self._written:
                with contextlib.suppress(ChangedMeanwhile):
                    self._put_in_place(path, now, save.data)
                    return True
            kept = disk.free_name(path, "late")
            disk.replace(kept, Content(disk.NO_FILE, None), save.data)
        raise LateSave(self.path, kept)

    def set_aside(self) -> Path | None:
        """Give the file another name beside it, so that a new one can be made; None if there is none.

        Raises OSError, with nothing changed, where that can't be done: in a directory that may not be written to.
        """
        path = self._target()
        with self._locked():
            aside = path.with_name(f"{path.name}.before-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
            if aside.exists():
                aside = disk.free_name(path, aside.name.removeprefix(f"{path.name}."))
            try:
                path.rename(aside)
            except FileNotFoundError:
                return None
            disk.sync_directory(path.parent)
        return aside

    def _put_in_place(self, path: Path, now: Content, data: bytes) -> Stamp:
        """Replace the file, and keep an eye on whatever had its name before."""
        try:
            replaced = disk.replace(path, now, data)
        except ChangedMeanwhile as changed:
            if changed.left is not None:
                self._old.keep(changed.left)
            raise
        if replaced.out is not None:
            self._old.keep(replaced.out)
        self._written = data
        return replaced.stamp

    def _edits(
        self,
        changes: Mapping[str, AgentRecord],
        gone: Collection[str],
        ended: Mapping[str, EndedSession],
        pruned: Collection[str],
    ) -> Iterator[Edit]:
        document = self._current
        assert document is not None  # noqa: S101 - `write` has read it
        yield from (Remove("agents", name) for name in gone if name in document.agents)
        yield from (Remove("history", name) for name in pruned if name in document.history)
        for name, record in changes.items():
            entry = document.agents.get(name) if name not in gone else None
            if fields := fields_of(record, entry, self._agents.known(entry)):
                yield Put("agents", name, fields)
        for name, session in ended.items():
            entry = document.history.get(name) if name not in pruned else None
            if fields := fields_of(session, entry, self._ended.known(entry)):
                yield Put("history", name, fields)

    def _edited(self, edits: list[Edit]) -> Document:
        assert self._current is not None  # noqa: S101 - `write` has read it
        try:
            return self._current.edit(edits) if edits else self._current
        except EditRefused as refused:
            raise CantBeEdited(self.path) from refused

    # --- looking ---

    def _target(self) -> Path:
        """The file itself, where the path is a link to it."""
        return Path(self.path).resolve()

    def _locked(self) -> AbstractContextManager[None]:
        """Beside the link, where the path is one: every writer comes by it, and its target may be in a repository."""
        return disk.locked(self.path.parent)

    def _refresh(self) -> Document:
        """The document as it is on disk now, in our version."""
        content = self._look()
        if content is not None:
            if self._written is not None and content.data != self._written:
                self._old.overtake()
            self._looked, self._fault = content, None
            self._stamp_tells = self._age_ns > STAMP_TELLS_AFTER_NS
            try:
                self._read(content)
            except BadRegistry as fault:
                self._fault = fault
        if self._fault is not None:
            raise self._fault
        assert self._current is not None  # noqa: S101 - there is no fault
        return self._current

    def _look(self) -> Content | None:
        """The content of the file if it is not the one that we know, else None."""
        known = self._looked
        now = time.time_ns()  # before we look: what is written meanwhile is not older than it was
        try:
            stamp = disk.stamp(self.path)
            self._age_ns = now - stamp[1]
            if known is not None and stamp == known.stamp and (self._stamp_tells or known.data is None):
                return None
            content = disk.read(self.path)
        except OSError as error:
            self._looked = None
            self._fault = BadRegistry.unreadable(self.path, error.strerror or error)
            raise self._fault from error
        self._age_ns = now - content.stamp[1]
        if known is not None and content.data == known.data:
            self._looked = content
            self._stamp_tells = self._age_ns > STAMP_TELLS_AFTER_NS
            return None
        return content

    def _read(self, content: Content) -> None:
        if content.data is None:
            self._agents.take({}, NOTHING, self.path)
            self._document, self._current = NOTHING, Document.parse(NEW_FILE)
            return
        try:
            document = Document.parse(self._decoded(content.data), self._document)
        except Fault as fault:
            raise self._bad(fault.line, fault.column, fault.problem) from fault
        if not document.has("agents"):
            raise self._bad(1, 1, "it must have a mapping `agents`")
        version = self._version(document)
        try:
            current = migrated(document, version)
        except EditRefused as refused:
            raise self._bad(1, 1, f"it can't be brought from version {version} to {VERSION}") from refused
        self._agents.take(current.agents, document, self.path)
        self._document, self._current = document, current

    def _decoded(self, data: bytes) -> str:
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            line, column = place_of(data[: error.start].decode("utf-8", "replace"), error.start)
            raise self._bad(line, column, f"the byte {data[error.start]:#04x} is no UTF-8 text") from error

    def _version(self, document: Document) -> int:
        version: Any = document.version if document.has("version") else 1
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise self._bad(*document.place("version"), "`version` must be a whole number from 1 on")
        if version > VERSION:
            said = f"its version {version} was written by a newer Muster; upgrade, or set it aside"
            raise self._bad(*document.place("version"), said)
        return version

    def _bad(self, line: int, column: int, said: str) -> BadRegistry:
        return BadRegistry.at(self.path, line, column, said)
