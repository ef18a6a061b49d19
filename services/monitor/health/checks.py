"""When an agent's background work is checked, and what follows from the answer. Pure.

A check belongs to one session and ends with it. A query under way is not remembered: a restarted monitor asks again.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from services.monitor.health.question import WorkAnswer, WorkState, read_answer
from services.monitor.policies.policy import AgentObservation, PolicyOutcome, restart, stable_id
from shared.agents.fork import ForkAnswer, ForkFailed, ForkSilent, TimedResult
from shared.contract.commands import Command, Stop
from shared.contract.envelope import Event
from shared.contract.events.activity import AgentFinished, AgentProgress, AgentUnresponsive
from shared.contract.states import Activity
from shared.fleet.policies import End, HealthPolicy
from shared.runtime.memory import MemoryTable
from shared.runtime.moments import Moment
from shared.runtime.turn import Turn

NOT_ASKED = (Activity.STARTING, Activity.DONE, Activity.FAILED, Activity.LIMITED)
"""There is nothing to ask about, or the account may not answer."""
SHOWN_CHARACTERS = 500
"""How much of the result is in the event; a file has all of it."""


@dataclass(frozen=True)
class Health:
    """The last check of one session."""

    spawn: str = ""
    asked_at: Moment = 0.0
    """When the last question ended, with an answer or without."""
    state: str = ""
    """What was last told: a state of the work, or `unresponsive`; empty: nothing yet."""
    summary: str = ""
    since: Moment = 0.0
    """Since when the agent had its status then. If that is later now, it has moved on."""
    trouble: str = ""
    """Why the last question has no answer, where that says nothing about the agent."""


HEALTH = MemoryTable("health:", Health)
UNRESPONSIVE = "unresponsive"
NO_FORM = "what it answered has not the form that was asked for"


def due_at(health: Health, policy: HealthPolicy, started: float) -> float:
    """When it is to be asked next."""
    return max(health.asked_at, started) + policy.every_s


def may_be_asked(observed: AgentObservation) -> bool:
    """Whether a question makes sense now, and its account can answer."""
    return observed.is_managed and not observed.left_alone and observed.status not in NOT_ASKED


def conclude(
    health: Health, observed: AgentObservation, policy: HealthPolicy, answered: TimedResult, file: str
) -> tuple[PolicyOutcome[Health], str | None]:
    """What follows from an answer, and the result to write to the file before it is told.

    An agent that works is not finished, whatever its copy says.
    """
    after = replace(health, asked_at=observed.now, trouble="")
    match answered.result:
        case ForkFailed(reason=reason):
            return PolicyOutcome(replace(after, trouble=reason)), None
        case ForkSilent():
            return _unresponsive(after, observed, policy), None
        case ForkAnswer(text=text, structured=structured):
            answer = read_answer(text, structured)
            if answer is None:
                return PolicyOutcome(replace(after, trouble=f"{NO_FORM}: {text[:200]!r}")), None
            if answer.state is WorkState.FINISHED and observed.status is not Activity.WORKING:
                return _finished(health, after, observed, answer, file)
            return _progress(health, after, observed, answer), None


def _progress(health: Health, after: Health, observed: AgentObservation, answer: WorkAnswer) -> PolicyOutcome[Health]:
    state = (WorkState.WORKING if answer.state is WorkState.FINISHED else answer.state).value
    told = AgentProgress(agent=observed.agent, spawn=observed.spawn, state=state, summary=answer.summary)
    is_news = (health.state, health.summary) != (state, answer.summary)
    return PolicyOutcome(
        replace(after, state=state, summary=answer.summary, since=observed.since), events=(told,) if is_news else ()
    )


def _finished(
    health: Health, after: Health, observed: AgentObservation, answer: WorkAnswer, file: str
) -> tuple[PolicyOutcome[Health], str | None]:
    """A task is stopped each time that it is found finished. It is told once: a model words each answer anew."""
    commands: tuple[tuple[Command, str], ...] = ()
    if observed.is_task:
        command = Stop(
            agent=observed.agent, spawn=observed.spawn, id=stable_id("finished", observed.spawn, observed.now)
        )
        commands = ((command, f"its work is done: {answer.summary}"),)
    moved_on = observed.since > health.since and answer.summary != health.summary
    if health.state == WorkState.FINISHED and not moved_on:
        return PolicyOutcome(replace(after, since=max(health.since, observed.since)), commands), None
    told = AgentFinished(
        agent=observed.agent,
        spawn=observed.spawn,
        summary=answer.summary,
        output=answer.output[:SHOWN_CHARACTERS],
        file=file if answer.output else None,
    )
    done = replace(after, state=WorkState.FINISHED.value, summary=answer.summary, since=observed.since)
    return PolicyOutcome(done, commands, (told,)), answer.output or None


def _unresponsive(after: Health, observed: AgentObservation, policy: HealthPolicy) -> PolicyOutcome[Health]:
    if observed.left_alone or observed.status in NOT_ASKED:
        why = observed.left_alone or observed.reason
        return PolicyOutcome(
            replace(after, trouble=f"no answer within {policy.timeout_s:g} s, which may come of this: {why}")
        )
    then = policy.then or (End.STOP if observed.is_task else End.TELL)
    if then is End.RESTART and not observed.may_restart:
        then = End.TELL
    told: tuple[Event, ...] = (
        AgentUnresponsive(
            agent=observed.agent,
            spawn=observed.spawn,
            silent_s=policy.timeout_s,
            then=then.value,
            reason=f"asked how it is, it did not answer within {policy.timeout_s:g} s; {_THEN[then]}",
        ),
    )
    commands: tuple[tuple[Command, str], ...] = ()
    command_id, why = stable_id("unresponsive", observed.spawn, observed.now), "it does not answer how it is"
    match then:
        case End.STOP:
            commands = ((Stop(agent=observed.agent, spawn=observed.spawn, id=command_id), why),)
        case End.RESTART:
            commands = ((restart(observed, command_id), why),)
        case End.TELL:
            pass
    is_news = after.state != UNRESPONSIVE
    return PolicyOutcome(replace(after, state=UNRESPONSIVE, summary=""), commands, told if is_news else ())


_THEN = {
    End.STOP: "it is stopped",
    End.RESTART: "it is restarted within its restart limits",
    End.TELL: "it is left to people",
}


def health_of(turn: Turn, agent: str, spawn: str) -> Health:
    """The last check of a session."""
    health = turn.memory.find(HEALTH, agent)
    return health if health is not None and health.spawn == spawn else Health(spawn)


def last_check(turn: Turn, agent: str, spawn: str) -> dict[str, Any] | None:
    """The last check of a session, for `muster explain`; None where there was none."""
    health = health_of(turn, agent, spawn)
    if not health.asked_at:
        return None
    asked = datetime.fromtimestamp(health.asked_at, UTC).isoformat()
    return {"asked": asked, "state": health.state, "summary": health.summary, "trouble": health.trouble}
