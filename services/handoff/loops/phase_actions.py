"""What a loop has to have done to its agents when a phase begins or the last one ends: one step at a time. Pure.

Who just finished a phase may still be saying so: it is given time, unless a person asked for the phase.
"""

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from shared.contract.commands import Reply

FIRST_WAIT_S, LONGEST_WAIT_S = 10.0, 600.0
LOST_AFTER_S = 24 * 3600.0
"""A command that is not answered by then never will be: the journal was lost, say."""
BUSY_LOOK_S, LIMITED_LOOK_S = 2.0, 30.0
OVERTAKEN = "overtaken"
"""How a command is answered that waited until somebody asked for something else."""


class ActionKind(StrEnum):
    START = "start"  # anew, with the phase's prompt and model
    TELL = "tell"  # the phase's prompt, into the session that runs
    STOP = "stop"
    RUN = "run"  # the task that comes after all


@dataclass(frozen=True)
class PhaseAction:
    """Kept over restarts until it is done."""

    what: ActionKind
    agent: str
    roles: tuple[str, ...]
    number: int
    phase: str
    since: float
    """When its phase began: it tells the errands of one phase from those of another."""
    at_once: bool = False
    asked: str = ""
    """The command that waits for its answer."""
    asked_at: float = 0.0
    tries: int = 0
    not_before: float = 0.0
    told: str = ""
    """The failure of which was told."""
    done: bool = False
    spawn: str = ""
    """The session that was given its part, as far as it is known."""
    conversation: str = ""

    def document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, kept: dict[str, Any]) -> "PhaseAction":
        known = {key: value for key, value in kept.items() if key in cls.__dataclass_fields__}
        return cls(**{**known, "what": ActionKind(kept["what"]), "roles": tuple(kept["roles"])})


@dataclass(frozen=True)
class AgentSituation:
    now: float
    is_busy: bool = False
    """Whether the agent does something, or asks a person."""
    is_limited: bool = False
    """Whether it waits for its usage limit to lift."""
    grace_s: float = 0.0
    others_done: bool = True
    """Whether all that comes before it is."""
    reply: Reply | None = None
    """The answer to what was asked."""


@dataclass(frozen=True)
class ActionStep:
    after: PhaseAction
    act: bool = False
    """Whether it is to be asked for now; whoever does notes it by `asked`."""
    succeeded: bool = False
    failure: str = ""
    """To be told."""
    look_at: float | None = None


def decide(errand: PhaseAction, seen: AgentSituation) -> ActionStep:
    if errand.done:
        return ActionStep(errand)
    if errand.asked:
        return _asked(errand, seen)
    if not seen.others_done:
        return ActionStep(errand)
    if seen.now < errand.not_before:
        return ActionStep(errand, look_at=errand.not_before)
    if errand.what is ActionKind.START and seen.is_limited:
        return ActionStep(errand, look_at=seen.now + LIMITED_LOOK_S)
    patient = errand.what in (ActionKind.START, ActionKind.STOP) and not errand.at_once
    if patient and seen.is_busy and seen.now < errand.since + seen.grace_s:
        return ActionStep(errand, look_at=min(seen.now + BUSY_LOOK_S, errand.since + seen.grace_s))
    return ActionStep(errand, act=True)


def asked(errand: PhaseAction, command: str, now: float) -> PhaseAction:
    return replace(errand, asked=command, asked_at=now, tries=errand.tries + 1)


def failed(errand: PhaseAction, reason: str, now: float) -> ActionStep:
    """It could not be done, or not even be asked for: it is tried again, later each time, and told once."""
    wait_s = min(FIRST_WAIT_S * 2.0 ** min(max(errand.tries - 1, 0), 10), LONGEST_WAIT_S)
    after = replace(errand, asked="", not_before=now + wait_s, told=reason)
    return ActionStep(after, failure="" if errand.told == reason else reason, look_at=after.not_before)


def _asked(errand: PhaseAction, seen: AgentSituation) -> ActionStep:
    if seen.reply is None:
        if abs(seen.now - errand.asked_at) < LOST_AFTER_S:  # a clock may be set back
            return ActionStep(errand)
        return ActionStep(replace(errand, asked=""), look_at=seen.now)
    if seen.reply.ok:
        spawn = str(seen.reply.result.get("spawn") or "")
        return ActionStep(replace(errand, asked="", told="", done=True, spawn=spawn), succeeded=True)
    if seen.reply.code == OVERTAKEN:  # a person knows better
        return ActionStep(replace(errand, asked="", done=True, told=seen.reply.said), failure=seen.reply.said)
    return failed(errand, seen.reply.said, seen.now)


def is_stranger(errand: PhaseAction, spawn: str | None, conversation: str | None) -> bool:
    """Whether the agent runs in a session that was never given its part: a person has started it without it.

    A session that took up the conversation of the one before has it.
    """
    if errand.what is not ActionKind.START or not errand.done or not errand.spawn or spawn in (None, errand.spawn):
        return False
    return bool(conversation and errand.conversation) and conversation != errand.conversation


def met(errand: PhaseAction, spawn: str | None, conversation: str | None) -> PhaseAction:
    """The same, with the session and the conversation that the agent is in now.

    Before its own session was met, what is recorded may be the one before it.
    """
    if errand.what is not ActionKind.START or not errand.done or not errand.spawn or spawn is None:
        return errand
    if spawn != errand.spawn and not errand.conversation:
        return errand
    return replace(errand, spawn=spawn, conversation=conversation or errand.conversation)
