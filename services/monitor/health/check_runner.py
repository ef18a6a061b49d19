"""Asks agents how their background work is, each on its interval, and carries out what the checks decide.

A check is about one session. When the session ends, the question is cancelled.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from registry import AgentRecord
from services.monitor.health import checks
from services.monitor.health.checks import HEALTH, Health, health_of
from services.monitor.health.query import of_session, query_for, why_not
from services.monitor.health.query_runner import QueryRunner
from services.monitor.policies.memory import memory_of
from services.monitor.policies.policy import AgentObservation, PolicyOutcome, observe
from services.monitor.subject import Subject
from services.monitor.verdict import Verdict
from shared.contract.events.activity import AgentFinished
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.fleet.policies import HealthPolicy
from shared.runtime.turn import Turn
from shared.system import files as private
from shared.system.tmux import Pane

WhyHeld = Callable[[Turn, Fleet, Subject], str]
"""Why a usage limit holds an agent; empty where none does."""


class HealthChecks:
    def __init__(self, queries: QueryRunner, why_held: WhyHeld) -> None:
        self._queries, self._why_held = queries, why_held
        self._under_way: dict[str, str] = {}
        """The agents that are being asked, with the spawn id of each."""

    def begin(self, turn: Turn, fleet: Fleet, panes: Mapping[str, Pane]) -> None:
        """Cancel the questions to sessions that are gone or not checked any more, and forget agents that are gone."""
        for agent, spawn in list(self._under_way.items()):
            if agent not in panes or panes[agent].spawn != spawn or _policy(fleet, agent) is None:
                del self._under_way[agent]
                self._queries.cancel(_key(agent))
        for agent in turn.memory.all(HEALTH).keys() - panes.keys():
            turn.memory.put(HEALTH, None, agent)

    def check(self, turn: Turn, fleet: Fleet, subject: Subject, pane: Pane, record: AgentRecord | None) -> None:
        """Ask an agent if it is time, or carry out what follows from its answer."""
        agent, policy, verdict = subject.agent, _policy(fleet, subject.agent), subject.verdict
        if policy is None or verdict is None:
            return
        health = health_of(turn, agent, subject.spawn)
        if agent in self._under_way:
            answered = self._queries.take(_key(agent))
            if answered is not None:
                del self._under_way[agent]
                file = fleet.home / "jobs" / f"{agent}-{subject.spawn}.txt"
                observed = self._observe(turn, fleet, subject, verdict)
                self._carry_out(turn, agent, *checks.conclude(health, observed, policy, answered, str(file)), file)
            return
        now = turn.now.timestamp()
        due = checks.due_at(health, policy, float(pane.created))
        if now < due:
            turn.look_again_at(datetime.fromtimestamp(due, UTC))
            return
        own = of_session(record, subject.spawn)
        if own is None or why_not(fleet, agent, subject.backend, own):
            return
        if checks.may_be_asked(self._observe(turn, fleet, subject, verdict)):
            self._ask(turn, fleet, subject, own, health)

    def _observe(self, turn: Turn, fleet: Fleet, subject: Subject, verdict: Verdict) -> AgentObservation:
        """A held agent is left alone here too: a question would use the same account."""
        why = self._why_held(turn, fleet, subject)
        if memory_of(turn, subject.agent).trouble.is_held:
            why = "a person has to see to its login or its credit first"
        return replace(observe(fleet, subject, verdict, turn.now.timestamp()), left_alone=why)

    def _ask(self, turn: Turn, fleet: Fleet, subject: Subject, record: AgentRecord, health: Health) -> None:
        agent = subject.agent
        try:
            query = query_for(fleet, agent, subject.backend, record, os.environ)
        except MusterError as error:
            failed = replace(health, asked_at=turn.now.timestamp(), trouble=str(error))
            turn.memory.put(HEALTH, failed, agent)
            return
        self._queries.ask(_key(agent), query)
        self._under_way[agent] = subject.spawn

    def _carry_out(
        self, turn: Turn, agent: str, outcome: PolicyOutcome[Health], result: str | None, file: Path
    ) -> None:
        is_lost = result is not None and not _written(turn, file, result)
        for command, why in outcome.commands:
            turn.send_command(command, why)
        for event in outcome.events:
            lost = is_lost and isinstance(event, AgentFinished)
            turn.emit(event.model_copy(update={"file": None}) if lost else event)
        turn.memory.put(HEALTH, outcome.memory, agent)


def _key(agent: str) -> str:
    return f"check:{agent}"


def _policy(fleet: Fleet, agent: str) -> HealthPolicy | None:
    """None for an agent that is not checked."""
    declared = fleet.agents.get(agent)
    return declared.watch.health if declared is not None and declared.watch.health.every_s else None


def _written(turn: Turn, file: Path, result: str) -> bool:
    """Write a result to its file. If that fails, the event still has its beginning."""
    try:
        private.make_directory(file.parent)
        private.write(file, result)
    except (OSError, MusterError) as error:
        turn.degrade(f"the result of an agent can't be kept in {file}: {error}")
        return False
    return True
