"""What handoff remembers of a loop over restarts, and what one loop is decided from in one turn."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from services.handoff.loops.phase_actions import PhaseAction
from services.handoff.loops.phases import PhaseProgress
from shared.contract.commands import Reply
from shared.fleet import AgentKind, Fleet
from shared.fleet.loops import Loop
from shared.messaging.journal import Journal
from shared.runtime.turn import Turn

SEEN, DOWN, COURSE, ERRANDS, BOX = "seen:", "down:", "course:", "errands:", "box:"
TOLD_AT_MOST = 1_000


@dataclass(frozen=True)
class BranchMemory:
    """A loop's branch as it was last seen."""

    address: str
    branch: str
    tip: str | None = None
    """None: it was never there."""
    is_gone: bool = False
    before: str | None = None
    """What the remote's HEAD last was, while the branch was never there."""
    told: tuple[str, ...] = ()
    """Keys of the commits that were told: when history is rewritten they come again under other ids."""
    lost: tuple[str, ...] = ()
    """Of commits that were lost so: they may come again later."""
    inbox: tuple[str, ...] = ()
    """The inbox files, as they are named in the fleet file, of which it is known what is there."""
    statuses: Mapping[str, str] = field(default_factory=dict)
    """What the status files say."""
    status_told: str = ""

    def with_told(self, keys: Iterable[str], dropped: Collection[str]) -> "BranchMemory":
        """The same after commits were told, and others dropped."""
        told = (*self.told, *keys)[-TOLD_AT_MOST:]
        lost = dict.fromkeys([*self.lost, *sorted(dropped)])
        return replace(self, told=told, lost=tuple(lost)[-TOLD_AT_MOST:])


class LoopMemory:
    """One turn's view of it."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    def seen(self, loop: str) -> BranchMemory | None:
        kept = self._turn.recall(f"{SEEN}{loop}")
        if not kept:
            return None
        known = _known(BranchMemory, kept)
        lists = {name: tuple(kept.get(name, ())) for name in ("told", "lost", "inbox")}
        return BranchMemory(**{**known, **lists})

    def keep_seen(self, loop: str, seen: BranchMemory) -> None:
        self._turn.remember(f"{SEEN}{loop}", asdict(seen))

    def down_since(self, loop: str) -> float | None:
        """Since when it is told that a loop's remote does not answer."""
        kept = self._turn.recall(f"{DOWN}{loop}")
        return float(kept) if kept is not None else None

    def keep_down_since(self, loop: str, since: float | None) -> None:
        self._turn.remember(f"{DOWN}{loop}", since)

    def course(self, loop: str) -> PhaseProgress:
        kept = self._turn.recall(f"{COURSE}{loop}")
        return (
            PhaseProgress(**{**_known(PhaseProgress, kept), "stale": tuple(kept["stale"])}) if kept else PhaseProgress()
        )

    def keep_course(self, loop: str, course: PhaseProgress) -> None:
        if course != self.course(loop):
            self._turn.remember(f"{COURSE}{loop}", asdict(course))

    def errands(self, loop: str) -> list[PhaseAction]:
        return [PhaseAction.read(each) for each in self._turn.recall(f"{ERRANDS}{loop}") or []]

    def keep_errands(self, loop: str, errands: list[PhaseAction]) -> None:
        if errands != self.errands(loop):
            self._turn.remember(f"{ERRANDS}{loop}", [each.document() for each in errands] or None)


def _known(kind: type[Any], kept: Mapping[str, Any]) -> dict[str, Any]:
    """What a later version may have kept besides is passed over."""
    names = {each.name for each in fields(kind)}
    return {name: value for name, value in kept.items() if name in names}


@dataclass(frozen=True)
class LoopTurn:
    turn: Turn
    memory: LoopMemory
    fleet: Fleet
    name: str
    """Of the loop."""
    loop: Loop

    @property
    def now(self) -> float:
        return self.turn.now.timestamp()

    @property
    def phases(self) -> list[str]:
        return [phase.name for phase in self.loop.phases]

    def players(self, kind: AgentKind | None = None) -> list[str]:
        """Who plays in the loop, of those that the fleet file has."""
        agents = [agent for agent in dict.fromkeys(self.loop.roles.values()) if agent in self.fleet.agents]
        return [agent for agent in agents if kind is None or self.fleet.agents[agent].kind is kind]


SPAWNER = "spawner"


class Replies:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def to(self, command: str) -> Reply | None:
        """The answer to a command, by its id; None while there is none."""
        answer = self._journal.requests.answer_to(command, SPAWNER) if command else None
        return Reply.model_validate_json(answer) if answer is not None else None
