"""Takes in what everybody says and what people write into the file, and keeps the one record of it."""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import ClassVar

from registry import AgentRecord, ChangedMeanwhile, RegistryFile
from registry.kept import KeptReader, kept_records
from services.registrar.book import Book
from services.registrar.merging import merge
from services.registrar.rebuilding import refold
from services.registrar.wishes import Wishes
from shared.commands import Forget, Rebuild
from shared.errors import MusterError, Retryable
from shared.events import Data
from shared.fleet import FleetFile
from shared.journal import Journal
from shared.log import Log
from shared.topics import AGENT_ACTIVITY, AGENT_DRIFT, AGENT_LIFECYCLE, AGENT_STATE, Topic
from shared.turn import Asked, Turn

GATHERS_S = 0.03
"""After a write, what comes gathers for so long: a burst is one write, and a single event waits for nothing."""
TRIES = 5
"""So often a write begins anew when somebody saves the file under it."""
TRIES_AGAIN = timedelta(seconds=0.5)
VERSIONS = 50
"""An editor that is left open saves what was there when it began: so many versions of a record are known."""
SAYS_FOR = timedelta(seconds=60)
"""How long our state tells that an edit was not taken up as it stands."""
PRUNES_EVERY = timedelta(seconds=60)
LATE_SAVES = timedelta(seconds=0.5)
WRITES_ACTIVITY_EVERY = timedelta(seconds=1)
"""Agents take up work and end it all the time: the states tell it at once, and the file so often at most."""


