"""The monitor: observes every agent, reports what each is doing, and runs the policies and health checks."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import ClassVar

from registry import AgentRecord, RegistryFile
from registry.memory import RegistryReader
from services.monitor.evidence.hook_intake import HookIntake, HookOwners
from services.monitor.evidence.hooks import HOOKS
from services.monitor.explanation import explanation, plans
from services.monitor.health.check_runner import HealthChecks
from services.monitor.health.peek import PeekRequests
from services.monitor.health.query_runner import QueryRunner
from services.monitor.look_schedule import LookSchedule
from services.monitor.policies.memory import memory_of
from services.monitor.policies.runner import PolicyRunner
from services.monitor.policies.stall import as_reported
from services.monitor.reports import REPORTS, last_report, question_in, report, report_end
from services.monitor.subject import Subject
from services.monitor.verdict import Verdict, fuse
from shared.agents.hooks.spool import Spool
from shared.contract.commands import Explain, Peek
from shared.contract.envelope import Data
from shared.fleet import Fleet, FleetFile
from shared.messaging.journal import Journal
from shared.runtime.turn import PendingCommand, Turn
from shared.system.processes import Processes, ProcessesOnDemand
from shared.system.tmux import Pane, Tmux
from shared.system.tmux.server import socket_of

RECORD_WITHIN_S = 5.0
"""A report about a session without a record is lost, so a new session is given this long to be recorded first."""

Records = Mapping[str, AgentRecord]
Panes = Mapping[str, Pane]


class Monitor:
    name: ClassVar[str] = "monitor"

    def __init__(
        self,
        fleet_file: FleetFile,
        registry: RegistryFile,
        tmux: Tmux,
        journal: Journal,
        spool: Spool,
        queries: QueryRunner,
    ) -> None:
        self._fleet_file = fleet_file
        self._records = RegistryReader(registry, journal)
        self._tmux = tmux
        self._subjects: dict[str, Subject] = {}
        self._processes: Processes | None = None
        self._schedule = LookSchedule()
        self._hooks = HookIntake(spool)
        self.effects = self._hooks.effects
        self._policies = PolicyRunner()
        self._checks = HealthChecks(queries, self._policies.why_held)
        self._peeks = PeekRequests(queries)

    def states(self) -> Iterable[Data]:
        return ()

    def step(self, turn: Turn) -> None:
        self._fleet_file.refresh()
        fleet, now = self._fleet_file.fleet, turn.now.timestamp()
        self._processes = None
        records = self._records.read(turn)
        panes = self._tmux.agent_panes(fleet.stamp)
        self._update_subjects(turn, fleet, records, panes)
        for agent, subject in self._subjects.items():
            with turn.isolated(agent):
                subject.begin(fleet.backends[subject.backend], panes[agent], now, turn.clock)
        if turn.clock.has_jumped:
            panes = {**panes, **{agent: subject.pane for agent, subject in self._subjects.items()}}
        owners = HookOwners.of(panes, records, str(socket_of(fleet.declared.tmux.socket)))
        self._hooks.take(turn, owners, self._subjects)
        self._capture(panes, now)
        unclear = self._judge(turn, panes, records)
        clear = {agent: subject for agent, subject in self._subjects.items() if agent not in unclear}
        self._policies.run(turn, fleet, clear, panes, records)
        self._checks.begin(turn, fleet, panes)
        for agent, subject in clear.items():
            with turn.isolated(f"the health check of {agent}"):
                self._checks.check(turn, fleet, subject, panes[agent], records.get(agent))
            with turn.isolated(agent):
                self._report(turn, fleet, subject, records.get(agent))
        self._hooks.remember(turn, self._subjects, panes)
        self._report_unwatched(turn, records, panes)
        self._serve_all(turn, records, panes)
        turn.look_again_at(turn.now + timedelta(seconds=self._schedule.next_look_s(now, len(self._subjects))))

    # --- observing ---

    def _look(self) -> Processes:
        """The processes of this turn; read when they are first needed."""
        if self._processes is None:
            self._processes = ProcessesOnDemand()
        return self._processes

    def _update_subjects(self, turn: Turn, fleet: Fleet, records: Records, panes: Panes) -> None:
        """Watch new sessions, and forget those that are gone or run on another backend now."""
        runs = {
            agent: (pane.spawn, _backend_of(fleet, agent, records.get(agent), pane)) for agent, pane in panes.items()
        }
        for agent in [name for name, known in self._subjects.items() if runs.get(name) != (known.spawn, known.backend)]:
            del self._subjects[agent]
        for agent, (spawn, backend) in runs.items():
            if agent not in self._subjects and spawn and backend:
                kind = fleet.backends[backend].transcript or backend
                memory = turn.memory.find(HOOKS, agent)
                self._subjects[agent] = Subject(agent, spawn, backend, kind, self._look, turn.now.timestamp(), memory)

    def _capture(self, panes: Panes, now: float) -> None:
        """Capture the screens that may have changed since their last capture, in one call to tmux."""
        due = {
            panes[agent].pane_id: subject
            for agent, subject in self._subjects.items()
            if self._schedule.is_due(panes[agent], subject.screen.captured_at, subject.verdict, now)
        }
        for pane_id, screen in self._tmux.screens(list(due), styled=True).items():
            due[pane_id].capture(screen, now)

    def _judge(self, turn: Turn, panes: Panes, records: Records) -> set[str]:
        """Find out what each agent is doing.

        Gives the agents about which nothing is to be concluded yet: they are just ending, or not recorded yet.
        """
        now, unclear = turn.now.timestamp(), set[str]()
        for agent, subject in self._subjects.items():
            with turn.isolated(agent):
                if subject.is_ending(now):
                    unclear.add(agent)
                    continue
                record = records.get(agent)
                verdict = subject.judge(record, now)
                self._schedule.note(panes[agent], verdict, now)
                if verdict.again_at is not None:
                    turn.look_again_at(turn.now + timedelta(seconds=max(0.05, verdict.again_at - now)))
                is_recorded = record is not None and record.spawn == subject.spawn
                if not is_recorded and 0 <= now - subject.met_at < RECORD_WITHIN_S:
                    unclear.add(agent)
        return unclear

    # --- reporting ---

    def _report(self, turn: Turn, fleet: Fleet, subject: Subject, record: AgentRecord | None) -> None:
        if subject.verdict is None:
            return
        agent, backend = subject.agent, fleet.backends[subject.backend]
        verdict = _reported(turn, agent, subject.verdict)
        question = question_in(verdict, backend, subject.screen.text)
        report(turn, agent, subject.spawn, verdict, question, subject.hooks.subagents, record)

    def _report_unwatched(self, turn: Turn, records: Records, panes: Panes) -> None:
        """Report the end of agents that are gone, and `unknown` for agents whose backend is not known any more."""
        for agent in turn.memory.all(REPORTS):
            if agent not in panes:
                report_end(turn, agent, records.get(agent))
                continue
            spawn = panes[agent].spawn or ""
            if agent not in self._subjects and last_report(turn, agent, spawn) is not None:
                report(turn, agent, spawn, fuse([], turn.now.timestamp()))

    # --- commands ---

    def _serve_all(self, turn: Turn, records: Records, panes: Panes) -> None:
        self._peeks.begin(turn)
        for pending in turn.commands:
            if isinstance(pending.command, Explain | Peek):
                with turn.isolated(pending.command.agent):
                    self._serve(turn, pending, pending.command, records, panes)
                if pending.request.id not in turn.replies.keys() | turn.deferred.keys():
                    turn.reply(pending, turn.trouble, code="refused")

    def _serve(
        self, turn: Turn, pending: PendingCommand, command: Explain | Peek, records: Records, panes: Panes
    ) -> None:
        fleet, agent = self._fleet_file.fleet, command.agent
        subject = self._subjects.get(agent)
        verdict = subject.verdict if subject is not None else None
        if subject is None or verdict is None:
            known = agent in records or agent in panes or agent in fleet.agents
            said = _why_not_watched(agent, records.get(agent), panes.get(agent), is_known=known)
            self._peeks.refuse(turn, pending, said, code="refused" if known else "unknown_agent")
            return
        if isinstance(command, Peek):
            self._peeks.serve(turn, fleet, pending, command, subject, records.get(agent))
            return
        why_held, now = self._policies.why_held(turn, fleet, subject), turn.now.timestamp()
        planned = plans(memory_of(turn, agent), fleet.agents.get(agent), why_held, now, self._policies.zone)
        found = explanation(turn, subject, _reported(turn, agent, verdict), list(planned))
        turn.reply(pending, f"{agent} is {verdict.status.value}: {verdict.reason}", **found)


def _reported(turn: Turn, agent: str, verdict: Verdict) -> Verdict:
    return as_reported(memory_of(turn, agent).stall, verdict)


def _backend_of(fleet: Fleet, agent: str, record: AgentRecord | None, pane: Pane) -> str | None:
    """The backend that runs in its session; None where it is not known, as for a side service."""
    declared = fleet.agents.get(agent)
    known = record.backend if record is not None and record.spawn == pane.spawn else None
    name = known or (declared.backend if declared is not None else None)
    return name if name in fleet.backends else None


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
