"""Looks at every agent of the fleet, tells what each is doing, and asks the spawner for what its policies want."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, ClassVar

from registry import AgentRecord, RegistryFile
from registry.memory import RegistryReader
from services.monitor.evidence import EvidenceSource
from services.monitor.evidence.hook_intake import HOOKED, HookIntake, HookOwners
from services.monitor.explanation import explanation
from services.monitor.health.peek import PeekRequests
from services.monitor.health.query_runner import QueryRunner
from services.monitor.health.rounds import HealthChecks, left_alone
from services.monitor.policies.runner import PolicyRunner
from services.monitor.reports import TOLD, ReportedQuestion, tell, tell_end, told_of
from services.monitor.subject import LookSchedule, Subject
from services.monitor.verdict import Verdict, fuse
from shared.agents.hooks.spool import Spool
from shared.contract.commands import Explain, Peek
from shared.contract.envelope import Data
from shared.contract.states import Activity
from shared.fleet import Backend, Fleet, FleetFile
from shared.messaging.journal import Journal
from shared.runtime.turn import PendingCommand, Turn
from shared.screen import read_screen
from shared.screen.signs import fingerprint
from shared.system.log import Log
from shared.system.processes import Processes
from shared.system.tmux import Pane, Tmux
from shared.system.tmux.server import socket_of

RECORDED_WITHIN_S = 5.0
"""What is told of a session that the record does not know yet is not recorded: so long it waits for that."""


class Monitor:
    name: ClassVar[str] = "monitor"

    def __init__(
        self,
        fleet_file: FleetFile,
        registry: RegistryFile,
        tmux: Tmux,
        journal: Journal,
        spool: Spool,
        log: Log,
        asking: QueryRunner,
    ) -> None:
        self._fleet_file = fleet_file
        self._records = RegistryReader(registry, journal)
        self._tmux = tmux
        self._log = log
        self._subjects: dict[str, Subject] = {}
        self._processes: Processes | None = None
        self._rhythm = LookSchedule()
        self._ears = HookIntake(spool)
        self.effects = self._ears.effects
        self._carer = PolicyRunner(journal)
        self._rounds, self._peeking = HealthChecks(asking), PeekRequests(asking)
        self._unclear: set[str] = set()
        """Agents of which nothing is to be concluded this turn: they are just ending, or not recorded yet."""

    def states(self) -> Iterable[Data]:
        return ()

    def step(self, turn: Turn) -> None:
        self._fleet_file.refresh()
        fleet = self._fleet_file.fleet
        now = turn.now.timestamp()
        self._processes = None
        self._unclear.clear()
        records = self._records.read(turn)
        panes = self._tmux.glance(fleet.stamp)
        self._meet(turn, fleet, records, panes)
        known = HookOwners.of(panes, records, str(socket_of(fleet.declared.tmux.socket)))
        for agent, subject in self._subjects.items():
            with turn.isolated(agent):
                subject.begin(fleet.backends[subject.backend], panes[agent], now)
        self._ears.hear(turn, known, self._subjects)
        self._capture(panes, now)
        for agent, subject in self._subjects.items():
            with turn.isolated(agent):
                self._judge(turn, fleet, subject, panes[agent], records.get(agent), now)
        watched = {agent: subject for agent, subject in self._subjects.items() if agent not in self._unclear}
        self._carer.tend(turn, fleet, watched, panes, records)
        self._rounds.begin(turn, fleet, panes)
        parked = left_alone(turn, fleet, self._carer)
        for agent, subject in watched.items():
            with turn.isolated(agent):
                self._rounds.visit(turn, fleet, subject, panes[agent], records.get(agent), parked)
                self._tell(turn, fleet, subject, records.get(agent))
        self._ears.remember(turn, self._subjects, panes)
        for agent in [key.removeprefix(TOLD) for key, kept in turn.memory.items() if key.startswith(TOLD) and kept]:
            if agent not in panes:
                tell_end(turn, agent, records.get(agent))
            elif agent not in self._subjects and told_of(turn, agent, panes[agent].spawn or "") is not None:
                # Its backend is not known any more.
                tell(turn, agent, panes[agent].spawn or "", fuse([], now), None, {})
        self._peeking.begin(turn)
        for pending in turn.commands:
            if isinstance(pending.command, Explain | Peek):
                with turn.isolated(pending.command.agent):
                    self._serve(turn, pending, pending.command, records, panes)
                if pending.request.id not in turn.replies.keys() | turn.deferred.keys():
                    turn.reply(pending, turn.trouble, code="refused")
        turn.look_again_at(turn.now + timedelta(seconds=self._rhythm.next_look_s(now)))

    # --- looking ---

    def _look(self) -> Processes:
        """One look a turn, and only if somebody asks."""
        if self._processes is None:
            self._processes = Processes.look()
        return self._processes

    def _meet(self, turn: Turn, fleet: Fleet, records: Mapping[str, AgentRecord], panes: Mapping[str, Pane]) -> None:
        runs = {
            agent: (pane.spawn, _backend_of(fleet, agent, records.get(agent), pane)) for agent, pane in panes.items()
        }
        for agent in [name for name, known in self._subjects.items() if runs.get(name) != (known.spawn, known.backend)]:
            del self._subjects[agent]
        for agent, (spawn, name) in runs.items():
            if agent not in self._subjects and spawn and name:
                kind = fleet.backends[name].transcript or name
                subject = Subject(agent, spawn, name, kind, self._look, turn.now.timestamp())
                self._subjects[agent] = subject.recalled(turn.recall(f"{HOOKED}{agent}"))

    def _capture(self, panes: Mapping[str, Pane], now: float) -> None:
        """The screens on which something may have changed since they were last looked at, all in one go."""
        due = {
            panes[agent].pane_id: (subject, panes[agent])
            for agent, subject in self._subjects.items()
            if self._rhythm.is_due(panes[agent], subject.captured_at, subject.verdict, now)
        }
        for pane_id, screen in self._tmux.screens(list(due), styled=True).items():
            subject, pane = due[pane_id]
            subject.show(pane, screen, now)

    # --- judging ---

    def _judge(
        self, turn: Turn, fleet: Fleet, subject: Subject, pane: Pane, record: AgentRecord | None, now: float
    ) -> None:
        backend = fleet.backends[subject.backend]
        if subject.is_ending(pane, now):
            self._unclear.add(subject.agent)
            return
        verdict = subject.judge(backend, pane, record, now)
        self._rhythm.note(pane, verdict, now)
        if verdict.again_at is not None:
            turn.look_again_at(turn.now + timedelta(seconds=max(0.05, verdict.again_at - now)))
        if (record is None or record.spawn != subject.spawn) and 0 <= now - subject.met < RECORDED_WITHIN_S:
            self._unclear.add(subject.agent)

    def _tell(self, turn: Turn, fleet: Fleet, subject: Subject, record: AgentRecord | None) -> None:
        if subject.verdict is None:
            return
        verdict = self._carer.as_told(turn, subject.agent, subject.verdict)
        backend = fleet.backends[subject.backend]
        question = self._question(backend, subject, verdict) if verdict.status is Activity.NEEDS_APPROVAL else None
        tell(turn, subject.agent, subject.spawn, verdict, question, subject.hooked.subagents, record)

    def _question(self, backend: Backend, subject: Subject, verdict: Verdict) -> ReportedQuestion | None:
        winner = verdict.winner
        if winner is None:
            return None
        reading = read_screen(backend, subject.screen)
        asking = {
            each.evidence.source: each.evidence.at
            for each in verdict.heard
            if each.evidence.says is Activity.NEEDS_APPROVAL
        }
        return ReportedQuestion(
            since=winner.at,
            why=winner.why,
            hook_at=asking.get(EvidenceSource.HOOKS),
            dialog=reading.dialog_text,
            fingerprint=fingerprint(reading),
            shown_since=asking.get(EvidenceSource.SCREEN, 0.0),
        )

    # --- being asked ---

    def _serve(
        self,
        turn: Turn,
        pending: PendingCommand,
        command: Explain | Peek,
        records: Mapping[str, AgentRecord],
        panes: Mapping[str, Pane],
    ) -> None:
        fleet, agent = self._fleet_file.fleet, command.agent
        subject = self._subjects.get(agent)
        verdict = subject.verdict if subject is not None else None
        if subject is None or verdict is None:
            known = agent in records or agent in panes or agent in fleet.agents
            said = _why_not_watched(agent, records.get(agent), panes.get(agent), is_known=known)
            self._peeking.refuse(turn, pending, said, code="refused" if known else "unknown_agent")
            return
        if isinstance(command, Peek):
            self._peeking.serve(turn, fleet, pending, command, subject, records.get(agent))
            return
        plans = self._carer.plans(turn, self._fleet_file.fleet, subject)
        found: dict[str, Any] = explanation(turn, subject, self._carer.as_told(turn, agent, verdict), plans)
        turn.reply(pending, f"{agent} is {verdict.status.value}: {verdict.reason}", **found)


def _backend_of(fleet: Fleet, agent: str, record: AgentRecord | None, pane: Pane) -> str | None:
    """What runs in its session; None where nothing is known of that, or where it is no agent but a side service."""
    declared = fleet.agents.get(agent)
    known = record.backend if record is not None and record.spawn == pane.spawn else None
    name = known or (declared.backend if declared is not None else None)
    return name if name in fleet.backends else None  # which side services have none of


def _why_not_watched(agent: str, record: AgentRecord | None, pane: Pane | None, *, is_known: bool) -> str:
    if pane is not None:
        backend = record.backend if record is not None else "an unknown backend"
        return f"{agent} runs on {backend}, which is nothing that can be watched for what it is doing"
    if record is None:
        return (
            f"{agent} was not started yet" if is_known else f"there is no agent {agent!r}; `muster status` lists them"
        )
    if record.is_running:
        return f"{agent} does not run any more: its session is gone"
    return f"{agent} does not run: {record.status.value} since {record.since:%Y-%m-%d %H:%M:%S %Z}, {record.reason}"
