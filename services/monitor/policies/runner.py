"""Runs the policies: observes each agent, lets every policy decide, and carries out the outcomes.

An agent is decided about when something about it changed, or when something is due. Commands, events and memory of a
turn are one transaction, so each command is sent once whatever dies in between.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeVar

from registry import AgentRecord
from services.monitor.limits.account_limits import AccountLimits
from services.monitor.limits.claims import claim_in
from services.monitor.limits.zones import local_zone
from services.monitor.policies import silence, stall, trouble, wake
from services.monitor.policies.memory import NOTHING, POLICIES, PolicyMemory, memory_of
from services.monitor.policies.policy import IDLE_SETTLES_S, AgentObservation, PolicyOutcome, observe
from services.monitor.subject import Subject
from services.monitor.verdict import Verdict
from shared.agents.last_words import promised
from shared.contract.commands import Send
from shared.contract.events.activity import LimitLifted
from shared.contract.events.drift import WrongBackend
from shared.contract.states import Activity, Desired, Trouble
from shared.fleet import Fleet
from shared.fleet.fleet import account_of
from shared.fleet.policies import WatchPolicy
from shared.runtime.turn import Turn
from shared.system.tmux import Pane

S = TypeVar("S")

NEVER = float("inf")
WRONG_PROGRAM = WrongBackend.name()
"""The drift of an agent in whose pane another program runs."""


@dataclass
class LastDecision:
    """What the last decision about one agent was based on, and when the next is due at the latest."""

    basis: tuple[object, ...] = ()
    due: float = -NEVER

    def still_holds(self, basis: tuple[object, ...], now: float) -> bool:
        same = len(basis) == len(self.basis) and all(a is b for a, b in zip(basis, self.basis, strict=True))
        return same and now < self.due


class PolicyRunner:
    def __init__(self) -> None:
        self.zone = local_zone(os.environ.get("TZ"))
        """The time zone of schedules."""
        self._accounts = AccountLimits()
        self._last: dict[str, LastDecision] = {}

    def run(
        self,
        turn: Turn,
        fleet: Fleet,
        subjects: Mapping[str, Subject],
        panes: Mapping[str, Pane],
        records: Mapping[str, AgentRecord],
    ) -> None:
        """Do what is due for every agent."""
        # After the clock was set, all is decided anew: what is due, is so at another time.
        self._last = {agent: last for agent, last in self._last.items() if agent in subjects and not turn.jumped_s}
        self._accounts.begin(turn, fleet)
        for agent, subject in subjects.items():
            if subject.verdict is not None:
                with turn.isolated(f"a warning of {agent}"):
                    self._accounts.warn(turn, subject, account_of(fleet, agent, subject.backend))
                with turn.isolated(agent):
                    self._run_for(turn, fleet, subject, subject.verdict, panes[agent], records.get(agent))
        self._forget(turn, fleet, subjects, records)
        self._accounts.park(turn)

    def why_held(self, turn: Turn, fleet: Fleet, subject: Subject) -> str:
        """Why a usage limit holds an agent; empty where none does. After `run`."""
        account = account_of(fleet, subject.agent, subject.backend)
        return self._accounts.why_held(subject.agent, account, turn.now.timestamp())

    # --- one agent ---

    def _run_for(
        self, turn: Turn, fleet: Fleet, subject: Subject, verdict: Verdict, pane: Pane, record: AgentRecord | None
    ) -> None:
        agent, now = subject.agent, turn.now.timestamp()
        account = account_of(fleet, agent, subject.backend)
        memory = memory_of(turn, agent)
        record = record if record is not None and record.spawn == subject.spawn else None
        replies = {each: reply for each in memory.open_commands if (reply := turn.reply_for(each)) is not None}
        left_alone = self._accounts.why_held(agent, account, now)
        last = self._last.setdefault(agent, LastDecision())
        # The basis is compared by identity; interned texts are the same object for as long as they say the same.
        basis = (verdict, record, fleet, sys.intern(left_alone), sys.intern(" ".join(replies)))
        if not last.still_holds((*basis, memory), now):
            observed = self._observe(fleet, subject, verdict, pane, record, now)
            observed = replace(observed, account=account, left_alone=left_alone, replies=replies)
            after, last.due = self._decide(turn, memory, observed)
            if after != memory:
                turn.memory.put(POLICIES, after if after != NOTHING else None, agent)
                self._accounts.note_hold(agent, after.limits.hold)
            last.basis = (*basis, memory_of(turn, agent))
        if last.due < NEVER:
            turn.look_again_at(datetime.fromtimestamp(last.due, UTC))

    def _observe(
        self, fleet: Fleet, subject: Subject, verdict: Verdict, pane: Pane, record: AgentRecord | None, now: float
    ) -> AgentObservation:
        observed = observe(fleet, subject, verdict, now)
        evidence, winner, status = [each.evidence for each in verdict.weighed], verdict.winner, verdict.status
        failed = winner.trouble if winner is not None and status is Activity.FAILED else None
        failed = failed or next((each.trouble for each in evidence if each.says is status and each.trouble), None)
        observed = replace(
            observed,
            is_weak=winner is not None and winner.weak,
            conversation=record.conversation if record is not None else None,
            trouble=failed,
            wrote_at=float(pane.activity),
            paints=fleet.backends[subject.backend].screen.box is not None,
        )
        if record is not None and WRONG_PROGRAM in record.drifts:
            reason = "something else than its program runs in its pane"
            return replace(observed, status=Activity.FAILED, trouble=Trouble.GONE, reason=reason)
        match status:
            case Activity.LIMITED:
                return replace(observed, claim=claim_in(evidence, subject.zone))
            case Activity.WAITING:
                return replace(observed, promise=promised(evidence, subject.zone))
            case _:
                return observed

    def _decide(self, turn: Turn, memory: PolicyMemory, observed: AgentObservation) -> tuple[PolicyMemory, float]:
        """Let the policies decide one after the other; gives what to remember, and when to decide again."""
        declared, accounts = observed.declared, self._accounts
        policy = declared.watch if declared is not None else WatchPolicy()
        outcomes = _Outcomes(turn, accounts, observed)
        limits = outcomes.carry_out(accounts.decide(turn, memory.limits, observed, policy.limits))
        if limits.hold is not None:
            outcomes.leave_alone(f"{limits.hold.named} is reached")
        restartable = accounts.without_own_limit(outcomes.observed, limits.hold)
        troubled = outcomes.carry_out(trouble.decide(memory.trouble, restartable, policy))
        if troubled.is_held:
            outcomes.leave_alone(observed.reason)
        next_prompt_at = accounts.next_prompt_at(turn, observed.account, observed.now, policy.limits.gap_s)
        if next_prompt_at is not None:
            outcomes.leave_alone("another agent of its account has just been asked to go on")
            outcomes.due.append(next_prompt_at)
        silent = outcomes.carry_out(silence.decide(memory.silence, outcomes.observed, policy.unresponsive))
        stalled = outcomes.carry_out(stall.decide(memory.stall, outcomes.observed, policy.stall))
        schedule = declared.wake if declared is not None else None
        woken = outcomes.carry_out(wake.decide(memory.wake, outcomes.observed, schedule, self.zone))
        settled_at = observed.since + IDLE_SETTLES_S
        if settled_at > observed.now:
            outcomes.due.append(settled_at)
        return PolicyMemory(limits, troubled, silent, stalled, woken), min(outcomes.due, default=NEVER)

    # --- agents that are gone ---

    def _forget(
        self, turn: Turn, fleet: Fleet, subjects: Mapping[str, Subject], records: Mapping[str, AgentRecord]
    ) -> None:
        """Forget agents that are gone. A limit is remembered until it is over, for it holds the whole account."""
        now = turn.now.timestamp()
        for agent, memory in turn.memory.all(POLICIES).items():
            record, hold = records.get(agent), memory.limits.hold
            returns = agent in fleet.agents and (record is None or record.desired is Desired.RUNNING)
            if agent in subjects or returns or (hold is not None and now < hold.resume_at):
                continue
            turn.memory.put(POLICIES, None, agent)
            self._accounts.note_hold(agent, None)
            if hold is not None:
                why = f"{hold.named} is over, and the agent is not there any more"
                turn.emit(LimitLifted(agent=agent, account=hold.account, scope=hold.scope, how="left", reason=why))


@dataclass
class _Outcomes:
    """Carries out the outcomes for one agent. Each policy observes what those before it have done."""

    turn: Turn
    accounts: AccountLimits
    observed: AgentObservation

    def __post_init__(self) -> None:
        self.due: list[float] = []

    def carry_out(self, outcome: PolicyOutcome[S]) -> S:
        for command, why in outcome.commands:
            self.turn.send_command(command, why)
            if isinstance(command, Send):
                self.accounts.note_text(self.turn, self.observed.account, self.observed.now)
            self.leave_alone("something else is asked of it just now")
        for event in outcome.events:
            self.turn.emit(event)
        if outcome.look_at is not None:
            self.due.append(outcome.look_at)
        return outcome.memory

    def leave_alone(self, why: str) -> None:
        self.observed = replace(self.observed, left_alone=self.observed.left_alone or why)
