"""What is done to each agent of a loop when a phase begins or the last one ends, one step at a time. Pure.

An agent that has just finished a phase may still be writing about it. It gets `grace_s`, unless a person asked for the
phase.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from shared.contract.commands import Reply
from shared.runtime.memory import MemoryTable
from shared.runtime.moments import Moment

FIRST_RETRY_S, LONGEST_RETRY_S = 10.0, 600.0
COMMAND_LOST_AFTER_S = 24 * 3600.0
"""A command that has no answer by then never gets one: the journal was lost, for example."""
BUSY_LOOK_S, LIMITED_LOOK_S = 2.0, 30.0
OVERTAKEN = ("overtaken", "outdated")
"""The reply's codes for a command that waited until a person asked for something else."""


class ActionKind(StrEnum):
    START = "start"  # in a new session, with the phase's prompt and model
    TELL = "tell"  # the phase's prompt, in the session that runs
    STOP = "stop"
    RUN = "run"  # the agent of `on_complete`, after all others


@dataclass(frozen=True)
class PhaseAction:
    kind: ActionKind
    agent: str
    roles: tuple[str, ...]
    number: int
    phase: str
    since: Moment
    """When its phase began. It tells the actions of one phase from those of another."""
    at_once: bool = False
    command_id: str = ""
    """The command that waits for its answer."""
    asked_at: Moment = 0.0
    tries: int = 0
    not_before: Moment = 0.0
    failure: str = ""
    """The failure that was reported last."""
    done: bool = False
    spawn: str = ""
    """The session that got the phase's prompt, if that is known."""
    conversation: str = ""


ACTIONS = MemoryTable("actions:", tuple[PhaseAction, ...])
"""By loop."""


@dataclass(frozen=True)
class AgentSituation:
    now: float
    is_busy: bool = False
    """Whether the agent works or asks a person."""
    is_limited: bool = False
    """Whether it waits for its usage limit to lift."""
    grace_s: float = 0.0
    others_done: bool = True
    """Whether all actions that come before are done."""
    reply: Reply | None = None
    """The answer to the latest command."""


@dataclass(frozen=True)
class ActionStep:
    after: PhaseAction
    act: bool = False
    """Whether to act now; the caller notes the command by `asked`."""
    succeeded: bool = False
    failure: str = ""
    """To be reported."""
    look_at: float | None = None


def decide(action: PhaseAction, agent: AgentSituation) -> ActionStep:
    if action.done:
        return ActionStep(action)
    if action.command_id:
        return _answered(action, agent)
    if not agent.others_done:
        return ActionStep(action)
    if agent.now < action.not_before:
        return ActionStep(action, look_at=action.not_before)
    if action.kind is ActionKind.START and agent.is_limited:
        return ActionStep(action, look_at=agent.now + LIMITED_LOOK_S)
    gives_grace = action.kind in (ActionKind.START, ActionKind.STOP) and not action.at_once
    if gives_grace and agent.is_busy and agent.now < action.since + agent.grace_s:
        return ActionStep(action, look_at=min(agent.now + BUSY_LOOK_S, action.since + agent.grace_s))
    return ActionStep(action, act=True)


def asked(action: PhaseAction, command_id: str, now: float) -> PhaseAction:
    return replace(action, command_id=command_id, asked_at=now, tries=action.tries + 1)


def failed(action: PhaseAction, reason: str, now: float) -> ActionStep:
    """The action failed, or could not even be asked for: retried with backoff, and each reason reported once."""
    wait_s = min(FIRST_RETRY_S * 2.0 ** min(max(action.tries - 1, 0), 10), LONGEST_RETRY_S)
    after = replace(action, command_id="", not_before=now + wait_s, failure=reason)
    return ActionStep(after, failure="" if action.failure == reason else reason, look_at=after.not_before)


def _answered(action: PhaseAction, agent: AgentSituation) -> ActionStep:
    if agent.reply is None:
        if agent.now - action.asked_at < COMMAND_LOST_AFTER_S:
            return ActionStep(action)
        return ActionStep(replace(action, command_id=""), look_at=agent.now)
    if agent.reply.ok:
        spawn = str(agent.reply.result.get("spawn") or "")
        return ActionStep(replace(action, command_id="", failure="", done=True, spawn=spawn), succeeded=True)
    if agent.reply.code in OVERTAKEN:  # what a person asked for counts
        said = agent.reply.said
        return ActionStep(replace(action, command_id="", done=True, failure=said), failure=said)
    return failed(action, agent.reply.said, agent.now)


def lacks_prompt(action: PhaseAction, spawn: str | None, conversation: str | None) -> bool:
    """Whether the agent runs in a session without the phase's prompt: a person has started it.

    A session that resumed the conversation of the one before has the prompt.
    """
    if not _has_started(action) or spawn in (None, action.spawn):
        return False
    return bool(conversation and action.conversation) and conversation != action.conversation


def with_session(action: PhaseAction, spawn: str | None, conversation: str | None) -> PhaseAction:
    """The action with the session and conversation that the agent is in now.

    Until its own session was recorded once, the record may still be of the one before.
    """
    if not _has_started(action) or spawn is None or (spawn != action.spawn and not action.conversation):
        return action
    return replace(action, spawn=spawn, conversation=conversation or action.conversation)


def _has_started(action: PhaseAction) -> bool:
    return action.kind is ActionKind.START and action.done and bool(action.spawn)
