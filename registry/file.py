"""`registry.yaml`: read by any process at any time, edited in place by its one writer and by people."""

import contextlib
import time
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

from registry import disk
from registry.disk import ChangedMeanwhile, Content, Stamp
from registry.document import Document
from registry.edit import EditedDocument, EditRefused, EntryKey, edit
from registry.entry import Fields
from registry.records import AgentRecord, EndedSession
from registry.replaced_files import QUIET_S, LateSave, ReplacedFiles
from registry.validation import BadRegistry, Validated, changed_fields
from registry.yaml_text import MalformedYaml, position
from shared.errors import MusterError

VERSION = 1

HEADER = "# What runs, and what became of it. Kept by Muster's registrar; comments and keys of your own stay.\n"

NEW_FILE = f"{HEADER}version: {VERSION}\nagents: {{}}\n"

STAMP_RELIABLE_NS = 100_000_000
"""A file system's clock ticks in milliseconds: a younger file may change again without a new stamp."""


class CantBeEdited(MusterError):
    """An entry can't be changed in this text, not even by rewriting the entry."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} can't be changed; write the entries with anchors, tags or block texts in plain lines")


class RegistryFile:
    """The records, read again when the file changed, and then only what changed in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: Content | None = None
        """The file when we last looked at it."""
        self._age_ns = 0
        """How old the file's last change was when we last looked."""
        self._stamp_is_reliable = False
        self._fault: BadRegistry | None = None
        self._basis: bytes | None = None
        """The file that the caller knows: as `records` last returned it, or as we wrote it."""
        self._settled = False
        self._written: bytes | None = None
        """What we wrote last."""
        self._document: Document | None = None
        self._agents = Validated(AgentRecord)
        self._ended = Validated(EndedSession)
        self._replaced = ReplacedFiles()

    # --- reading ---

    def records(self) -> Mapping[str, AgentRecord]:
        """All records by agent. Raises BadRegistry, with line and column, for a file that can't be read.

        An invalid entry of the history is no fault here. Without a file there are no records: see `is_there`.
        """
        self._refresh()
        self._basis = self._seen.data if self._seen is not None else None
        self._settled = self._age_ns > QUIET_S * 1e9
        return self._agents.by_name

    @property
    def is_there(self) -> bool:
        """Whether there was a file when `records` last looked, or we have written one since."""
        return self._basis is not None

    @property
    def settled(self) -> bool:
        """Whether the file had not changed for a while when `records` last looked.

        If not, it may be half of what an editor is saving in place: what is missing may be still to come. A file that
        is not there is settled; one that we just wrote is not.
        """
        return self._settled

    def history(self) -> Mapping[str, EndedSession]:
        """Ended sessions by spawn id. Raises BadRegistry as `records` does, and for an invalid entry."""
        document = self._refresh()
        return self._ended.take(document.history, document, self.path)

    def valid_history(self) -> Mapping[str, EndedSession]:
        """The sessions that ended, by spawn id. Raises BadRegistry as `records` does.

        Invalid entries are left out: they stay as people wrote them, and `history` complains about them.
        """
        document = self._refresh()
        return self._ended.take(document.history, document, self.path, skip_invalid=True)

    def last_good(self) -> Mapping[str, AgentRecord]:
        """The records as they were last read or written, whatever happened to the file since."""
        if self._document is None:
            return self.records()
        return self._agents.by_name

    # --- writing ---

    def write(
        self,
        changes: Mapping[str, AgentRecord] | None = None,
        gone: Collection[str] = (),
        ended: Mapping[str, EndedSession] | None = None,
        pruned: Collection[str] = (),
    ) -> tuple[str, ...]:
        """Write changed records and remove those that are gone; everything else in the file stays.

        Returns the names of the entries that could not be edited in place and were rewritten in plain block style.
        Raises ChangedMeanwhile if a person edited the file since `records` last read it, and OSError if the disk does
        not take it. Then nothing is written.
        """
        if self._document is None:
            self.records()
        if self._fault is not None and self._look() is None:
            raise self._fault
        path = self._target()
        with self._locked():
            disk.clean_up(path)
            now = disk.read(path)
            if now.data != self._basis:
                raise ChangedMeanwhile(self.path)
            edited = self._edited(changes or {}, gone, ended or {}, pruned)
            data = edited.document.text.encode()
            if edited.document is self._document or data == now.data:
                return ()
            stamp = self._put_in_place(path, now, data)
        self._seen, self._stamp_is_reliable = Content(stamp, data), False
        self._basis, self._settled = data, False
        self._document = edited.document
        self._agents.take(edited.document.agents, edited.document, self.path, written=changes)
        return edited.rewritten

    def take_up_late_save(self) -> bool:
        """Put in place what an editor saved into a file that we had replaced; False if nothing was saved.

        It is an edit like any other then. Raises LateSave if a person edited the registry since: both are kept.
        """
        saved = self._replaced.saved()
        if saved is None:
            return False
        path = self._target()
        with self._locked():
            disk.clean_up(path)
            now = disk.read(path)
            if not saved.overtaken and now.data is not None and now.data == self._written:
                with contextlib.suppress(ChangedMeanwhile):
                    self._put_in_place(path, now, saved.data)
                    return True
            kept = disk.free_name(path, "late")
            disk.replace(kept, Content(disk.NO_FILE, None), saved.data)
        raise LateSave(self.path, kept)

    def set_aside(self) -> Path | None:
        """Rename the file, so that a new one can be made; None if there is none.

        Raises OSError, with nothing changed, if the directory can't be written to.
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
        """Replace the file, and watch the one that had its name before."""
        try:
            replaced = disk.replace(path, now, data)
        except ChangedMeanwhile as changed:
            if changed.left is not None:
                self._replaced.watch(changed.left)
            raise
        if replaced.out is not None:
            self._replaced.watch(replaced.out)
        self._written = data
        return replaced.stamp

    def _edited(
        self,
        changes: Mapping[str, AgentRecord],
        gone: Collection[str],
        ended: Mapping[str, EndedSession],
        pruned: Collection[str],
    ) -> EditedDocument:
        document = self._known_document
        removed = {*(("agents", name) for name in gone), *(("history", name) for name in pruned)}
        removed &= document.entries.keys()
        puts: dict[EntryKey, Fields] = {}
        for section, validated, records in (("agents", self._agents, changes), ("history", self._ended, ended)):
            for name, record in records.items():
                entry = document.entries.get((section, name)) if (section, name) not in removed else None
                if fields := changed_fields(record, entry, validated.known(entry)):
                    puts[section, name] = fields
        try:
            return edit(document, puts, removed) if puts or removed else EditedDocument(document)
        except EditRefused as refused:
            raise CantBeEdited(self.path) from refused

    @property
    def _known_document(self) -> Document:
        assert self._document is not None  # noqa: S101 - every caller has read it
        return self._document

    # --- looking ---

    def _target(self) -> Path:
        """The file itself, if the path is a link to it."""
        return Path(self.path).resolve()

    def _locked(self) -> AbstractContextManager[None]:
        """The lock is beside the link, if the path is one: the target may be in a person's repository."""
        return disk.locked(self.path.parent)

    def _refresh(self) -> Document:
        """The document as it is on disk now."""
        content = self._look()
        if content is not None:
            if self._written is not None and content.data != self._written:
                self._replaced.overtake()
            self._seen, self._fault = content, None
            self._stamp_is_reliable = self._age_ns > STAMP_RELIABLE_NS
            try:
                self._read(content)
            except BadRegistry as fault:
                self._fault = fault
        if self._fault is not None:
            raise self._fault
        return self._known_document

    def _look(self) -> Content | None:
        """The content of the file if it is not the one that we know, else None."""
        known = self._seen
        now = time.time_ns()  # before the look, so that a change during the look is not taken for an older one
        try:
            stamp = disk.stamp(self.path)
            self._age_ns = now - stamp[1]
            if known is not None and stamp == known.stamp and (self._stamp_is_reliable or known.data is None):
                return None
            content = disk.read(self.path)
        except OSError as error:
            self._seen = None
            self._fault = BadRegistry(f"{self.path} can't be read: {error.strerror or error}")
            raise self._fault from error
        self._age_ns = now - content.stamp[1]
        if known is not None and content.data == known.data:
            self._seen = content
            self._stamp_is_reliable = self._age_ns > STAMP_RELIABLE_NS
            return None
        return content

    def _read(self, content: Content) -> None:
        try:
            text = self._decoded(content.data) if content.data is not None else NEW_FILE
            document = Document.parse(text, self._document)
        except MalformedYaml as error:
            raise BadRegistry.at(self.path, error.line, error.column, error.problem) from error
        if "agents" not in document.keys:
            raise BadRegistry.at(self.path, 1, 1, "it must have a mapping `agents`")
        if repr(document.keys.get("version", VERSION)) != repr(VERSION):
            problem = f"`version` must be {VERSION}: this Muster does not know another format"
            raise BadRegistry.at(self.path, *document.place("version"), problem)
        self._agents.take(document.agents, document, self.path)
        self._document = document

    def _decoded(self, data: bytes) -> str:
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            before = data[: error.start].decode("utf-8", "replace")
            place = position(before, len(before))
            raise BadRegistry.at(self.path, *place, f"the byte {data[error.start]:#04x} is not UTF-8 text") from error
