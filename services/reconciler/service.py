"""Compares the record with tmux, processes and the agents' own files, and tells what differs. It changes nothing."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from registry import AgentRecord, RegistryFile
from registry.reading import Records
from services.reconciler.decide import DriftKind, drifts_of
from services.reconciler.observing import Observer, World
from services.reconciler.patience import Patience
from services.reconciler.sights import Sight, aspects, event_for, recorded, shared_conversations, unregistered
from services.reconciler.strangers import Found, Strangers
from services.reconciler.told import Told, forget_gone
from shared.commands import Reconcile
from shared.events import AgentEvent, Data
from shared.fleet import Fleet, FleetFile
from shared.journal import Journal
from shared.tmux import Tmux
from shared.topics import AGENT_LIFECYCLE, AGENT_STATE, Topic
from shared.turn import Asked, Turn

Compared = tuple[AgentRecord | None, Sight, list[str]]


@dataclass(frozen=True)
class Difference:
    """One drift that is there now."""

    event: AgentEvent
    news: bool
    waits: str = ""
    """What it waits for before it is told."""

    @property
    def of(self) -> tuple[str, str]:
        return self.event.agent, self.event.kind

    def document(self) -> dict[str, Any]:
        state = "waits" if self.waits else "new" if self.news else "told"
        return {**self.event.model_dump(mode="json", exclude_none=True), "state": state, "waits": self.waits}


class Reconciler:
    name: ClassVar[str] = "reconciler"
    follows: ClassVar[tuple[Topic, ...]] = ()
    hints: ClassVar[tuple[Topic, ...]] = (AGENT_LIFECYCLE, AGENT_STATE)
    owns: ClassVar[tuple[Topic, ...]] = ()

    def __init__(
        self,
        fleet_file: FleetFile,
        registry: RegistryFile,
        tmux: Tmux,
        journal: Journal,
        own: Mapping[str, str] | None = None,
    ) -> None:
        self._fleet_file = fleet_file
        self._records = Records(registry, journal)
        self._observer = Observer(tmux, dict(os.environ if own is None else own))
        self._strangers = Strangers(journal)
        self._patience = Patience(journal, fleet_file.fleet.space)
        self._agreed: dict[str, Compared] = {}
        """Agents whose record and world agreed when they were last compared."""
        self.last: list[Difference] = []
        """What differed when it last looked."""
        self.looks_at_all = False
        """Whether each look is a whole one, whatever it costs."""

    def states(self) -> Iterable[Data]:
        return ()

    def step(self, turn: Turn) -> None:
        self._fleet_file.refresh()
        asked = [each for each in turn.asked if isinstance(each.command, Reconcile)]
        dry_run = bool(asked) and all(each.command.dry_run for each in asked if isinstance(each.command, Reconcile))
        self.compare(turn, thoroughly=bool(asked) or self.looks_at_all, dry_run=dry_run)
        for each in asked:
            self._answer(turn, each)
        if dry_run:
            turn.again_at(turn.now)  # what came with it was seen, and not told

    def compare(self, turn: Turn, *, thoroughly: bool, dry_run: bool) -> None:
        fleet = self._fleet_file.fleet
        self._patience.begin()
        records = self._records.read(turn)  # before the look at tmux
        if not thoroughly:
            self._tell_missing(turn, fleet, records)
            if turn.told:
                turn.again_at(turn.now)  # the rest takes longer
                return
        world = self._observer.look(fleet, records, turn.now.timestamp(), thoroughly=thoroughly)
        taken = world.panes.keys() | {agent for agent, record in records.items() if record.is_running}
        found = list(self._strangers.find(turn, fleet, world.strangers, taken))
        self.last = [
            *self._differences(turn, fleet, records, world, dry_run=dry_run),
            *(Difference(each.event, news=each.kept is None) for each in found),
        ]
        if not dry_run:
            self._report_strangers(turn, found)
        if turn.poll and not dry_run and not turn.complaint:
            forget_gone(turn, world.sights.keys())
        if world.look_again_s is not None:
            turn.again_at(turn.now + timedelta(seconds=world.look_again_s))

    def _tell_missing(self, turn: Turn, fleet: Fleet, records: Mapping[str, AgentRecord]) -> None:
        """What people wait for most, by the quickest look that there is."""
        stamps = self._observer.stamps(fleet)
        for agent, record in records.items():
            if record.is_running and agent not in stamps:
                list(self._compare_one(turn, fleet, agent, (record, Sight(), []), dry_run=False))

    def _differences(
        self, turn: Turn, fleet: Fleet, records: Mapping[str, AgentRecord], world: World, *, dry_run: bool
    ) -> Iterator[Difference]:
        shared = shared_conversations(records, world.sights)
        for agent in self._agreed.keys() - world.sights.keys():
            del self._agreed[agent]
        for agent, sight in world.sights.items():
            compared = (records.get(agent), sight, shared.get(agent, []))
            known = self._agreed.get(agent)
            if known is None or not _is_same(known, compared):  # mostly it is; there may be hundreds
                yield from self._compare_one(turn, fleet, agent, compared, dry_run=dry_run)

    def _compare_one(
        self, turn: Turn, fleet: Fleet, agent: str, compared: Compared, *, dry_run: bool
    ) -> Iterator[Difference]:
        record, sight, others = compared
        seen = aspects(record, sight, others)
        present = drifts_of(recorded(record), seen)
        told = Told(turn, agent, record.spawn if record is not None else None)
        self._agreed.pop(agent, None)
        if not present and told.is_empty:
            self._agreed[agent] = compared
        for kind in present:
            event = _event(kind, agent, fleet, record, sight, others)
            difference = Difference(event, told.is_news(kind, event))
            if difference.news:
                about = sight.pane or record
                spawn = about.spawn if about is not None else None
                waits = self._patience.waits(turn, kind, agent, spawn, sight.pane)
                difference = Difference(event, news=True, waits=waits)
                if not waits and not dry_run:
                    told.tell(kind, event)
            yield difference
        if not dry_run:
            told.settle(present, seen)

    def _report_strangers(self, turn: Turn, found: list[Found]) -> None:
        for each in found:
            self._strangers.report(turn, each)
        if turn.poll:
            self._strangers.forget_gone(turn, {each.key for each in found})
            self._patience.forget(turn.now)

    def _answer(self, turn: Turn, asked: Asked) -> None:
        count = {
            state: sum(each.document()["state"] == state for each in self.last) for state in ("new", "told", "waits")
        }
        words = [f"{number} {state}" for state, number in count.items() if number]
        said = f"{len(self.last)} drifts: {', '.join(words)}" if self.last else "the record and the world agree"
        turn.answer(asked, said, drifts=[each.document() for each in self.last])


def _is_same(one: Compared, other: Compared) -> bool:
    """Whether nothing has changed since; records and examinations stay the same objects as long as they are good."""
    return (
        one[0] is other[0]
        and one[1].examined is other[1].examined
        and one[1].pane == other[1].pane
        and (one[1].transcript, one[1].moved_to) == (other[1].transcript, other[1].moved_to)
        and one[2] == other[2]
    )


def _event(
    kind: DriftKind, agent: str, fleet: Fleet, record: AgentRecord | None, sight: Sight, others: list[str]
) -> AgentEvent:
    if kind is DriftKind.UNREGISTERED and sight.pane is not None:
        declared = fleet.agents.get(agent)
        known = record.backend if record is not None else declared.backend if declared is not None else "unknown"
        return unregistered(agent, sight.pane, sight.examined.found or known, sight.examined.identity)
    if record is None:
        raise ValueError(f"{kind} is told of a record")
    return event_for(kind, agent, record, sight, others)
