"""Asks agents how their background work is, each on its interval, and carries out what the checks decide.

A check is about one session: when that ends, nobody waits for the answer any more.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from registry import AgentRecord
from services.monitor.health import checks
from services.monitor.health.checks import HEALTH, Health, health_of
from services.monitor.health.query import of_session, query_for, why_not
from services.monitor.health.query_runner import QueryRunner
from services.monitor.limits.accounts import Accounts
from services.monitor.policies.policy import AgentObservation, PolicyOutcome
from services.monitor.policies.runner import CARE, PolicyRunner
from services.monitor.subject import Subject
from shared.contract.events.activity import AgentFinished
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.fleet.fleet import account_of
from shared.fleet.policies import HealthPolicy
from shared.runtime.turn import Turn
from shared.system import files as private
from shared.system.tmux import Pane

Parked = Callable[[Subject], str]
"""Why an agent is left alone; empty where it is not."""


@dataclass
class HealthChecks:
    asking: QueryRunner
    _under_way: dict[str, str] = field(default_factory=dict)
    """The agents that are being asked, and the session of each."""

    def begin(self, turn: Turn, fleet: Fleet, panes: Mapping[str, Pane]) -> None:
        """End the checks of sessions that are gone, or that are not to be checked any more, and forget those."""
        for agent, spawn in list(self._under_way.items()):
            if agent not in panes or panes[agent].spawn != spawn or _policy(fleet, agent) is None:
                del self._under_way[agent]
                self.asking.cancel(_key(agent))
        for key in [key for key, kept in turn.memory.items() if key.startswith(HEALTH) and kept]:
            if key.removeprefix(HEALTH) not in panes:
                turn.remember(key, None)

    def visit(
        self, turn: Turn, fleet: Fleet, subject: Subject, pane: Pane, record: AgentRecord | None, parked: Parked
    ) -> None:
        """Ask an agent, if it is time, or do what follows from its answer, if that came."""
        agent, policy = subject.agent, _policy(fleet, subject.agent)
        if policy is None or subject.verdict is None:
            return
        health = health_of(turn, agent, subject.spawn)
        if agent in self._under_way:
            answered = self.asking.take(_key(agent))
            if answered is not None:
                del self._under_way[agent]
                file = fleet.home / "jobs" / f"{agent}-{subject.spawn}.txt"
                sight = _sight(turn, fleet, subject, parked)
                self._carry_out(turn, agent, *checks.conclude(health, sight, policy, answered, str(file)), file)
            return
        now = turn.now.timestamp()
        due = checks.due_at(health, policy, float(pane.created), now)
        if now < due:
            turn.look_again_at(datetime.fromtimestamp(due, UTC))
            return
        known = of_session(record, subject.spawn)
        if known is None or why_not(fleet, agent, subject.backend, known):
            return
        if checks.may_be_asked(_sight(turn, fleet, subject, parked)):
            self._ask(turn, fleet, subject, known, health)

    def _ask(self, turn: Turn, fleet: Fleet, subject: Subject, record: AgentRecord, health: Health) -> None:
        agent = subject.agent
        try:
            query = query_for(fleet, agent, subject.backend, record, os.environ)
        except MusterError as error:
            troubled = replace(health, asked_at=turn.now.timestamp(), trouble=str(error))
            turn.remember(f"{HEALTH}{agent}", troubled.document())
            return
        self.asking.ask(_key(agent), query)
        self._under_way[agent] = subject.spawn

    def _carry_out(
        self, turn: Turn, agent: str, outcome: PolicyOutcome[Health], result: str | None, file: Path
    ) -> None:
        is_lost = result is not None and not _kept(turn, file, result)
        for command, why in outcome.asks:
            turn.send_command(command, why)
        for event in outcome.tells:
            lost = is_lost and isinstance(event, AgentFinished)
            turn.emit(event.model_copy(update={"file": None}) if lost else event)
        turn.remember(f"{HEALTH}{agent}", outcome.after.document())


def left_alone(turn: Turn, fleet: Fleet, carer: PolicyRunner) -> Parked:
    """As the policies of limits and logins have it: a question would use the same account."""

    @cache
    def accounts() -> Accounts:
        agents = [key.removeprefix(CARE) for key in {**turn.memory, **turn.remembered} if key.startswith(CARE)]
        found = {agent: carer.care_of(turn, agent).limits.held for agent in agents}
        return Accounts(fleet, {agent: held for agent, held in found.items() if held is not None})

    def why(subject: Subject) -> str:
        if carer.care_of(turn, subject.agent).troubled.is_held:
            return "a person has to see to its login or its credit first"
        account = account_of(fleet, subject.agent, subject.backend)
        return accounts().holding(subject.agent, account, turn.now.timestamp())

    return why


def _key(agent: str) -> str:
    return f"check:{agent}"


def _policy(fleet: Fleet, agent: str) -> HealthPolicy | None:
    """None where it is not checked."""
    declared = fleet.agents.get(agent)
    return declared.watch.health if declared is not None and declared.watch.health.every_s else None


def _sight(turn: Turn, fleet: Fleet, subject: Subject, parked: Parked) -> AgentObservation:
    verdict, now = subject.verdict, turn.now.timestamp()
    assert verdict is not None  # noqa: S101 - who has none is not visited
    return AgentObservation(
        agent=subject.agent,
        spawn=subject.spawn,
        status=verdict.status,
        since=min(verdict.winner.at if verdict.winner is not None else now, now),
        reason=verdict.reason,
        now=now,
        declared=fleet.agents.get(subject.agent),
        parked=parked(subject),
    )


def _kept(turn: Turn, file: Path, result: str) -> bool:
    """Keep a result in its file. Where that can't be, its beginning is told all the same."""
    try:
        private.make_directory(file.parent)
        private.write(file, result)
    except (OSError, MusterError) as error:
        turn.degrade(f"the result of an agent can't be kept in {file}: {error}")
        return False
    return True
