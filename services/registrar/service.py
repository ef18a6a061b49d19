"""Folds all events and people's edits of the file into one record of each agent, and publishes it: as file and states.

One step: `ledger.py` reads the records from memory and folds the events (`fold.py`), `hand_edits.py` merges what people
wrote into the file, the file is written, and the ledger goes back into memory.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import ClassVar

from registry import AgentRecord, ChangedMeanwhile, RegistryFile
from registry.memory import records_in
from services.registrar.hand_edits import follow_wishes, merge, send_wish
from services.registrar.ledger import Ledger, refold
from shared.contract.commands import Forget, Rebuild
from shared.contract.envelope import Data
from shared.contract.topics import AGENT_STATE
from shared.errors import MusterError, Retryable
from shared.fleet import FleetFile
from shared.messaging.journal import Journal
from shared.runtime.turn import PendingCommand, Turn
from shared.system.log import Log

COALESCE_S = 0.03
"""Events wait this long after a write, so that a burst becomes one write. A single event does not wait."""
WRITE_ATTEMPTS = 5
"""How often a write starts again because a person saved the file meanwhile."""
RETRY_INTERVAL = timedelta(seconds=0.5)
VERSIONS_PER_AGENT = 50
"""An editor saves the version that it opened, maybe long ago: this many versions of a record are known."""
PRUNE_INTERVAL_S = 60.0
LATE_SAVE_WITHIN = timedelta(seconds=0.5)
"""An editor that has the replaced file open saves into it within this time, mostly."""
ACTIVITY_WRITE_INTERVAL = timedelta(seconds=1)
"""Activity changes all the time: states show it at once, the file is written at most this often."""


class Registrar:
    name: ClassVar[str] = "registrar"

    def __init__(self, fleet_file: FleetFile, file: RegistryFile, journal: Journal, log: Log) -> None:
        self._fleet_file = fleet_file
        self._file = file
        self._journal = journal
        self._log = log
        self._in_file: Mapping[str, AgentRecord] | None = None
        """The file's records as we last read or wrote them; None: to be read as if for the first time."""
        self._touched: dict[str, AgentRecord | None] = {}
        """What the last turn wrote or took up. It counts if the next turn finds it committed."""
        self._versions: defaultdict[str, deque[AgentRecord]] = defaultdict(lambda: deque(maxlen=VERSIONS_PER_AGENT))
        self._records = records_in(journal.memory())
        """As of the last turn, of this process or of the one before."""
        self._published = dict[str, AgentRecord]()
        self._fault = ""
        self._pruned_at: float | None = None
        self._written_at: float | None = None
        """These two by the clock that nobody sets."""

    def states(self) -> Iterable[Data]:
        return [record.state(agent) for agent, record in self._records.items()]

    def step(self, turn: Turn) -> None:
        ledger = Ledger.open(turn.memory)
        self._note_versions(ledger)
        if ledger.is_empty:
            self._begin_with_file(ledger)
        ledger.fold(turn.events)
        for pending in turn.commands:
            if isinstance(pending.command, Rebuild):
                self._rebuild(turn, pending, ledger)
        self._sync_file(turn, ledger)
        ledger.remember(turn.memory)
        self._publish(turn, ledger)

    def _note_versions(self, ledger: Ledger) -> None:
        """Check that the last turn was committed; if not, the file is read as if for the first time."""
        for agent, record in self._touched.items():
            if ledger.records.get(agent) != record:
                self._in_file = None
            elif record is not None:
                self._note_version(agent, record)
        self._touched = {}
        for agent in self._versions.keys() - ledger.records.keys():
            del self._versions[agent]

    def _note_version(self, agent: str, record: AgentRecord) -> None:
        versions = self._versions[agent]
        if versions and record.differs_in_activity_only(versions[-1]):
            versions.pop()  # a busy agent would soon push out the version that an editor has opened
        versions.append(record)

    def _begin_with_file(self, ledger: Ledger) -> None:
        with suppress(MusterError):  # reported when it is read again
            ledger.begin_with(self._file.records())

    # --- the file ---

    def _sync_file(self, turn: Turn, ledger: Ledger) -> None:
        """Take up people's edits and write what is new. A file that can't be read or written is tried again later."""
        self._take_up_late_save(turn)
        for _ in range(WRITE_ATTEMPTS):
            try:
                if not self._take_up_edits(turn, ledger):
                    turn.look_again_at(turn.now + RETRY_INTERVAL)
                    return
                for refused in follow_wishes(turn, ledger):
                    self._notify(turn, f"registry.yaml: `desired` of {refused.agent} was put back: {refused.said}")
                self._write(turn, ledger)
            except ChangedMeanwhile:
                continue
            except Retryable:
                raise
            except (OSError, MusterError) as fault:  # it can't be written, or its content can't be read or changed
                self._report_fault(turn, fault)
                turn.look_again_at(turn.now + RETRY_INTERVAL)
            else:
                self._fault = ""
            return
        turn.look_again_at(turn.now + RETRY_INTERVAL)

    def _take_up_late_save(self, turn: Turn) -> None:
        try:
            if self._file.take_up_late_save():
                self._log.info("took up a save into the replaced file")
        except MusterError as fault:
            self._notify(turn, str(fault))
        except OSError as fault:
            self._report_fault(turn, fault)

    def _take_up_edits(self, turn: Turn, ledger: Ledger) -> bool:
        """Take up people's edits; False while the file looks half saved."""
        theirs = self._file.records()
        if theirs is self._in_file:
            return True
        known = ledger.written if self._in_file is None else self._in_file
        is_there = self._file.is_there  # a removed file is written again from the ledger
        taken_out = [agent for agent in ledger.records if is_there and known.get(agent) and agent not in theirs]
        if taken_out and not self._file.settled:
            return False
        if not is_there and ledger.records:
            ledger.ended = {**refold(self._journal, self._fleet_file.fleet.space).ended, **ledger.ended}
        for agent in taken_out:
            self._put_back_or_drop(turn, ledger, agent)
            self._touched[agent] = ledger.records.get(agent)
        for agent, found in theirs.items():
            before = known.get(agent)
            if found is not before and found != before:
                self._take_up(turn, ledger, agent, found, before)
                self._touched[agent] = ledger.records.get(agent)
        self._in_file = theirs
        return True

    def _put_back_or_drop(self, turn: Turn, ledger: Ledger, agent: str) -> None:
        if ledger.records[agent].is_running:
            self._notify(
                turn, f"registry.yaml: {agent} runs, so its record was put back; `muster forget {agent}` ends that"
            )
        else:
            ledger.put(agent, None)

    def _take_up(self, turn: Turn, ledger: Ledger, agent: str, theirs: AgentRecord, before: AgentRecord | None) -> None:
        ours = ledger.records.get(agent)
        if ours is None:
            self._take_up_new(turn, ledger, agent, theirs)
            return
        versions = [*self._versions[agent], *ledger.passed.get(agent, ()), *([before] if before is not None else [])]
        merged = merge(versions, theirs, ours)
        ledger.put(agent, merged.record)
        if merged.wish is not None:
            send_wish(turn, agent, merged.wish, ours.desired)
            self._log.info("took up a wish from the file", agent=agent, desired=merged.wish.value)
        if merged.unknown:
            self._notify(
                turn,
                f"registry.yaml: what was saved of {agent} began with a version that is not known any more, or its"
                " status was changed, which is what Muster sees; nothing of it was taken up but comments and own keys:"
                " edit it again if something is amiss",
            )
        elif merged.put_back:
            self._notify(
                turn,
                f"registry.yaml: {', '.join(merged.put_back)} of {agent} is what Muster sees, and was put back;"
                " what you want of it stands behind `desired`",
            )

    def _take_up_new(self, turn: Turn, ledger: Ledger, agent: str, theirs: AgentRecord) -> None:
        """An entry without a record: a person wrote it, or copied it from another entry."""
        if agent in ledger.gone:
            return
        owner = next(
            (name for name, each in ledger.records.items() if theirs.spawn and each.spawn == theirs.spawn), None
        )
        if owner is None:
            ledger.put(agent, theirs)
            return
        ledger.gone.add(agent)
        self._notify(
            turn, f"registry.yaml: {agent} was taken out: its session is {owner}'s; an agent can't be renamed here"
        )

    def _write(self, turn: Turn, ledger: Ledger) -> None:
        pruned = self._prune(turn, ledger)
        in_file = self._in_file or {}
        changes = {agent: record for agent, record in ledger.records.items() if in_file.get(agent) != record}
        gone = ledger.gone & in_file.keys()
        if not (gone or ledger.ended or pruned) and self._can_wait(turn, changes):
            changes = {}
        if changes or gone or ledger.ended or pruned:
            rewritten = self._file.write(changes, gone - changes.keys(), ledger.ended, pruned)
            if rewritten:
                self._notify(turn, rewritten_notice(rewritten))
            # Not what is there now: an edit that a person made since must be taken up by the next turn.
            self._in_file, self._written_at = self._file.last_good(), turn.steady
            turn.coalesce(COALESCE_S)
            turn.look_again_at(turn.now + LATE_SAVE_WITHIN)
        self._touched |= dict.fromkeys(gone) | changes
        ledger.note_written()

    def _can_wait(self, turn: Turn, changes: Mapping[str, AgentRecord]) -> bool:
        """Whether only activity changed, and the file was just written."""
        if not changes or self._written_at is None:
            return False
        left = ACTIVITY_WRITE_INTERVAL - timedelta(seconds=turn.steady - self._written_at)
        if left <= timedelta(0):
            return False
        in_file = self._in_file or {}
        can_wait = all(record.differs_in_activity_only(in_file.get(agent)) for agent, record in changes.items())
        if can_wait:
            turn.look_again_at(turn.now + left)
        return can_wait

    def _prune(self, turn: Turn, ledger: Ledger) -> list[str]:
        """The sessions that ended long ago, once per interval. Records of undeclared agents are dropped with them."""
        if self._pruned_at is not None and turn.steady < self._pruned_at + PRUNE_INTERVAL_S:
            return []
        self._fleet_file.refresh()
        fleet = self._fleet_file.fleet
        before = turn.now.timestamp() - fleet.declared.registry.keep_ended_s

        def is_old(ended: datetime) -> bool:
            return turn.corrected(ended.timestamp()) < before

        for agent, record in list(ledger.records.items()):
            if agent not in fleet.agents and not record.is_running and is_old(record.ended or record.since):
                ledger.put(agent, None)
                turn.send_command(Forget(agent=agent, spawn=record.spawn), "it ended long ago")
        ledger.ended = {spawn: each for spawn, each in ledger.ended.items() if not is_old(each.ended)}
        self._pruned_at = turn.steady
        return [spawn for spawn, each in self._file.valid_history().items() if is_old(each.ended)]

    def _rebuild(self, turn: Turn, pending: PendingCommand, ledger: Ledger) -> None:
        """Fold the journal's events again; what they do not tell of stays."""
        with suppress(MusterError):
            ledger.ended = {**self._file.valid_history(), **ledger.ended}
        try:
            aside = self._file.set_aside()
        except OSError as error:
            turn.reply(pending, f"{self._file.path} can't be set aside: {error.strerror or error}", code="refused")
            return
        ledger.begin_anew(refold(self._journal, self._fleet_file.fleet.space))
        records, ended = ledger.records, ledger.ended
        self._in_file = {}
        self._pruned_at = None
        was = f"; the old file is {aside.name}" if aside else ""
        said = (
            f"the registry was written anew from the journal: {len(records)} agents, {len(ended)} sessions that ended"
            f"{was}; what runs in tmux beside these is told by the reconciler"
        )
        self._log.info("rebuilt the registry", agents=len(records), ended=len(ended))
        turn.reply(pending, said, agents=sorted(records))

    # --- states and notices ---

    def _publish(self, turn: Turn, ledger: Ledger) -> None:
        """Publish each state that changed, by an event or by a person's edit."""
        for agent, record in ledger.records.items():
            if self._published.get(agent) != record:
                turn.publish_state(record.state(agent))
        for agent in self._records.keys() - ledger.records.keys():
            turn.clear_state(AGENT_STATE, agent=agent)
        self._published = self._records = dict(ledger.records)

    def _report_fault(self, turn: Turn, fault: OSError | MusterError) -> None:
        """Show a fault of the file in the service's state, and log it once."""
        said = str(fault)
        if isinstance(fault, OSError):
            said = f"{self._file.path} can't be written: {fault.strerror or fault}"
        turn.degrade(said)
        if said != self._fault:
            self._fault = said
            self._log.error("the registry file is left as it is", reason=said)

    def _notify(self, turn: Turn, said: str) -> None:
        """Show people for a while what became of their edit."""
        self._log.warning("changed a person's edit", reason=said)
        turn.notice(said)


def rewritten_notice(names: Sequence[str]) -> str:
    """What was rewritten, and why."""
    return (
        f"registry.yaml: {', '.join(names)} was rewritten in plain block style, because flow style, anchors, aliases"
        " and tags can't be edited in place; check whether comments inside were lost"
    )
