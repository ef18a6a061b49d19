"""What is done about an agent that idles longer than it may or promised: one step after the other. Pure.

The steps (nudge, restart, tell) come from the fleet file, and begin again once the agent has worked for another reason.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from services.monitor.policies.policy import IDLE, AgentObservation, PolicyOutcome, restart, send, stable_id
from services.monitor.verdict import Verdict
from shared.contract.events.activity import AgentStalled
from shared.contract.states import Activity
from shared.fleet import AgentKind
from shared.fleet.policies import StallPolicy, Then
from shared.runtime.moments import Moment

CAUSED_WITHIN_S = 60.0
"""Work that begins this soon after a step counts as caused by it."""
NUDGE_AFTER_RESTART_S = 2.0
"""A restarted agent must be idle for this long before it is nudged."""
STEPS_WITH_PROMPT = (Then.NUDGE, Then.NUDGE, Then.TELL)
STEPS_WITHOUT_PROMPT = (Then.TELL,)
SENTENCES = {
    Then.NUDGE: "it is told to go on",
    Then.RESTART: "it is restarted",
    Then.TELL: "it is left to people",
}


@dataclass(frozen=True)
class StallMemory:
    """How far the steps have come with one agent."""

    spawn: str = ""
    idle_since: Moment = 0.0
    """0: it was not idle when it was last observed."""
    step: int = 0
    """How many steps were taken since it last worked for another reason."""
    acted_at: Moment = 0.0
    nudged_at: Moment = 0.0
    """When it was last nudged or restarted."""
    works_since: Moment = 0.0
    stalled: bool = False
    """Whether it is stalled now, and this was told."""
    owes_nudge: bool = False
    """Whether it was restarted, and must still be nudged."""


def decide(memory: StallMemory, observed: AgentObservation, policy: StallPolicy) -> PolicyOutcome[StallMemory]:
    if not observed.is_managed or policy.after_s == 0:
        return PolicyOutcome(StallMemory())
    if observed.status not in IDLE:
        return PolicyOutcome(_not_idle(memory, observed, policy))
    if memory.spawn != observed.spawn or not memory.idle_since:
        memory = replace(memory, spawn=observed.spawn, idle_since=observed.since, stalled=False, works_since=0.0)
    elif observed.since > memory.idle_since:  # it worked between two observations
        caused = 0 <= observed.since - memory.nudged_at <= CAUSED_WITHIN_S
        memory = replace(memory, idle_since=observed.since, stalled=False, step=memory.step if caused else 0)
    if observed.left_alone:
        return PolicyOutcome(replace(memory, stalled=False))
    if memory.owes_nudge and observed.now - memory.idle_since >= NUDGE_AFTER_RESTART_S:
        nudged = replace(memory, owes_nudge=False, acted_at=observed.now, nudged_at=observed.now)
        return _nudge(nudged, observed, policy, "it was restarted")
    return _wait_or_act(memory, observed, policy)


def _not_idle(memory: StallMemory, observed: AgentObservation, policy: StallPolicy) -> StallMemory:
    """The steps begin again when it works for another reason than a step, or for long."""
    works = observed.status is Activity.WORKING
    works_since = memory.works_since or observed.since
    caused = 0 <= works_since - memory.nudged_at <= CAUSED_WITHIN_S and observed.now - works_since < policy.after_s
    return StallMemory(
        observed.spawn,
        step=memory.step if caused or not works else 0,
        acted_at=memory.acted_at,
        nudged_at=memory.nudged_at,
        works_since=works_since if works else 0.0,
        owes_nudge=memory.owes_nudge and not works,
    )


def _wait_or_act(memory: StallMemory, observed: AgentObservation, policy: StallPolicy) -> PolicyOutcome[StallMemory]:
    all_steps = steps(policy, observed)
    due = due_at(memory, observed, policy)
    is_woken = observed.declared is not None and observed.declared.wake is not None and observed.promise is None
    if observed.now < due or memory.step >= len(all_steps) or (is_woken and not memory.stalled):
        return PolicyOutcome(memory, look_at=due if due > observed.now else None)
    step = all_steps[memory.step]
    idle_s = observed.now - memory.idle_since
    promised = datetime.fromtimestamp(observed.promise, UTC) if observed.promise is not None else None
    why = f"it promised to wait until {promised:%Y-%m-%d %H:%M:%S %Z}" if promised else f"idle for {idle_s:.0f} s"
    place = f" ({memory.step + 1} of {len(all_steps)})" if len(all_steps) > 1 else ""
    stalled = AgentStalled(
        agent=observed.agent,
        spawn=observed.spawn,
        idle_s=round(idle_s, 1),
        promised_until=promised,
        then=step.value,
        reason=f"{why}; {SENTENCES[step]}{place}",
    )
    nudged_at = memory.nudged_at if step is Then.TELL else observed.now
    after = replace(memory, step=memory.step + 1, acted_at=observed.now, nudged_at=nudged_at, stalled=True)
    match step:
        case Then.NUDGE:
            outcome = _nudge(after, observed, policy, why)
        case Then.RESTART:
            command = restart(observed, _command_id(after))
            outcome = PolicyOutcome(replace(after, owes_nudge=True), ((command, f"it stalled: {why}"),))
        case Then.TELL:
            outcome = PolicyOutcome(after)
    return replace(outcome, events=(stalled,))


def steps(policy: StallPolicy, observed: AgentObservation) -> tuple[Then, ...]:
    if policy.then is not None:  # a task that was ended stays down, so it is told instead
        return tuple(each if observed.may_restart or each is not Then.RESTART else Then.TELL for each in policy.then)
    is_loop = observed.declared is not None and observed.declared.kind is AgentKind.LOOP
    has_work = observed.has_prompt or is_loop
    return STEPS_WITH_PROMPT if has_work and observed.may_restart else STEPS_WITHOUT_PROMPT


def due_at(memory: StallMemory, observed: AgentObservation, policy: StallPolicy) -> float:
    """When the next step is due."""
    if observed.promise is not None and not memory.stalled:
        return min(observed.promise, memory.idle_since + policy.promise_s) + policy.grace_s
    return max(memory.idle_since, memory.acted_at) + policy.after_s


def as_reported(memory: StallMemory, verdict: Verdict) -> Verdict:
    """The verdict as people see it: an agent that waits too long is stalled."""
    winner = verdict.winner
    if not memory.stalled or verdict.status is not Activity.WAITING or winner is None:
        return verdict
    idle_since = datetime.fromtimestamp(memory.idle_since, UTC)
    why = f"{winner.why}; idle since {idle_since:%Y-%m-%d %H:%M:%S %Z}"
    return replace(verdict, status=Activity.STALLED, winner=replace(winner, at=memory.acted_at, why=why))


def _nudge(
    memory: StallMemory, observed: AgentObservation, policy: StallPolicy, why: str
) -> PolicyOutcome[StallMemory]:
    command = send(observed, policy.nudge, _command_id(memory))
    return PolicyOutcome(memory, ((command, f"it stalled: {why}"),))


def _command_id(memory: StallMemory) -> str:
    return stable_id("stall", memory.spawn, memory.acted_at, memory.step)
