"""Takes in what everybody says and what people write into the file, and keeps the one record of it."""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import ClassVar

from registry import AgentRecord, ChangedMeanwhile, RegistryFile
from registry.kept import KeptReader, kept_records
from services.registrar.book import Book
from services.registrar.merging import merge
from services.registrar.rebuilding import refold
from services.registrar.wishes import Wishes
from shared.commands import Forget, Rebuild
from shared.errors import MusterError
from shared.events import Data
from shared.fleet import FleetFile
from shared.journal import Journal
from shared.log import Log
from shared.topics import AGENT_DRIFT, AGENT_LIFECYCLE, AGENT_STATE, Topic
from shared.turn import Turn

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
EDITS = "edits"


class Registrar:
    name: ClassVar[str] = "registrar"
    follows: ClassVar[tuple[Topic, ...]] = (AGENT_LIFECYCLE, AGENT_DRIFT)
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
        self._edits = 0
        """How often edits were taken up; remembered, so that a turn that came to nothing is noticed."""
        self._versions: defaultdict[str, deque[AgentRecord]] = defaultdict(lambda: deque(maxlen=VERSIONS))
        self._shown = kept_records(journal.memory())
        self._told = dict[str, AgentRecord]()
        self._fault = ""
        self._said = ""
        self._said_until: datetime | None = None
        self._pruned_at: datetime | None = None

    def states(self) -> Iterable[Data]:
        return [record.state(agent) for agent, record in self._shown.items()]

    def step(self, turn: Turn) -> None:
        if self._edits and turn.memory.get(EDITS) != self._edits:
            self._looked = False  # what was taken up last was not remembered: it is looked for again
        book = Book.open(turn, self._reader)
        book.fold(turn.heard)
        for asked in turn.asked:
            if isinstance(asked.command, Rebuild):
                turn.answer(asked, self._rebuild(book), agents=sorted(book.records))
        self._bring_file_and_book_together(turn, book)
        book.keep(turn, self._reader)
        self._show(turn, book)
        if self._said_until is not None and turn.now < self._said_until:
            turn.complain(self._said)

    # --- the file ---

    def _bring_file_and_book_together(self, turn: Turn, book: Book) -> None:
        """Take up what people wrote, and write what is new. A file that can't be read or written is left for later."""
        self._take_up_late_save(turn)
        for _ in range(TRIES):
            try:
                self._take_up_edits(turn, book)
                for refusal in self._wishes.follow(turn, book):
                    self._say(turn, f"registry.yaml: `desired` of {refusal.agent} was put back: {refusal.said}")
                self._write(turn, book)
            except ChangedMeanwhile:
                continue
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

    def _take_up_edits(self, turn: Turn, book: Book) -> None:
        is_there = self._file.path.exists()  # one that was removed is written anew
        theirs = self._file.records()
        if self._looked and theirs is self._seen:
            return
        if not is_there and book.records:
            book.ended = {**refold(self._journal, self._fleet_file.fleet.space)[1], **book.ended}
        for agent in theirs.keys() | book.records.keys() if is_there else ():
            known = self._seen.get(agent) if self._looked else book.bases.get(agent)
            found = theirs.get(agent)
            if found is not known and found != known:
                self._take_up(turn, book, agent, found, known)
                self._edits = (turn.memory.get(EDITS) or 0) + 1
                turn.remember(EDITS, self._edits)
        self._seen = theirs
        self._looked = True

    def _take_up(
        self, turn: Turn, book: Book, agent: str, theirs: AgentRecord | None, known: AgentRecord | None
    ) -> None:
        ours = book.records.get(agent)
        if theirs is None:
            if known is None or ours is None:
                return  # it was never written, or is gone for everybody
            if ours.is_running:
                self._say(
                    turn, f"registry.yaml: {agent} runs, so its record was put back; `muster forget {agent}` ends that"
                )
            else:
                book.put(agent, None)
        elif ours is None:
            if agent not in book.gone:
                book.put(agent, theirs)
        else:
            bases = [*self._versions[agent], *([known] if known is not None else [])]
            merged = merge(bases, theirs, ours)
            book.put(agent, merged.record)
            if merged.wish is not None:
                self._wishes.ask(turn, agent, merged.wish, ours.desired)
                self._log.info("took up a wish from the file", agent=agent, desired=merged.wish.value)
            if merged.put_back:
                names = ", ".join(merged.put_back)
                self._say(
                    turn,
                    f"registry.yaml: {names} of {agent} is what Muster sees, and was put back;"
                    " what you want of it stands behind `desired`",
                )

    def _write(self, turn: Turn, book: Book) -> None:
        pruned = self._prune(turn, book)
        changes = {agent: record for agent, record in book.records.items() if self._is_news(agent, record)}
        gone = book.gone & self._seen.keys()
        if changes or gone or book.ended or pruned:
            self._file.write(changes, gone - changes.keys(), book.ended, pruned)
            turn.gather(GATHERS_S)
            turn.again_at(turn.now + LATE_SAVES)  # somebody may save into the file that was just replaced
        for agent, record in changes.items():
            self._versions[agent].append(record)
        self._seen = self._file.records()
        book.written()

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
                turn.ask(Forget(agent=agent), "it ended long ago")
        book.ended = {spawn: each for spawn, each in book.ended.items() if each.ended >= before}
        old = [spawn for spawn, each in self._file.history().items() if each.ended < before]
        self._pruned_at = turn.now
        return old

    def _rebuild(self, book: Book) -> str:
        aside = self._file.set_aside()
        records, ended = refold(self._journal, self._fleet_file.fleet.space)
        book.begin_anew(records, ended)
        self._seen, self._looked = {}, True
        self._pruned_at = None
        self._log.info("rebuilt the registry", agents=len(records), ended=len(ended))
        was = f"; the old file is {aside.name}" if aside else ""
        return (
            f"the registry was written anew from the journal: {len(records)} agents, {len(ended)} sessions that ended"
            f"{was}; what runs in tmux beside these is told by the reconciler"
        )

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
