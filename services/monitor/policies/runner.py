"""Carries out what the policies decide: looks at each agent when something changed or is due, remembers, asks, tells.

All of a turn is one transaction, so that what was asked is asked once, whatever dies in between.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, TypeVar

from pydantic import ValidationError

from registry import AgentRecord
from services.monitor.limits import accounts as nearness
from services.monitor.limits import decision as holding
from services.monitor.limits.accounts import AccountPark as Parking
from services.monitor.limits.accounts import Accounts
from services.monitor.limits.claims import claim_in
from services.monitor.limits.hold import LimitHold
from services.monitor.limits.zones import local_zone
from services.monitor.policies import idleness as silence
from services.monitor.policies import stall, trouble, wake
from services.monitor.policies.memory import NOTHING, PolicyMemory
from services.monitor.policies.plans import planned
from services.monitor.policies.policy import SETTLES_S, AgentObservation, PolicyOutcome
from services.monitor.subject import Subject
from services.monitor.verdict import Verdict
from shared.agents.last_words import promised
from shared.contract.commands import Park, Reply, Send, Unpark
from shared.contract.events.activity import LimitLifted, LimitNear
from shared.contract.states import Activity, Desired, Trouble
from shared.fleet import Fleet
from shared.fleet.fleet import account_of
from shared.fleet.policies import WatchPolicy
from shared.messaging.journal import Journal
from shared.runtime.turn import Turn
from shared.system.tmux import Pane

S = TypeVar("S")

CARE = "care:"
PARKS, RESUMED, NEAR = "parks", "resumed", "near"
"""Remembered: what the spawner was asked not to start, when each account's agents were last brought to go on, and
when it was told that a limit is near."""
KNOWS_FOR_S = 3600.0
SPAWNER = "spawner"
WRONG_PROGRAM = "wrong_backend"
"""The drift that says that something else than the agent's program runs in its pane."""


@dataclass
class LastDecision:
    """One agent, and what was last made of it."""

    looked: tuple[object, ...] = ()
    """What it was decided from: where all of that is the same, it is not decided again before something is due."""
    due: float = float("-inf")

    def is_settled(self, looked: tuple[object, ...], now: float) -> bool:
        same = len(looked) == len(self.looked) and all(a is b for a, b in zip(looked, self.looked, strict=True))
        return same and now < self.due


