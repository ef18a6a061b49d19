"""Compares the records with the world and reports each drift once. It changes nothing.

A turn observes (`observation.py`), finds the drifts of each agent (`classification.py`) and reports the new ones.
A drift waits while an open command about the agent, or an event that the registrar has not read yet, may explain it.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from registry import AgentRecord, RegistryFile
from registry.memory import RegistryReader
from services.reconciler import foreign_agents
from services.reconciler.classification import (
    DRIFTS,
    MISSING,
    PANE_DEAD,
    UNREGISTERED,
    Aspect,
    Comparison,
    Drift,
    Observation,
    drifts_of,
    shared_conversations,
)
from services.reconciler.observation import Observer, World
from shared.contract.commands import Reconcile
from shared.contract.envelope import AgentEvent, Data
from shared.contract.events.drift import DriftResolved
from shared.contract.topics import AGENT_LIFECYCLE, Space
from shared.fleet import Fleet, FleetFile
from shared.messaging.journal import Journal
from shared.runtime.memory import MemoryTable
from shared.runtime.turn import PendingCommand, Turn
from shared.system.tmux import Pane, PaneStamp, Tmux

RECORD_FOLLOWS_WITHIN = timedelta(seconds=2.5)
"""How long after a command was answered, or a session was first seen, its record may be on its way."""
WAITS_AT_MOST = timedelta(seconds=30)
"""How long a drift waits for an open command, or for the registrar."""
FEW_AGENTS, LOOK_PER_AGENT_S = 50, 0.002
"""A full look takes the longer the more agents there are, and what tmux pushes meanwhile has to wait. So each agent
above a few adds to the time between two. Missing sessions and dead panes are found before, by the quickest look."""
LOOKS_AGAIN_AFTER = timedelta(seconds=0.5)
NEVER = float("-inf")
NEW_SESSION_S = 3.0
"""A session younger than this is reported by the service that made it."""
START_LASTS_AT_MOST_S = 600.0
"""A spawner that hangs for longer in the middle of a start is no explanation any more."""


@dataclass(frozen=True)
class Difference:
    """A drift that is there now."""

    event: AgentEvent
    news: bool
    waits: str = ""
    """What it waits for before it is reported."""

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
        environment: Mapping[str, str] | None = None,
        spawner_lives: Callable[[], bool] = lambda: False,
    ) -> None:
        self._fleet_file = fleet_file
        self._records = RegistryReader(registry, journal)
        self._observer = Observer(tmux, dict(os.environ if environment is None else environment))
        self._explanations = Explanations(journal, fleet_file.fleet.space, spawner_lives)
        self._agreed: dict[str, Comparison] = {}
        """Agents whose record and world agreed when they were last compared."""
        self.differences: list[Difference] = []
        """Of the latest comparison."""
        self.is_thorough = False
        """Whether every turn observes everything, whatever it costs."""
        self._looked_at = NEVER
        """When everything was observed last, and which panes there were."""
        self._stamps: Set[PaneStamp] = frozenset()

    def states(self) -> Iterable[Data]:
        return ()

    def step(self, turn: Turn) -> None:
        self._fleet_file.refresh()
        pending = [each for each in turn.commands if isinstance(each.command, Reconcile)]
        dry_run = bool(pending) and all(each.command.dry_run for each in pending if isinstance(each.command, Reconcile))
        self.compare(turn, thoroughly=bool(pending) or self.is_thorough, dry_run=dry_run)
        for each in pending:
            self._answer(turn, each)
        if dry_run:
            turn.look_again_at(turn.now)  # the dry run reported nothing of what it saw

    def compare(self, turn: Turn, *, thoroughly: bool, dry_run: bool) -> None:
        """Observe, compare and report. A dry run only fills `differences`."""
        fleet = self._fleet_file.fleet
        self._explanations.begin()
        records = self._records.read(turn)  # before tmux: see `Observer.look`
        if not thoroughly:
            stamps = self._observer.stamps(fleet)
            self._report_missing(turn, fleet, records, {stamp.agent for stamp in stamps})
            due = turn.now if turn.poll else self._next_look(turn.now, stamps, len(records))
            if turn.emitted or due > turn.now:
                turn.look_again_at(due)  # a full look takes longer
                return
            self._looked_at, self._stamps = turn.now.timestamp(), stamps
        world = self._observer.look(fleet, records, turn.now.timestamp(), thoroughly=thoroughly)
        taken = world.panes.keys() | {agent for agent, record in records.items() if record.is_running}
        candidates = list(foreign_agents.candidates(turn, fleet, world.foreign_agents, taken))
        self.differences = [
            *self._compare_all(turn, fleet, records, world, dry_run=dry_run),
            *(Difference(each.event, news=each.reported is None) for each in candidates),
        ]
        if not dry_run:
            for candidate in candidates:
                foreign_agents.report(turn, candidate)
            if turn.poll:
                foreign_agents.forget_ended(turn, {each.found.key for each in candidates})
                self._explanations.forget_old(turn.steady)
                if not turn.trouble:
                    forget_gone(turn, world.observations.keys())
        if world.look_again_s is not None:
            turn.look_again_at(turn.now + timedelta(seconds=world.look_again_s))

    def _next_look(self, now: datetime, stamps: Set[PaneStamp], agents: int) -> datetime:
        """When to observe everything. At once if an agent's program ended, or its pane while its session goes on.

        A dead pane stays only for a moment.
        """
        apart_s = max(0, agents - FEW_AGENTS) * LOOK_PER_AGENT_S
        since_s = now.timestamp() - self._looked_at
        there = {stamp.agent for stamp in stamps}
        is_urgent = any(stamp.agent in there for stamp in self._stamps - stamps)
        if is_urgent or not 0 <= since_s < apart_s:
            return now
        return now + timedelta(seconds=apart_s - since_s)

    def _report_missing(
        self, turn: Turn, fleet: Fleet, records: Mapping[str, AgentRecord], there: Collection[str]
    ) -> None:
        """Report sessions that are gone by the quickest look, before anything else."""
        for agent, record in records.items():
            if record.is_running and agent not in there:
                list(self._compare_one(turn, self._comparison(fleet, agent, record, Observation()), dry_run=False))

    def _compare_all(
        self, turn: Turn, fleet: Fleet, records: Mapping[str, AgentRecord], world: World, *, dry_run: bool
    ) -> Iterator[Difference]:
        shared = shared_conversations(records, world.observations)
        for agent in self._agreed.keys() - world.observations.keys():
            del self._agreed[agent]
        for agent, observation in world.observations.items():
            compared = self._comparison(fleet, agent, records.get(agent), observation, shared.get(agent, ()))
            agreed = self._agreed.get(agent)
            if agreed is None or not agreed.is_same(compared):  # of hundreds, few change
                yield from self._compare_one(turn, compared, dry_run=dry_run)

    def _comparison(
        self, fleet: Fleet, agent: str, record: AgentRecord | None, seen: Observation, others: Sequence[str] = ()
    ) -> Comparison:
        declared = fleet.agents.get(agent)
        return Comparison(agent, record, seen, tuple(others), declared.backend if declared is not None else "unknown")

    def _compare_one(self, turn: Turn, compared: Comparison, *, dry_run: bool) -> Iterator[Difference]:
        """The drifts of one agent. Those that are new and wait for nothing are reported."""
        agent, record, pane = compared.agent, compared.record, compared.observation.pane
        present = drifts_of(compared)
        reports = DriftReports(turn, agent, record.spawn if record is not None else None)
        self._agreed.pop(agent, None)
        if not present and reports.is_empty:
            self._agreed[agent] = compared
        for drift in present:
            event = drift.build(compared)
            difference = Difference(event, reports.is_news(drift, event))
            if difference.news:
                about = pane or record
                spawn = about.spawn if about is not None else None
                keeps = agent in self._fleet_file.fleet.agents
                waits = self._explanations.awaited(turn, drift, agent, spawn, pane, spawner_keeps=keeps)
                difference = Difference(event, news=True, waits=waits)
                if not waits and not dry_run:
                    reports.report(drift, event)
            yield difference
        if not dry_run:
            reports.resolve(present, compared.aspects)

    def _answer(self, turn: Turn, pending: PendingCommand) -> None:
        documents = [each.document() for each in self.differences]
        count = {state: sum(each["state"] == state for each in documents) for state in ("new", "told", "waits")}
        words = [f"{number} {state}" for state, number in count.items() if number]
        said = f"{len(documents)} drifts: {', '.join(words)}" if documents else "the record and the world agree"
        turn.reply(pending, said, drifts=documents)


# --- once ---


@dataclass(frozen=True)
class ReportedDrifts:
    """What was reported about one agent, and about which of its sessions."""

    spawn: str | None
    drifts: Mapping[str, Any]
    """By the name of the drift: the fields of its event that make it news when they change."""


REPORTED = MemoryTable("reported:", ReportedDrifts)
"""By agent."""


def forget_gone(turn: Turn, agents: Collection[str]) -> None:
    """Forget the agents that have neither a record nor a session: nothing can drift there."""
    for agent in turn.memory.all(REPORTED).keys() - agents:
        turn.memory.put(REPORTED, None, agent)


class DriftReports:
    """The drifts of one agent's session that were reported, and new reports."""

    def __init__(self, turn: Turn, agent: str, spawn: str | None) -> None:
        self._turn, self._agent, self._spawn = turn, agent, spawn
        reported = turn.memory.find(REPORTED, agent) or ReportedDrifts(spawn, {})
        is_same_session = reported.spawn == spawn
        self._drifts = {
            name: fields
            for name, fields in reported.drifts.items()
            if is_same_session or DRIFTS[name].event_class.outlives_session
        }

    @property
    def is_empty(self) -> bool:
        return not self._drifts

    def is_news(self, drift: Drift, event: AgentEvent) -> bool:
        """Whether this was not reported yet. A dead pane that then goes away is reported once, as dead."""
        if drift is MISSING and PANE_DEAD.name in self._drifts:
            return False
        if drift.name not in self._drifts:
            return True
        return self._drifts[drift.name] != _telling_fields(event) and not drift.event_class.ends_session

    def report(self, drift: Drift, event: AgentEvent) -> None:
        self._turn.emit(event)
        self._drifts[drift.name] = _telling_fields(event)
        self._remember()

    def resolve(self, present: Collection[Drift], seen: Collection[Aspect]) -> None:
        """Forget the drifts that are over, and report the end of those that had stayed open."""
        for drift in [DRIFTS[name] for name in self._drifts if DRIFTS[name] not in present]:
            stays_open = bool(drift.event_class.resolved_because)
            if drift.event_class.ends_session or (stays_open and not set(drift.ended_by) & set(seen)):
                continue
            if stays_open:
                reason = drift.event_class.resolved_because
                self._turn.emit(DriftResolved(agent=self._agent, spawn=self._spawn, drift=drift.name, reason=reason))
            del self._drifts[drift.name]
            self._remember()

    def _remember(self) -> None:
        reported = ReportedDrifts(self._spawn, dict(self._drifts)) if self._drifts else None
        self._turn.memory.put(REPORTED, reported, self._agent)


