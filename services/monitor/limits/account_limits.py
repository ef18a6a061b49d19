"""Carries out what concerns a whole account: resumes its agents one after the other, parks it, warns of a near limit.

The policy runner uses it for each agent of a turn. What one agent's limit means for the others is in `accounts.py`.
"""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from services.monitor.limits import decision
from services.monitor.limits.accounts import AccountPark, Accounts
from services.monitor.limits.decision import LimitMemory
from services.monitor.limits.hold import LimitHold
from services.monitor.policies.memory import holds
from services.monitor.policies.policy import AgentObservation, PolicyOutcome
from services.monitor.subject import Subject
from shared.contract.commands import Park, Unpark
from shared.contract.envelope import Event
from shared.contract.events.activity import LimitHit, LimitNear
from shared.fleet import Fleet
from shared.fleet.policies import LimitPolicy
from shared.runtime.memory import MemoryTable
from shared.runtime.turn import Turn

PARKS = MemoryTable("park:", AccountPark)
"""What the spawner was asked not to start, by the park's key."""
PROMPTS = MemoryTable("prompt:", float, is_moment=True)
"""When an agent of each account was last asked to go on after a limit."""
PROMPT_REMEMBERED_S = 3600.0
WARNINGS = MemoryTable("warning:", float, is_moment=True)
"""When each warning was last told, by its account and its words without numbers."""
WARN_AGAIN_S = 1800.0
NUMBERS = re.compile(r"\d+")
UNPARK_EXPIRES = timedelta(days=1)


class AccountLimits:
    def __init__(self) -> None:
        self._accounts: Accounts
        self._warnings: dict[str, str] = {}
        """What each agent's screen last warned of."""

    def begin(self, turn: Turn, fleet: Fleet) -> None:
        """Begin a turn. To be called before all else."""
        self._accounts = Accounts(fleet, holds(turn))

    def why_held(self, agent: str, account: str, now: float) -> str:
        """Why a limit holds an agent; empty where none does."""
        return self._accounts.why_held(agent, account, now)

    def decide(
        self, turn: Turn, memory: LimitMemory, observed: AgentObservation, policy: LimitPolicy
    ) -> PolicyOutcome[LimitMemory]:
        """What is done about an agent's limit, in its turn among the agents of its account."""
        agent, hold, may_resume_at = observed.agent, memory.hold, 0.0
        if hold is not None:
            last = turn.memory.find(PROMPTS, hold.account) or 0.0
            may_resume_at = self._accounts.may_resume_at(agent, observed.now, last, policy.gap_s)
        outcome = decision.decide(memory, observed, policy, may_resume_at)
        if hold is not None and outcome.commands:
            self._note_prompt(turn, hold.account, observed.now)
        hold = hold or outcome.memory.hold
        if hold is None:
            return outcome
        concerned = list(replace(self._accounts, holds={agent: hold}).concerned(agent))
        return replace(outcome, events=tuple(_with_concerned(each, concerned) for each in outcome.events))

    def without_own_limit(self, observed: AgentObservation, hold: LimitHold | None) -> AgentObservation:
        """The observation for a restart: after its time an agent's own limit does not keep it from being restarted,
        for it may have lost its program meanwhile."""
        if hold is None or observed.now < hold.resume_at or hold.is_under_way(observed.now):
            return observed
        why = self._accounts.why_held_by_another(observed.agent, observed.account, observed.now)
        return replace(observed, left_alone=why)

    def note_hold(self, agent: str, hold: LimitHold | None) -> None:
        """Let an agent's limit, or its end, count for the next agents of the same turn."""
        others = {name: each for name, each in self._accounts.holds.items() if name != agent}
        self._accounts = replace(self._accounts, holds=others if hold is None else {**others, agent: hold})

    # --- one prompt after the other ---

    def note_text(self, turn: Turn, account: str, now: float) -> None:
        """A text for an agent whose account was limited a while ago counts as a prompt."""
        if turn.memory.find(PROMPTS, account) is not None:
            self._note_prompt(turn, account, now)

    def _note_prompt(self, turn: Turn, account: str, now: float) -> None:
        for name, at in turn.memory.all(PROMPTS).items():
            if now - at >= PROMPT_REMEMBERED_S:
                turn.memory.put(PROMPTS, None, name)
        turn.memory.put(PROMPTS, now, account)

    def next_prompt_at(self, turn: Turn, account: str, now: float, gap_s: float) -> float | None:
        """Until when the account's last prompt keeps its other agents waiting, idle ones too; None: it does not."""
        last = turn.memory.find(PROMPTS, account)
        return last + gap_s if last is not None and now < last + gap_s else None

    # --- warnings and parks ---

    def warn(self, turn: Turn, subject: Subject, account: str) -> None:
        """Tell that a limit is near, where the agent's screen has begun to say so."""
        warning = subject.screen.warning
        if warning == self._warnings.get(subject.agent, ""):
            return
        self._warnings[subject.agent] = warning
        if not warning:
            return
        now, name = turn.now.timestamp(), f"{account}: {NUMBERS.sub('', warning)}"[:200]
        told = turn.memory.all(WARNINGS)
        recent = {each for each, at in told.items() if now - at < WARN_AGAIN_S}
        if name in recent:
            return
        for old in told.keys() - recent:
            turn.memory.put(WARNINGS, None, old)
        turn.memory.put(WARNINGS, now, name)
        turn.emit(LimitNear(agent=subject.agent, spawn=subject.spawn, account=account, reason=warning))

    def park(self, turn: Turn) -> None:
        """Have the spawner start nothing on limited accounts, and start again what is not limited any more."""
        parked = turn.memory.all(PARKS)
        wanted = {each.key: each for each in self._accounts.parks(turn.now.timestamp())}
        for key, park in wanted.items():
            if key not in parked or parked[key].until != park.until:
                until = datetime.fromtimestamp(park.until, UTC)
                reason = park.reason[:500]
                command = Park(account=park.account, until=until, models=_models(park), reason=reason, expires=until)
                turn.send_command(command, park.reason)
                turn.memory.put(PARKS, park, key)
        for key, park in parked.items():
            if key not in wanted:
                over = Unpark(account=park.account, models=_models(park), expires=turn.now + UNPARK_EXPIRES)
                turn.send_command(over, "its limit is over")
                turn.memory.put(PARKS, None, key)


def _with_concerned(event: Event, agents: list[str]) -> Event:
    return event.model_copy(update={"parked": agents}) if isinstance(event, LimitHit) else event


def _models(park: AccountPark) -> list[str] | None:
    return list(park.models) if park.models is not None else None
