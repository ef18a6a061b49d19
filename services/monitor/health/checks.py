"""When an agent's background work is checked, and what follows from the answer. Pure.

A check belongs to one session and ends with it. A query under way is not remembered: a restarted monitor asks again.
"""

from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, Literal

from services.monitor.health.question import WorkAnswer, WorkState, read_answer
from services.monitor.policies.policy import AgentObservation, PolicyOutcome, errand_id, restart
from shared.agents.fork import ForkAnswer, ForkFailed, ForkSilent, TimedResult
from shared.contract.commands import Command, Stop
from shared.contract.envelope import Event
from shared.contract.events.activity import AgentFinished, AgentProgress, AgentUnresponsive
from shared.contract.states import Activity
from shared.fleet import AgentKind
from shared.fleet.policies import End, HealthPolicy
from shared.runtime.turn import Turn

HEALTH = "health:"


NOT_ASKED = (Activity.STARTING, Activity.DONE, Activity.FAILED, Activity.LIMITED)
"""There is nothing to ask yet or any more, or nobody who may answer."""
SHOWN_CHARACTERS = 500
"""Of the result, in the event; the whole is in a file."""


@dataclass(frozen=True)
class Health:
    """What is remembered of one session."""

    spawn: str = ""
    asked_at: float = 0.0
    """When the last answer came, or did not."""
    state: str = ""
    """What was last told: a state of the work, or that it does not answer; empty: nothing yet."""
    summary: str = ""
    since: float = 0.0
    """Since when the agent was in its status then: it has moved on if that is later now."""
    trouble: str = ""
    """Why the last one has no answer, where that is not the agent's fault."""

    def document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, kept: Any, spawn: str) -> "Health":
        """Of this session; what can't be read, or is of another, is forgotten."""
        if not isinstance(kept, dict) or kept.get("spawn") != spawn:
            return cls(spawn)
        known = {each.name for each in fields(cls)}
        found = cls(**{name: value for name, value in kept.items() if name in known})
        return found if isinstance(found.asked_at, int | float) else cls(spawn)


UNRESPONSIVE = "unresponsive"
NO_FORM = "what it answered has not the form that was asked for"


def due_at(health: Health, policy: HealthPolicy, started: float, now: float) -> float:
    """When it is to be asked next, by when its session started and by when it was last asked."""
    return min(max(health.asked_at, started), now) + policy.every_s  # the clock may have been set back


def may_be_asked(sight: AgentObservation) -> bool:
    """Whether a question makes sense now, and would not use what its account has not."""
    return sight.is_kept and not sight.parked and sight.status not in NOT_ASKED


def conclude(
    health: Health, sight: AgentObservation, policy: HealthPolicy, answered: TimedResult, file: str
) -> tuple[PolicyOutcome[Health], str | None]:
    """What follows from an answer, and the result that is to be kept in the file before anything is told of it.

    An agent that works is not finished, whatever a copy of it believes.
    """
    after = replace(health, asked_at=sight.now, trouble="")
    match answered.result:
        case ForkFailed(reason=reason):
            return PolicyOutcome(replace(after, trouble=reason)), None
        case ForkSilent():
            return _unresponsive(after, sight, policy), None
        case ForkAnswer(text=text, structured=structured):
            answer = read_answer(text, structured)
            if answer is None:
                return PolicyOutcome(replace(after, trouble=f"{NO_FORM}: {text[:200]!r}")), None
            if answer.state is WorkState.FINISHED and sight.status is not Activity.WORKING:
                return _finished(health, after, sight, answer, file)
            return _progress(health, after, sight, answer), None


def _progress(health: Health, after: Health, sight: AgentObservation, answer: WorkAnswer) -> PolicyOutcome[Health]:
    state = _progress_state(answer.state)
    told = AgentProgress(agent=sight.agent, spawn=sight.spawn, state=state, summary=answer.summary)
    is_news = (health.state, health.summary) != (state, answer.summary)
    return PolicyOutcome(
        replace(after, state=state, summary=answer.summary, since=sight.since), tells=(told,) if is_news else ()
    )


def _progress_state(state: WorkState) -> Literal["working", "waiting", "blocked"]:
    match state:
        case WorkState.WAITING:
            return "waiting"
        case WorkState.BLOCKED:
            return "blocked"
        case _:
            return "working"


def _finished(
    health: Health, after: Health, sight: AgentObservation, answer: WorkAnswer, file: str
) -> tuple[PolicyOutcome[Health], str | None]:
    """A task is ended, each time that it is found to be done; told is it once, for a model words each answer anew."""
    asks: tuple[tuple[Command, str], ...] = ()
    if _is_task(sight):
        command = Stop(agent=sight.agent, spawn=sight.spawn, id=errand_id("finished", sight.spawn, sight.now))
        asks = ((command, f"its work is done: {answer.summary}"),)
    moved_on = sight.since > health.since and answer.summary != health.summary
    if health.state == WorkState.FINISHED and not moved_on:
        return PolicyOutcome(replace(after, since=max(health.since, sight.since)), asks), None
    told = AgentFinished(
        agent=sight.agent,
        spawn=sight.spawn,
        summary=answer.summary,
        output=answer.output[:SHOWN_CHARACTERS],
        file=file if answer.output else None,
    )
    done = replace(after, state=WorkState.FINISHED.value, summary=answer.summary, since=sight.since)
    return PolicyOutcome(done, asks, (told,)), answer.output or None


def _unresponsive(after: Health, sight: AgentObservation, policy: HealthPolicy) -> PolicyOutcome[Health]:
    if sight.parked or sight.status in NOT_ASKED:
        why = sight.parked or sight.reason
        return PolicyOutcome(
            replace(after, trouble=f"no answer within {policy.timeout_s:g} s, which may come of this: {why}")
        )
    then = policy.then or (End.STOP if _is_task(sight) else End.TELL)
    if then is End.RESTART and not sight.may_restart:
        then = End.TELL
    told: tuple[Event, ...] = (
        AgentUnresponsive(
            agent=sight.agent,
            spawn=sight.spawn,
            silent_s=policy.timeout_s,
            then=then.value,
            reason=f"asked how it is, it did not answer within {policy.timeout_s:g} s; {_SAYS[then]}",
        ),
    )
    asks: tuple[tuple[Command, str], ...] = ()
    errand, why = errand_id("unresponsive", sight.spawn, sight.now), "it does not answer how it is"
    match then:
        case End.STOP:
            asks = ((Stop(agent=sight.agent, spawn=sight.spawn, id=errand), why),)
        case End.RESTART:
            asks = ((restart(sight, errand), why),)
        case End.TELL:
            pass
    is_news = after.state != UNRESPONSIVE
    return PolicyOutcome(replace(after, state=UNRESPONSIVE, summary=""), asks, told if is_news else ())


_SAYS = {
    End.STOP: "it is stopped",
    End.RESTART: "it is restarted within its restart limits",
    End.TELL: "it is left to people",
}


def _is_task(sight: AgentObservation) -> bool:
    return sight.declared is not None and sight.declared.kind is AgentKind.TASK


def health_of(turn: Turn, agent: str, spawn: str) -> Health:
    """What is remembered of a session."""
    return Health.read(turn.recall(f"{HEALTH}{agent}"), spawn)


def report(turn: Turn, agent: str, spawn: str) -> dict[str, Any] | None:
    """The last check, for people and programs; None where there was none."""
    health = health_of(turn, agent, spawn)
    if not health.asked_at:
        return None
    asked = datetime.fromtimestamp(health.asked_at, UTC).isoformat()
    return {"asked": asked, "state": health.state, "summary": health.summary, "trouble": health.trouble}