def _telling_fields(event: AgentEvent) -> dict[str, Any]:
    """The fields that make a drift news when they change."""
    return event.model_dump(mode="json", exclude={"agent", "kind", "pid", "pane", "command"})


# --- not while something may explain it ---


class Explanations:
    """Commands and events that may explain a drift before it is reported."""

    def __init__(self, journal: Journal, space: Space, spawner_lives: Callable[[], bool] = lambda: False) -> None:
        self._journal = journal
        self._space = space
        self._spawner_lives = spawner_lives
        self._waiting_since: dict[tuple[str, str], float] = {}
        """By agent, drift and session; by the clock that nobody sets."""
        self._recorded = 0
        """The spawner's latest event that is surely in the records of this turn."""

    def begin(self) -> None:
        """To be called before the records are read: what the registrar reads later may not be in them."""
        self._recorded = self._journal.cursor_of("registrar", f"/{self._space.host}/spawner")

    def forget_old(self, now: float) -> None:
        """Forget drifts that ended while they waited."""
        longest_s = 2 * WAITS_AT_MOST.total_seconds()
        self._waiting_since = {key: since for key, since in self._waiting_since.items() if now - since < longest_s}

    def awaited(
        self, turn: Turn, drift: Drift, agent: str, spawn: str | None, pane: Pane | None, *, spawner_keeps: bool
    ) -> str:
        """What a drift waits for; empty if it is to be reported now. `spawner_keeps`: the spawner starts this agent."""
        if not (drift.event_class.ends_session or drift is UNREGISTERED):
            return ""  # no command explains it
        key = (agent, f"{drift.name}:{spawn}")
        since = self._waiting_since.get(key, turn.steady)
        started = pane if spawner_keeps else None
        reason = self._reason(turn, drift, agent, pane, timedelta(seconds=turn.steady - since), started)
        if reason:
            self._waiting_since[key] = since
            turn.look_again_at(turn.now + LOOKS_AGAIN_AFTER)
        else:
            self._waiting_since.pop(key, None)
        return reason

    def _reason(
        self, turn: Turn, drift: Drift, agent: str, pane: Pane | None, waited: timedelta, started: Pane | None
    ) -> str:
        if self._is_busy(agent, turn.now, waited):
            return "somebody is busy with the agent"
        lifecycle = AGENT_LIFECYCLE.name(self._space, agent=agent)
        if waited < WAITS_AT_MOST and self._journal.has_event_on("spawner", lifecycle, after=self._recorded):
            return "what the spawner told of it is not recorded yet"
        if drift is UNREGISTERED:
            made = turn.corrected(pane.created) if pane is not None else NEVER
            if started is not None and self._is_being_started(started, turn.now.timestamp() - made):
                return "the spawner is about to tell of its start"
            if turn.now.timestamp() - made < NEW_SESSION_S:
                return "its session has just been made"
            if waited < RECORD_FOLLOWS_WITHIN:
                return "its record may follow"
        return ""

    def _is_being_started(self, pane: Pane, age_s: float) -> bool:
        """Whether a living spawner may have made this session and not told of it yet, however slow it is."""
        if pane.spawn is None or age_s >= START_LASTS_AT_MOST_S or not self._spawner_lives():
            return False
        return not self._journal.remembers("spawner", pane.spawn)

    def _is_busy(self, agent: str, now: datetime, waited: timedelta) -> bool:
        """Whether a command about the agent is open, or was answered just now.

        An answer may come while we look. One that is later than that is from before the clock was set back.
        """
        requests, at, within_s = self._journal.requests, now.timestamp(), RECORD_FOLLOWS_WITHIN.total_seconds()
        if waited < WAITS_AT_MOST and requests.open_about(agent, at):
            return True
        return requests.answered_about(agent, at - within_s, at + within_s)
