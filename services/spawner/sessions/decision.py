"""What to do about one agent, from what people want, what is remembered and what tmux shows. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from services.spawner.sessions.restarts import GiveUp, RestartAt, next_restart, worth_remembering
from shared.contract.states import Desired
from shared.fleet import RestartPolicy
from shared.system.tmux import Pane


@dataclass(frozen=True)
class AgentMemory:
    """What the spawner remembers of an agent over its own restarts."""

    wish: Desired | None = None
    """What somebody asked for; None leaves it to the fleet file."""
    spawn: str | None = None
    """The newest session that was told to the world."""
    spawns: int = 0
    """How many sessions there were; the id of the next one follows from it."""
    alive: bool = False
    """Whether that session was there when we last looked."""
    deaths: list[float] = field(default_factory=list)
    gave_up: bool = False
    started: float = 0.0
    conversation: str | None = None
    """The agent's own id of what it works on, where that is known."""
    workspace: str = ""
    """Where the newest session was started."""
    backend: str = ""
    """What runs in it."""
    pid: int = 0
    """Of the program in it."""
    pane: str = ""
    """Where that is; other panes of the session are people's."""
    resumed: bool = False
    """Whether the newest session was started to take up an earlier conversation."""
    refused: str | None = None
    """The session that refused to; what comes after it begins a new conversation."""
    resuming: str | None = None
    """The command that asked for it and waits to hear whether the agent did."""
    order: dict[str, str] = field(default_factory=dict)
    """How the newest start differs from the fleet file, on request."""
    prompt: str = ""
    """What is still to be typed into the newest session, before anything else."""
    buried: str | None = None
    """The newest session of which was told that its program ended."""
    adopted: bool = False
    """Whether the newest session was somebody else's, and was taken over."""
    found: bool = False
    """Whether nobody asked for that: it is ended only by its name, and never started again."""
    piped_elsewhere: bool = False
    """Whether somebody else's pipe was on its pane when it was taken over: its output is theirs, and not logged."""
    server: str = ""
    """The tmux server that the newest session ran in; empty where that is not known."""
    server_ended: float = 0.0
    """When a tmux server last ended under it."""
    lost: bool = False
    """Whether its newest session went with its tmux server, and is to be started again without blame."""
    ended_for: str = ""
    """Why its newest session was ended, where that was asked for so that it is started again."""
    held: str = ""
    """Why it can't go on before a person has mended that: its program ended over it."""

    def as_wanted(self) -> "AgentMemory":
        """The same agent, of which somebody wants that it runs: what it did before is forgiven."""
        return replace(self, wish=Desired.RUNNING, gave_up=False, deaths=[], found=False, held="", ended_for="")

    @classmethod
    def read(cls, kept: dict[str, Any] | None) -> "AgentMemory":
        if kept is None:
            return cls()
        wish = kept.get("wish")
        found = {name: value for name, value in kept.items() if name in FIELDS}  # a later version may have kept more
        return cls(**{**found, "wish": Desired(wish) if wish else None})


FIELDS = frozenset(each.name for each in fields(AgentMemory))


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
    """A session of ours that was started but never told, since we died in between: tell it now."""

    pane: Pane


@dataclass(frozen=True, slots=True)
class ClearDeadPane:
    """The program in the pane has ended: tell how, and clear the session away."""

    pane: Pane


@dataclass(frozen=True, slots=True)
class NoteDeath:
    known: AgentMemory


@dataclass(frozen=True, slots=True)
class Start:
    reason: str
    attempt: int
    replaces: str | None
    fresh: bool = False
    """Begin a new conversation, whatever the agent's policy says."""
    blameless: bool = False
    """What ended was not this agent's failure: it counts in no limit."""


@dataclass(frozen=True, slots=True)
class ReportGaveUp:
    reason: str


@dataclass(frozen=True, slots=True)
class LookAgain:
    when: float


Action = ClaimSession | ClearDeadPane | NoteDeath | Start | ReportGaveUp | LookAgain

