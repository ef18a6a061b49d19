"""What to do about one agent, from what people want, what is remembered and what tmux shows. Pure.

`keeper.SessionKeeper` carries it out.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from services.spawner.sessions.memory import (
    AgentMemory,
    Ended,
    Exited,
    LostWithServer,
    Paused,
    Phase,
    RefusedToResume,
    Running,
)
from services.spawner.sessions.restarts import GiveUp, RestartAt, next_restart, worth_remembering
from shared.contract.states import Desired
from shared.fleet import RestartPolicy
from shared.system.tmux import Pane


@dataclass(frozen=True, slots=True)
class KeepRules:
    """What the fleet file says about keeping one agent."""

    restart: RestartPolicy
    once: bool = False
    """A task: it is not started again."""
    refused_within_s: float = 20.0
    otherwise: Literal["fresh", "stop"] = "fresh"


@dataclass(frozen=True, slots=True)
class ClaimSession:
    """The session runs but was never published: the spawner died after it started it. Publish it now."""

    pane: Pane


@dataclass(frozen=True, slots=True)
class ClearDeadPane:
    """The program in the pane has ended: publish how, and clear the session away."""

    pane: Pane


@dataclass(frozen=True, slots=True)
class NoteDeath:
    """Remember that the session is gone, before anything follows from it."""

    known: AgentMemory


@dataclass(frozen=True, slots=True)
class Start:
    reason: str
    attempt: int
    replaces: str | None
    fresh: bool = False
    """Begin a new conversation, whatever the agent's policy says."""
    blameless: bool = False
    """Whether the restart counts in no limit: the end was not this agent's failure."""


@dataclass(frozen=True, slots=True)
class ReportGaveUp:
    reason: str


@dataclass(frozen=True, slots=True)
class LookAgain:
    when: float


Action = ClaimSession | ClearDeadPane | NoteDeath | Start | ReportGaveUp | LookAgain

REFUSED = "the agent refused to take up its conversation"
SERVER_ENDED = "its tmux server had ended"
GONE_FOR_S = 0.3
"""A session that went with its server is started again so much later: others are to see that it was gone."""


def decide(
    known: AgentMemory,
    wish: Desired,
    pane: Pane | None,
    rules: KeepRules,
    now: float,
    server: str | None = None,
    parked_until: float | None = None,
) -> Iterator[Action]:
    """Keep the agent as people want it. `pane` is its stamped session, if tmux has one; `server` the one that runs.

    Until `parked_until` the usage limit of its account is reached: it is not started, and a death does not count.
    """
    if pane is not None and not pane.dead:
        if pane.spawn != known.spawn or not isinstance(known.phase, Running):
            yield ClaimSession(pane)
        return
    if pane is not None:
        yield ClearDeadPane(pane)
    if wish is not Desired.RUNNING or known.gave_up:
        return
    if known.spawn is None and pane is None:
        yield Start("declared in the fleet file", 0, None) if parked_until is None else LookAgain(parked_until)
        return
    died = known.had_session or (pane is not None and pane.spawn != known.spawn)
    if known.spawn is None and pane is not None:
        known = known.with_session(spawn=pane.spawn or "unknown")  # it ended before it was published
    refused = refused_to_resume(known, pane, rules, now)
    if rules.once and not refused and not isinstance(known.phase, RefusedToResume):
        yield from _end_for_good(known, died=died)
        return
    if died or refused:
        blameless = refused or parked_until is not None
        known = after_death(known, rules, now, with_server=went_with_server(known, pane, server), blameless=blameless)
    if refused:
        known = replace(known.with_session(resumed=False, conversation=None), phase=RefusedToResume())
    if died or refused:
        yield NoteDeath(known)
    yield from _restart(known, rules, now, parked_until)


def _end_for_good(known: AgentMemory, *, died: bool) -> Iterator[Action]:
    """What is run once is not restarted; a person hears if it needs one."""
    if died:
        known = replace(known, phase=_after_end(known))
        yield NoteDeath(known)
    if isinstance(known.phase, Paused):
        yield ReportGaveUp(known.phase.reason)


def after_death(
    known: AgentMemory, rules: KeepRules, now: float, *, with_server: bool = False, blameless: bool = False
) -> AgentMemory:
    """The agent after its session has gone. A death counts, with three exceptions.

    The first death that a tmux server brings does not count; if a server ends again within the burst window, what runs
    in it may be the cause. Nor does a death while the account is limited, nor a refusal to resume: that belongs to the
    death before it, and what follows is a fresh start, whose death counts.
    """
    again = 0 <= now - known.server_ended <= rules.restart.burst_s
    lost = with_server and not again
    deaths = known.deaths if lost or blameless else worth_remembering(rules.restart, [*known.deaths, now])
    server_ended = now if with_server else known.server_ended
    phase = LostWithServer() if lost else _after_end(known)
    return replace(known, phase=phase, deaths=tuple(deaths), server_ended=server_ended)


def _after_end(known: AgentMemory) -> Phase:
    match known.phase:
        case Exited(needs_person=reason) if reason:
            return Paused(reason)
        case Exited(after_refusal=True):
            return RefusedToResume()
    return Ended()


def went_with_server(known: AgentMemory, pane: Pane | None, server: str | None) -> bool:
    """Whether the session ended because its whole tmux server did, as when the machine is restarted."""
    was_running = isinstance(known.phase, Running) and pane is None
    return was_running and bool(known.session.server) and known.session.server != server


def refused_to_resume(known: AgentMemory, pane: Pane | None, rules: KeepRules, now: float) -> bool:
    """Whether the program ended because it does not have the conversation: soon, by itself, with an error."""
    if pane is None or not known.session.resumed or pane.spawn != known.spawn:
        return False
    if isinstance(known.phase, Exited) and known.phase.needs_person:
        return False
    by_itself = pane.dead_status is not None and pane.dead_status > 0
    return by_itself and 0 <= now - known.session.started <= rules.refused_within_s


def _restart(known: AgentMemory, rules: KeepRules, now: float, parked_until: float | None) -> Iterator[Action]:
    match known.phase:
        case Paused(reason):
            yield ReportGaveUp(reason)
        case _ if parked_until is not None:
            yield LookAgain(parked_until)
        case LostWithServer() if 0 <= now - known.server_ended < GONE_FOR_S:
            yield LookAgain(known.server_ended + GONE_FOR_S)
        case LostWithServer():
            yield Start(SERVER_ENDED, attempt=0, replaces=known.spawn, blameless=True)
        case RefusedToResume():
            yield _after_refusal(known, rules)
        case _ if not known.deaths:
            yield Start("wanted, and not running", attempt=0, replaces=known.spawn, blameless=True)
        case phase:
            match next_restart(rules.restart, known.deaths):
                case GiveUp(why):
                    yield ReportGaveUp(why)
                case RestartAt(when, attempt) if now >= when:
                    reason = (phase.reason if isinstance(phase, Ended) else "") or "its session had ended"
                    yield Start(reason, attempt=attempt, replaces=known.spawn)
                case RestartAt(when, _):
                    yield LookAgain(when)


def _after_refusal(known: AgentMemory, rules: KeepRules) -> Start | ReportGaveUp:
    if known.deaths and isinstance(limit := next_restart(rules.restart, known.deaths), GiveUp):
        return ReportGaveUp(limit.reason)
    if rules.otherwise == "fresh":
        return Start(f"{REFUSED}; it began a new one", attempt=0, replaces=known.spawn, fresh=True, blameless=True)
    return ReportGaveUp(f"{REFUSED}, and the backend's `resume.otherwise` is `stop`")