class Registrar:
    name: ClassVar[str] = "registrar"
    follows: ClassVar[tuple[Topic, ...]] = (AGENT_LIFECYCLE, AGENT_DRIFT, AGENT_ACTIVITY)
    hints: ClassVar[tuple[Topic, ...]] = ()
    owns: ClassVar[tuple[Topic, ...]] = (AGENT_STATE,)

    def __init__(self, fleet_file: FleetFile, file: RegistryFile, journal: Journal, log: Log) -> None:
        self._fleet_file = fleet_file
        self._file = file
        self._journal = journal
        self._log = log
        self._reader = KeptReader()
        self._wishes = Wishes(journal)
        self._seen: Mapping[str, AgentRecord] = {}
        """The file's records as we last read or wrote them."""
        self._looked = False
        self._touched: dict[str, AgentRecord | None] = {}
        """What the last turn wrote or took up. It counts once it is seen that the turn was not for nothing."""
        self._versions: defaultdict[str, deque[AgentRecord]] = defaultdict(lambda: deque(maxlen=VERSIONS))
        self._shown = kept_records(journal.memory())
        self._told = dict[str, AgentRecord]()
        self._fault = ""
        self._said = ""
        self._said_until: datetime | None = None
        self._pruned_at: datetime | None = None
        self._written_at: datetime | None = None

    def states(self) -> Iterable[Data]:
        return [record.state(agent) for agent, record in self._shown.items()]

    def step(self, turn: Turn) -> None:
        book = Book.open(turn, self._reader)
        self._note_versions(book)
        if not book.kept:
            self._begin_with_file(book)
        book.fold(turn.heard)
        for asked in turn.asked:
            if isinstance(asked.command, Rebuild):
                self._carry_out(turn, asked, book)
        self._bring_file_and_book_together(turn, book)
        book.keep(turn, self._reader)
        self._show(turn, book)
        if self._said_until is not None and turn.now < self._said_until:
            turn.complain(self._said)

    def _note_versions(self, book: Book) -> None:
        """See whether what was written last is remembered too; else the file is read as if for the first time."""
        for agent, record in self._touched.items():
            kept = book.kept.get(agent)
            if (kept.record if kept is not None else None) != record:
                self._looked = False
            elif record is not None:
                self._note_version(agent, record)
        self._touched = {}
        for agent in self._versions.keys() - book.records.keys():
            del self._versions[agent]

    def _note_version(self, agent: str, record: AgentRecord) -> None:
        versions = self._versions[agent]
        if versions and record.differs_in_activity_only(versions[-1]):
            versions.pop()  # a busy agent would soon have driven out all that an editor may have begun with
        versions.append(record)

    def _begin_with_file(self, book: Book) -> None:
        with suppress(MusterError):  # told when it is read again
            book.begin_with(self._file.records())

    # --- the file ---

    def _bring_file_and_book_together(self, turn: Turn, book: Book) -> None:
        """Take up what people wrote, and write what is new. A file that can't be read or written is left for later."""
        self._take_up_late_save(turn)
        for _ in range(TRIES):
            try:
                if not self._take_up_edits(turn, book):
                    turn.again_at(turn.now + TRIES_AGAIN)
                    return
                for refusal in self._wishes.follow(turn, book):
                    self._say(turn, f"registry.yaml: `desired` of {refusal.agent} was put back: {refusal.said}")
                self._write(turn, book)
            except ChangedMeanwhile:
                continue
            except Retryable:
                raise
            except OSError as fault:
                self._complain_of_file(turn, f"{self._file.path} can't be written: {fault.strerror or fault}")
                turn.again_at(turn.now + TRIES_AGAIN)
            except MusterError as fault:  # what it holds can't be read, or not be changed
                self._complain_of_file(turn, str(fault))
                turn.again_at(turn.now + TRIES_AGAIN)
            else:
                self._fault = ""
            return
        turn.again_at(turn.now + TRIES_AGAIN)

    def _take_up_late_save(self, turn: Turn) -> None:
        try:
            if self._file.take_up_late_save():
                self._log.info("took up what was saved into the file's earlier self")
        except MusterError as fault:
            self._say(turn, str(fault))
        except OSError as fault:
            self._complain_of_file(turn, f"{self._file.path} can't be written: {fault.strerror or fault}")

    def _take_up_edits(self, turn: Turn, book: Book) -> bool:
        """Take up what people wrote; False while the file seems to be in the middle of being saved."""
        theirs = self._file.records()
        if self._looked and theirs is self._seen:
            return True
        known = self._seen if self._looked else book.bases
        is_there = self._file.is_there  # one that was removed is written anew
        taken_out = [agent for agent in book.records if is_there and known.get(agent) and agent not in theirs]
        if taken_out and not self._file.settled:
            return False
        if not is_there and book.records:
            book.ended = {**refold(self._journal, self._fleet_file.fleet.space)[1], **book.ended}
        for agent in taken_out:
            self._put_back_or_drop(turn, book, agent)
            self._touched[agent] = book.records.get(agent)
        for agent, found in theirs.items():
            before = known.get(agent)
            if found is not before and found != before:
                self._take_up(turn, book, agent, found, before)
                self._touched[agent] = book.records.get(agent)
        self._seen, self._looked = theirs, True
        return True

    def _put_back_or_drop(self, turn: Turn, book: Book, agent: str) -> None:
        if book.records[agent].is_running:
            self._say(
                turn, f"registry.yaml: {agent} runs, so its record was put back; `muster forget {agent}` ends that"
            )
        else:
            book.put(agent, None)

    def _take_up(self, turn: Turn, book: Book, agent: str, theirs: AgentRecord, before: AgentRecord | None) -> None:
        ours = book.records.get(agent)
        if ours is None:
            self._take_up_new(turn, book, agent, theirs)
            return
        versions = [*self._versions[agent], *book.passed.get(agent, ()), *([before] if before is not None else [])]
        merged = merge(versions, theirs, ours)
        book.put(agent, merged.record)
        if merged.wish is not None:
            self._wishes.ask(turn, agent, merged.wish, ours.desired)
            self._log.info("took up a wish from the file", agent=agent, desired=merged.wish.value)
        if merged.unknown:
            self._say(
                turn,
                f"registry.yaml: what was saved of {agent} began with a version that is not known any more, or its"
                " status was changed, which is what Muster sees; nothing of it was taken up but comments and own keys:"
                " edit it again if something is amiss",
            )
        elif merged.put_back:
            self._say(
                turn,
                f"registry.yaml: {', '.join(merged.put_back)} of {agent} is what Muster sees, and was put back;"
                " what you want of it stands behind `desired`",
            )

    def _take_up_new(self, turn: Turn, book: Book, agent: str, theirs: AgentRecord) -> None:
        """An entry that we do not know: somebody wrote it, or it is of a file from elsewhere."""
        if agent in book.gone:
            return
        owner = next((name for name, each in book.records.items() if theirs.spawn and each.spawn == theirs.spawn), None)
        if owner is None:
            book.put(agent, theirs)
            return
        book.gone.add(agent)
        self._say(
            turn, f"registry.yaml: {agent} was taken out: its session is {owner}'s; an agent can't be renamed here"
        )

    def _write(self, turn: Turn, book: Book) -> None:
        pruned = self._prune(turn, book)
        changes = {agent: record for agent, record in book.records.items() if self._is_news(agent, record)}
        gone = book.gone & self._seen.keys()
        if not (gone or book.ended or pruned) and self._can_wait(turn, changes):
            changes = {}
        if changes or gone or book.ended or pruned:
            self._file.write(changes, gone - changes.keys(), book.ended, pruned)
            # Not what is there now: somebody may have edited the file since, and that is to be taken up.
            self._seen, self._written_at = self._file.last_good(), turn.now
            turn.gather(GATHERS_S)
            turn.again_at(turn.now + LATE_SAVES)  # somebody may save into the file that was just replaced
        self._touched |= dict.fromkeys(gone) | changes
        book.written()

    def _can_wait(self, turn: Turn, changes: Mapping[str, AgentRecord]) -> bool:
        """Whether there is nothing to write but what agents are doing, and that was just written."""
        if not changes or self._written_at is None:
            return False
        if not timedelta(0) <= turn.now - self._written_at < WRITES_ACTIVITY_EVERY:  # the clock may be set back
            return False
        can_wait = all(record.differs_in_activity_only(self._seen.get(agent)) for agent, record in changes.items())
        if can_wait:
            turn.again_at(self._written_at + WRITES_ACTIVITY_EVERY)
        return can_wait

    def _is_news(self, agent: str, record: AgentRecord) -> bool:
        seen = self._seen.get(agent)
        return seen is not record and seen != record

    def _prune(self, turn: Turn, book: Book) -> list[str]:
        """Now and then, the sessions that ended long ago; records of agents that nobody declares go with them."""
        if self._pruned_at is not None and turn.now < self._pruned_at + PRUNES_EVERY:
            return []
        self._fleet_file.refresh()
        fleet = self._fleet_file.fleet
        before = turn.now - timedelta(seconds=fleet.declared.registry.keep_ended_s)
        for agent, record in list(book.records.items()):
            if agent not in fleet.agents and not record.is_running and (record.ended or record.since) < before:
                book.put(agent, None)
                turn.ask(Forget(agent=agent, spawn=record.spawn), "it ended long ago")
        book.ended = {spawn: each for spawn, each in book.ended.items() if each.ended >= before}
        self._pruned_at = turn.now
        return self._file.ended_before(before)

    def _carry_out(self, turn: Turn, asked: Asked, book: Book) -> None:
        """Rebuild: all that is known is forgotten, and known again from what was told."""
        try:
            aside = self._file.set_aside()
        except OSError as error:
            turn.answer(asked, f"{self._file.path} can't be set aside: {error.strerror or error}", code="refused")
            return
        records, ended = refold(self._journal, self._fleet_file.fleet.space)
        book.begin_anew(records, ended)
        self._seen, self._looked = {}, True
        self._pruned_at = None
        was = f"; the old file is {aside.name}" if aside else ""
        said = (
            f"the registry was written anew from the journal: {len(records)} agents, {len(ended)} sessions that ended"
            f"{was}; what runs in tmux beside these is told by the reconciler"
        )
        self._log.info("rebuilt the registry", agents=len(records), ended=len(ended))
        turn.answer(asked, said, agents=sorted(records))

    # --- what is said ---

    def _show(self, turn: Turn, book: Book) -> None:
        """Say what is new, be it from an event or from a person's edit of the file."""
        for agent, record in book.records.items():
            if self._told.get(agent) != record:
                turn.show(record.state(agent))
        for agent in self._shown.keys() - book.records.keys():
            turn.withdraw(AGENT_STATE, agent=agent)
        self._told = self._shown = dict(book.records)

    def _complain_of_file(self, turn: Turn, fault: str) -> None:
        turn.complain(fault)
        if fault != self._fault:
            self._fault = fault
            self._log.error("the registry file is left as it is", reason=fault)

    def _say(self, turn: Turn, said: str) -> None:
        """Tell a person that an edit was not taken up as it stands, for a while."""
        self._log.warning("an edit was not taken up as it stands", reason=said)
        self._said, self._said_until = said, turn.now + SAYS_FOR