@dataclass
class PolicyRunner:
    journal: Journal
    zone: tzinfo = field(default_factory=lambda: local_zone(os.environ.get("TZ")))
    """In which schedules are meant."""
    _watched: dict[str, LastDecision] = field(default_factory=dict)
    _read: dict[str, tuple[object, PolicyMemory]] = field(default_factory=dict)
    _warned: dict[str, str] = field(default_factory=dict)
    """What each screen last warned of."""
    _accounts: Accounts = field(init=False)

    def tend(
        self,
        turn: Turn,
        fleet: Fleet,
        subjects: Mapping[str, Subject],
        panes: Mapping[str, Pane],
        records: Mapping[str, AgentRecord],
    ) -> None:
        """Do for every agent what is due."""
        for agent in [name for name in self._watched if name not in subjects]:
            del self._watched[agent]
        self._accounts = Accounts(fleet, self._held(turn))
        for agent, subject in subjects.items():
            if subject.verdict is not None:
                with turn.isolated(agent):
                    self._tend(turn, fleet, subject, subject.verdict, panes[agent], records.get(agent))
        self._forget(turn, fleet, subjects, records)
        self._park(turn)

    def care_of(self, turn: Turn, agent: str) -> PolicyMemory:
        kept = turn.recall(f"{CARE}{agent}")
        if kept is None:
            return NOTHING
        known = self._read.get(agent)
        if known is None or known[0] is not kept:
            known = self._read[agent] = (kept, PolicyMemory.read(kept))
        return known[1]

    def as_told(self, turn: Turn, agent: str, verdict: Verdict) -> Verdict:
        """What an agent is told to be doing: one that waits too long has stalled."""
        known, winner = self.care_of(turn, agent).stall, verdict.winner
        if not known.stalled or verdict.status is not Activity.WAITING or winner is None:
            return verdict
        why = f"{winner.why}; idle since {_time(known.idle_since):%Y-%m-%d %H:%M:%S %Z}"
        return replace(verdict, status=Activity.STALLED, winner=replace(winner, at=known.acted_at, why=why))

    def plans(self, turn: Turn, fleet: Fleet, subject: Subject) -> list[str]:
        """What is in hand for an agent, and when, for people."""
        now = turn.now.timestamp()
        declared = fleet.agents.get(subject.agent)
        account = account_of(fleet, subject.agent, subject.backend)
        parked = Accounts(fleet, self._held(turn)).holding(subject.agent, account, now)
        return list(planned(self.care_of(turn, subject.agent), declared, parked, now, self.zone))

    # --- one agent ---

    def _tend(
        self, turn: Turn, fleet: Fleet, subject: Subject, verdict: Verdict, pane: Pane, record: AgentRecord | None
    ) -> None:
        agent, now = subject.agent, turn.now.timestamp()
        watched = self._watched.setdefault(agent, LastDecision())
        care = self.care_of(turn, agent)
        account = account_of(fleet, agent, subject.backend)
        # The texts are the same objects for as long as they say the same.
        parked = sys.intern(self._accounts.holding(agent, account, now))
        answers = self._answers(care)
        answered = sys.intern(" ".join(answers))
        record = record if record is not None and record.spawn == subject.spawn else None
        self._warn(turn, subject, account, now)
        if watched.is_settled((verdict, record, fleet, parked, answered, care), now):
            if watched.due < float("inf"):
                turn.look_again_at(_time(watched.due))
            return
        sight = self._sight(fleet, subject, verdict, pane, record, now)
        sight = replace(sight, account=account, parked=parked, answers=answers)
        policy = sight.declared.watch if sight.declared is not None else WatchPolicy()
        after, due = self._decide(turn, care, sight, policy)
        if after != care:
            turn.remember(f"{CARE}{agent}", after.document())
            self._note_held(agent, after)
        settles = sight.since + SETTLES_S
        watched.due = min([*due, *([settles] if settles > now else [])], default=float("inf"))
        watched.looked = (verdict, record, fleet, parked, answered, self.care_of(turn, agent))
        if watched.due < float("inf"):
            turn.look_again_at(_time(watched.due))

    def _warn(self, turn: Turn, subject: Subject, account: str, now: float) -> None:
        """Tell that a limit is near, where the agent's screen has begun to say so."""
        if subject.warning == self._warned.get(subject.agent, ""):
            return
        self._warned[subject.agent] = subject.warning
        told = nearness.news(turn.recall(NEAR) or {}, account, subject.warning, now) if subject.warning else None
        if told is not None:
            turn.remember(NEAR, told)
            near = LimitNear(agent=subject.agent, spawn=subject.spawn, account=account, reason=subject.warning)
            turn.emit(near)

    def _note_held(self, agent: str, after: PolicyMemory) -> None:
        """What one agent tells of its limit holds for the next ones of the same turn."""
        others = {name: held for name, held in self._accounts.held.items() if name != agent}
        held = after.limits.held
        self._accounts = replace(self._accounts, held={**others, agent: held} if held is not None else others)

    def _decide(
        self, turn: Turn, care: PolicyMemory, sight: AgentObservation, policy: WatchPolicy
    ) -> tuple[PolicyMemory, list[float]]:
        due: list[float] = []

        def take(outcome: PolicyOutcome[S]) -> S:
            nonlocal sight
            for command, why in outcome.asks:
                turn.send_command(command, why)
                if isinstance(command, Send) and sight.account in (turn.recall(RESUMED) or {}):
                    self._note_asked(turn, sight.account, sight.now)
                sight = replace(sight, parked=sight.parked or "something else is asked of it just now")
            for event in outcome.tells:
                turn.emit(event)
            if outcome.look_at is not None:
                due.append(outcome.look_at)
            return outcome.after

        limits = take(self._limits(turn, care, sight, policy))
        if limits.held is not None:
            sight = replace(sight, parked=sight.parked or f"{limits.held.named} is reached")
        troubled = take(trouble.decide(care.troubled, self._healable(sight, limits), policy))
        if troubled.is_held:
            sight = replace(sight, parked=sight.parked or sight.reason)
        may_at = (turn.recall(RESUMED) or {}).get(sight.account, float("-inf")) + policy.limits.gap_s
        if sight.now < may_at <= sight.now + policy.limits.gap_s:
            # After a limit, all of an account's agents go on one after the other, those that were only idle too.
            sight = replace(sight, parked=sight.parked or "another agent of its account has just been asked to go on")
            due.append(may_at)
        quiet = take(silence.decide(care.silence, sight, policy.unresponsive))
        stalled = take(stall.decide(care.stall, sight, policy.stall))
        schedule = sight.declared.wake if sight.declared is not None else None
        waking = take(wake.decide(care.waking, sight, schedule, self.zone))
        return PolicyMemory(limits, troubled, quiet, stalled, waking), due

    def _healable(self, sight: AgentObservation, limits: holding.LimitMemory) -> AgentObservation:
        """Its own limit keeps it from being restarted until its time only: it may have lost its program meanwhile."""
        held = limits.held
        if held is None or sight.now < held.resume_at or held.is_under_way(sight.now):
            return sight
        return replace(sight, parked=self._accounts.shared(sight.agent, sight.account, sight.now))

    def _limits(
        self, turn: Turn, care: PolicyMemory, sight: AgentObservation, policy: WatchPolicy
    ) -> PolicyOutcome[holding.LimitMemory]:
        held, accounts = care.limits.held, self._accounts
        if held is None:
            outcome = holding.decide(care.limits, sight, policy.limits)
            if outcome.after.held is None:
                return outcome
            siblings = replace(accounts, held={sight.agent: outcome.after.held}).concerned(sight.agent)
            return holding.decide(care.limits, replace(sight, siblings=siblings), policy.limits)
        last = (turn.recall(RESUMED) or {}).get(held.account, 0.0)
        last = last if last <= sight.now else 0.0  # the clock was set back
        may = accounts.may_resume_at(sight.agent, sight.now, last, policy.limits.gap_s)
        siblings = accounts.concerned(sight.agent)
        outcome = holding.decide(care.limits, replace(sight, siblings=siblings), policy.limits, may)
        if outcome.asks:
            self._note_asked(turn, held.account, sight.now)
        return outcome

    def _note_asked(self, turn: Turn, account: str, now: float) -> None:
        recent = {name: at for name, at in (turn.recall(RESUMED) or {}).items() if 0 <= now - at < KNOWS_FOR_S}
        turn.remember(RESUMED, {**recent, account: now})

    def _sight(
        self,
        fleet: Fleet,
        subject: Subject,
        verdict: Verdict,
        pane: Pane,
        record: AgentRecord | None,
        now: float,
    ) -> AgentObservation:
        heard = [each.evidence for each in verdict.heard]
        winner, status = verdict.winner, verdict.status
        failed = winner.trouble if winner is not None and status is Activity.FAILED else None
        failed = failed or next((each.trouble for each in heard if each.says is status and each.trouble), None)
        reason = verdict.reason
        if record is not None and WRONG_PROGRAM in record.drifts:
            status, failed, reason = Activity.FAILED, Trouble.GONE, "something else than its program runs in its pane"
        is_limited = status is Activity.LIMITED
        return AgentObservation(
            agent=subject.agent,
            spawn=subject.spawn,
            status=status,
            since=min(winner.at if winner is not None else now, now),
            reason=reason,
            now=now,
            declared=fleet.agents.get(subject.agent),
            conversation=record.conversation if record is not None else None,
            claim=claim_in(heard, subject.zone) if is_limited else None,
            is_hint=winner is not None and winner.weak,
            trouble=failed,
            promise=promised(heard, subject.zone) if status is Activity.WAITING else None,
            wrote_at=float(pane.activity),
            draws=fleet.backends[subject.backend].screen.box is not None,
        )

    def _answers(self, care: PolicyMemory) -> dict[str, Reply]:
        """What became of what was asked; what can't be read counts as refused."""
        found: dict[str, Reply] = {}
        for errand in care.pending:
            answer = self.journal.requests.answer_to(errand, SPAWNER)
            if answer is None:
                continue
            try:
                found[errand] = Reply.model_validate_json(answer)
            except ValidationError:
                said = "the answer can't be read"
                found[errand] = Reply(id=errand, verb="send", ok=False, said=said, by=SPAWNER, time=datetime.now(UTC))
        return found

    # --- all agents ---

    def _held(self, turn: Turn) -> dict[str, LimitHold]:
        agents = [key.removeprefix(CARE) for key in turn.memory if key.startswith(CARE)]
        found = {agent: self.care_of(turn, agent).limits.held for agent in agents}
        return {agent: held for agent, held in found.items() if held is not None}

    def _forget(
        self, turn: Turn, fleet: Fleet, subjects: Mapping[str, Subject], records: Mapping[str, AgentRecord]
    ) -> None:
        """Keep nothing of agents that are gone; a limit holds the account of one that may come back."""
        now = turn.now.timestamp()
        for key in [key for key, kept in turn.memory.items() if key.startswith(CARE) and kept]:
            agent = key.removeprefix(CARE)
            if agent in subjects or turn.recall(key) is None:
                continue
            record, care = records.get(agent), self.care_of(turn, agent)
            returns = agent in fleet.agents and (record is None or record.desired is Desired.RUNNING)
            held = care.limits.held
            if not returns and (held is None or now >= held.resume_at):
                turn.remember(key, None)
                self._note_held(agent, NOTHING)
                if held is not None:
                    why = f"{held.named} is over, and the agent is not there any more"
                    turn.emit(LimitLifted(agent=agent, account=held.account, scope=held.scope, how="left", reason=why))

    def _park(self, turn: Turn) -> None:
        """Have the spawner start nothing on accounts that are limited, and again when they are not."""
        asked: dict[str, Any] = turn.recall(PARKS) or {}
        wanted = {each.key: each for each in self._accounts.parks(turn.now.timestamp())}
        changed = {key: each for key, each in wanted.items() if asked.get(key, {}).get("until") != each.until}
        gone = [kept for key, kept in asked.items() if key not in wanted]
        for parking in changed.values():
            turn.send_command(_park(parking), parking.reason)
        for kept in gone:
            over = Unpark(account=kept["account"], models=kept["models"], expires=turn.now + timedelta(days=1))
            turn.send_command(over, "its limit is over")
        if changed or gone:
            turn.remember(PARKS, {key: _document(each) for key, each in wanted.items()} or None)


def _park(parking: Parking) -> Park:
    models = list(parking.models) if parking.models is not None else None
    until = _time(parking.until)
    return Park(account=parking.account, until=until, models=models, reason=parking.reason[:500], expires=until)


def _document(parking: Parking) -> dict[str, Any]:
    models = list(parking.models) if parking.models is not None else None
    return {"account": parking.account, "models": models, "until": parking.until}


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
