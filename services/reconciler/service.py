"""Compares the record with tmux, processes and the agents' own files, and tells what differs. It changes nothing."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from registry import AgentRecord, RegistryFile
from registry.memory import RegistryReader
from services.reconciler.classification import drifts_of
from services.reconciler.comparison import Comparison, Observation, shared_conversations
from services.reconciler.foreign_agents import ForeignAgents, ReportedStranger
from services.reconciler.observation import Observer, World
from services.reconciler.reporting import Explanations, ReportedDrifts, forget_gone
from shared.contract.commands import Reconcile
from shared.contract.envelope import AgentEvent, Data
from shared.fleet import Fleet, FleetFile
from shared.messaging.journal import Journal
from shared.runtime.turn import PendingCommand, Turn
from shared.system.tmux import Tmux


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

    def __init__(
        self,
        fleet_file: FleetFile,
        registry: RegistryFile,
        tmux: Tmux,
        journal: Journal,
        own: Mapping[str, str] | None = None,
    ) -> None:
        self._fleet_file = fleet_file
        self._records = RegistryReader(registry, journal)
        self._observer = Observer(tmux, dict(os.environ if own is None else own))
        self._strangers = ForeignAgents(journal)
        self._patience = Explanations(journal, fleet_file.fleet.space)
        self._agreed: dict[str, Comparison] = {}
        """Agents whose record and world agreed when they were last compared."""
        self.last: list[Difference] = []
        """What differed when it last looked."""
        self.looks_at_all = False
        """Whether each look is a whole one, whatever it costs."""

    def states(self) -> Iterable[Data]:
        return ()

    def step(self, turn: Turn) -> None:
        self._fleet_file.refresh()
        pending = [each for each in turn.commands if isinstance(each.command, Reconcile)]
        dry_run = bool(pending) and all(each.command.dry_run for each in pending if isinstance(each.command, Reconcile))
        self.compare(turn, thoroughly=bool(pending) or self.looks_at_all, dry_run=dry_run)
        for each in pending:
            self._answer(turn, each)
        if dry_run:
            turn.look_again_at(turn.now)  # what came with it was seen, and not told

    def compare(self, turn: Turn, *, thoroughly: bool, dry_run: bool) -> None:
        fleet = self._fleet_file.fleet
        self._patience.begin()
        records = self._records.read(turn)  # before the look at tmux
        if not thoroughly:
            self._tell_missing(turn, fleet, records)
            if turn.emitted:
                turn.look_again_at(turn.now)  # the rest takes longer
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
        if turn.poll and not dry_run and not turn.trouble:
            forget_gone(turn, world.sights.keys())
        if world.look_again_s is not None:
            turn.look_again_at(turn.now + timedelta(seconds=world.look_again_s))

    def _tell_missing(self, turn: Turn, fleet: Fleet, records: Mapping[str, AgentRecord]) -> None:
        """What people wait for most, by the quickest look that there is."""
        stamps = self._observer.stamps(fleet)
        for agent, record in records.items():
            if record.is_running and agent not in stamps:
                list(self._compare_one(turn, self._comparison(fleet, agent, record, Observation()), dry_run=False))

    def _differences(
        self, turn: Turn, fleet: Fleet, records: Mapping[str, AgentRecord], world: World, *, dry_run: bool
    ) -> Iterator[Difference]:
        shared = shared_conversations(records, world.sights)
        for agent in self._agreed.keys() - world.sights.keys():
            del self._agreed[agent]
        for agent, sight in world.sights.items():
            compared = self._comparison(fleet, agent, records.get(agent), sight, shared.get(agent, ()))
            known = self._agreed.get(agent)
            if known is None or not known.is_same(compared):  # mostly it is; there may be hundreds
                yield from self._compare_one(turn, compared, dry_run=dry_run)

    def _comparison(
        self, fleet: Fleet, agent: str, record: AgentRecord | None, seen: Observation, others: Sequence[str] = ()
    ) -> Comparison:
        declared = fleet.agents.get(agent)
        return Comparison(agent, record, seen, tuple(others), declared.backend if declared is not None else "unknown")

    def _compare_one(self, turn: Turn, compared: Comparison, *, dry_run: bool) -> Iterator[Difference]:
        agent, record, pane = compared.agent, compared.record, compared.observation.pane
        present = drifts_of(compared)
        reported = ReportedDrifts(turn, agent, record.spawn if record is not None else None)
        self._agreed.pop(agent, None)
        if not present and reported.is_empty:
            self._agreed[agent] = compared
        for drift in present:
            event = drift.build(compared)
            difference = Difference(event, reported.is_news(drift, event))
            if difference.news:
                about = pane or record
                waits = self._patience.waits(turn, drift, agent, about.spawn if about is not None else None, pane)
                difference = Difference(event, news=True, waits=waits)
                if not waits and not dry_run:
                    reported.tell(drift, event)
            yield difference
        if not dry_run:
            reported.settle(present, compared.aspects)

    def _report_strangers(self, turn: Turn, found: list[ReportedStranger]) -> None:
        for each in found:
            self._strangers.report(turn, each)
        if turn.poll:
            self._strangers.forget_gone(turn, {each.key for each in found})
            self._patience.forget(turn.now)

    def _answer(self, turn: Turn, pending: PendingCommand) -> None:
        count = {
            state: sum(each.document()["state"] == state for each in self.last) for state in ("new", "told", "waits")
        }
        words = [f"{number} {state}" for state, number in count.items() if number]
        said = f"{len(self.last)} drifts: {', '.join(words)}" if self.last else "the record and the world agree"
        turn.reply(pending, said, drifts=[each.document() for each in self.last])
