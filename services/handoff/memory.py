"""What is remembered of a loop over restarts, as JSON and back."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from services.handoff.loops.course import Course
from services.handoff.loops.errands import Errand
from shared.turn import Turn

SEEN, DOWN, COURSE, ERRANDS, BOX = "seen:", "down:", "course:", "errands:", "box:"
TOLD_AT_MOST = 1_000


@dataclass(frozen=True)
class Seen:
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

    def with_told(self, keys: Iterable[str], dropped: Collection[str]) -> "Seen":
        """The same after commits were told, and others dropped."""
        told = (*self.told, *keys)[-TOLD_AT_MOST:]
        lost = dict.fromkeys([*self.lost, *sorted(dropped)])
        return replace(self, told=told, lost=tuple(lost)[-TOLD_AT_MOST:])


class Memory:
    """One turn's view of it."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    def seen(self, loop: str) -> Seen | None:
        kept = self._turn.recall(f"{SEEN}{loop}")
        if not kept:
            return None
        known = _known(Seen, kept)
        lists = {name: tuple(kept.get(name, ())) for name in ("told", "lost", "inbox")}
        return Seen(**{**known, **lists})

    def keep_seen(self, loop: str, seen: Seen) -> None:
        self._turn.remember(f"{SEEN}{loop}", asdict(seen))

    def down_since(self, loop: str) -> float | None:
        """Since when it is told that a loop's remote does not answer."""
        kept = self._turn.recall(f"{DOWN}{loop}")
        return float(kept) if kept is not None else None

    def keep_down_since(self, loop: str, since: float | None) -> None:
        self._turn.remember(f"{DOWN}{loop}", since)

    def course(self, loop: str) -> Course:
        kept = self._turn.recall(f"{COURSE}{loop}")
        return Course(**{**_known(Course, kept), "stale": tuple(kept["stale"])}) if kept else Course()

    def keep_course(self, loop: str, course: Course) -> None:
        if course != self.course(loop):
            self._turn.remember(f"{COURSE}{loop}", asdict(course))

    def errands(self, loop: str) -> list[Errand]:
        return [Errand.read(each) for each in self._turn.recall(f"{ERRANDS}{loop}") or []]

    def keep_errands(self, loop: str, errands: list[Errand]) -> None:
        if errands != self.errands(loop):
            self._turn.remember(f"{ERRANDS}{loop}", [each.document() for each in errands] or None)


def _known(kind: type[Any], kept: Mapping[str, Any]) -> dict[str, Any]:
    """What a later version may have kept besides is passed over."""
    names = {each.name for each in fields(kind)}
    return {name: value for name, value in kept.items() if name in names}
