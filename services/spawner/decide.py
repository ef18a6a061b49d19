"""What to do about one agent, from what people want, what is remembered and what tmux shows. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from services.spawner.restarts import GiveUp, RestartAt, next_restart, worth_remembering
from shared.fleet import RestartPolicy
from shared.states import Desired
from shared.tmux import Pane


@dataclass(frozen=True)
class Known:
    """What the spawner remembers of an agent over its own restarts."""

    wish: Desired | None = None
    """What somebody asked for; None leaves it to the fleet file."""
    spawn: str | None = None
    """The newest session that was told to the world."""
    alive: bool = False
    """Whether that session was there when we last looked."""
    deaths: list[float] = field(default_factory=list)
    gave_up: bool = False

    @classmethod
    def read(cls, kept: dict[str, Any] | None) -> "Known":
        if kept is None:
            return cls()
        wish = kept.get("wish")
        return cls(**{**kept, "wish": Desired(wish) if wish else None})


@dataclass(frozen=True, slots=True)
class Claim:
    """A session of ours that was started but never told, since we died in between: tell it now."""

    pane: Pane


@dataclass(frozen=True, slots=True)
class Bury:
    """The program in the pane has ended: tell how, and clear the session away."""

    pane: Pane


@dataclass(frozen=True, slots=True)
class NoteDeath:
    known: Known


@dataclass(frozen=True, slots=True)
class Start:
    reason: str
    attempt: int
    replaces: str | None


@dataclass(frozen=True, slots=True)
class SayGaveUp:
    reason: str


@dataclass(frozen=True, slots=True)
class LookAgain:
    when: float


Action = Claim | Bury | NoteDeath | Start | SayGaveUp | LookAgain


def decide(known: Known, wish: Desired, pane: Pane | None, policy: RestartPolicy, now: float) -> Iterator[Action]:
    """Keep the agent as people want it. `pane` is its stamped session, if tmux has one."""
    if pane is not None and not pane.dead:
        if pane.spawn != known.spawn or not known.alive:
            yield Claim(pane)
        return
    if pane is not None:
        yield Bury(pane)
    if wish is not Desired.RUNNING or known.gave_up:
        return
    if known.spawn is None:
        yield Start("declared in the fleet file", attempt=0, replaces=None)
        return
    if any(death > now for death in known.deaths):
        known = replace(known, deaths=[min(death, now) for death in known.deaths])  # the clock was set back
    if known.alive or (pane is not None and pane.spawn != known.spawn):
        deaths = worth_remembering(policy, [*known.deaths, now])
        known = replace(known, alive=False, deaths=deaths)
        yield NoteDeath(known)
    yield from _restart(known, policy, now)


def _restart(known: Known, policy: RestartPolicy, now: float) -> Iterator[Action]:
    if not known.deaths:
        yield Start("wanted, and not running", attempt=0, replaces=known.spawn)
        return
    match next_restart(policy, known.deaths):
        case GiveUp(reason):
            yield SayGaveUp(reason)
        case RestartAt(when, attempt) if now >= when:
            yield Start("its session had ended", attempt=attempt, replaces=known.spawn)
        case RestartAt(when, _):
            yield LookAgain(when)