REFUSED = "the agent refused to take up its conversation"
SERVER_ENDED = "its tmux server had ended"


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

    Until `parked_until` its account's usage limit is reached: it is not started, and not blamed for ending.
    """
    if pane is not None and not pane.dead:
        if pane.spawn != known.spawn or not known.alive:
            yield ClaimSession(pane)
        return
    if pane is not None:
        yield ClearDeadPane(pane)
    if wish is not Desired.RUNNING or known.gave_up:
        return
    if known.spawn is None and pane is None:
        yield Start("declared in the fleet file", 0, None) if parked_until is None else LookAgain(parked_until)
        return
    died = known.alive or (pane is not None and pane.spawn != known.spawn)
    if known.spawn is None and pane is not None:
        known = replace(known, spawn=pane.spawn or "unknown")  # it ended before it was ever told
    refused = refused_to_resume(known, pane, rules, now)
    if rules.once and not refused and known.refused != known.spawn:
        if died:
            yield NoteDeath(replace(known, alive=False))
        return
    clock_was_set_back = any(death > now for death in known.deaths)
    if clock_was_set_back:
        known = replace(known, deaths=[min(death, now) for death in known.deaths])
    if died or refused:
        blameless = parked_until is not None and not refused
        known = after_death(known, rules, now, with_server=went_with_server(known, pane, server), blameless=blameless)
    if refused:
        known = replace(known, resumed=False, conversation=None, refused=known.spawn)
    if died or refused or clock_was_set_back:
        yield NoteDeath(known)
    yield from _restart(known, rules, now, parked_until)


def after_death(
    known: AgentMemory, rules: KeepRules, now: float, *, with_server: bool = False, blameless: bool = False
) -> AgentMemory:
    """A death counts, but not the first that a tmux server takes with it, nor one while the account is limited.

    One that ends again within the burst window may do so because of what runs in it.
    """
    again = 0 <= now - known.server_ended <= rules.restart.burst_s
    lost = with_server and not again
    deaths = known.deaths if lost or blameless else worth_remembering(rules.restart, [*known.deaths, now])
    server_ended = now if with_server else known.server_ended
    return replace(known, alive=False, lost=lost, deaths=deaths, server_ended=server_ended)


def went_with_server(known: AgentMemory, pane: Pane | None, server: str | None) -> bool:
    """Whether the session ended because its whole tmux server did, as when the machine is restarted."""
    ended_by_itself = pane is not None or known.buried == known.spawn
    return known.alive and not ended_by_itself and bool(known.server) and known.server != server


def refused_to_resume(known: AgentMemory, pane: Pane | None, rules: KeepRules, now: float) -> bool:
    """Whether the agent ended because it has no such conversation: soon, by itself, and not content."""
    if pane is None or not known.resumed or pane.spawn != known.spawn:
        return False
    by_itself = pane.dead_status is not None and pane.dead_status > 0
    return by_itself and 0 <= now - known.started <= rules.refused_within_s


def _restart(known: AgentMemory, rules: KeepRules, now: float, parked_until: float | None) -> Iterator[Action]:
    if known.held or parked_until is not None:
        yield ReportGaveUp(known.held) if known.held else LookAgain(parked_until or now)
        return
    if known.lost:
        yield Start(SERVER_ENDED, attempt=0, replaces=known.spawn, blameless=True)
        return
    if known.refused == known.spawn:
        if known.deaths and isinstance(limit := next_restart(rules.restart, known.deaths), GiveUp):
            yield ReportGaveUp(limit.reason)
        elif rules.otherwise == "fresh":
            yield Start(f"{REFUSED}; it began a new one", attempt=0, replaces=known.spawn, fresh=True)
        else:
            yield ReportGaveUp(f"{REFUSED}, and the backend's `resume.otherwise` is `stop`")
        return
    if not known.deaths:
        yield Start("wanted, and not running", attempt=0, replaces=known.spawn)
        return
    match next_restart(rules.restart, known.deaths):
        case GiveUp(reason):
            yield ReportGaveUp(reason)
        case RestartAt(when, attempt) if now >= when:
            yield Start(known.ended_for or "its session had ended", attempt=attempt, replaces=known.spawn)
        case RestartAt(when, _):
            yield LookAgain(when)
