"""What a terminal's title tells of what the agent is doing: evidence, never authority."""

from shared.fleet.backend import Backend, TitleRule
from shared.screen.patterns import compiled
from shared.screen.sighting import Sighting
from shared.versions import matches

MOST_CHARACTERS = 1000
LONGEST_QUOTE = 80


def read_title(backend: Backend, title: str, version: str | None = None) -> Sighting | None:
    """What a title tells, by the first rule that it fits; None when it tells nothing."""
    for name, rule in backend.titles.items():
        if rule is not None and rule.says is not None and matches(rule.versions, version) and fits_title(rule, title):
            bare = " ".join(title.split())
            shown = bare if len(bare) <= LONGEST_QUOTE else f"{bare[: LONGEST_QUOTE - 1]}…"
            return Sighting(rule.says, name, f"its terminal's title is {shown!r}", weak=rule.weak)
    return None


def fits_title(rule: TitleRule, title: str) -> bool:
    """Whether a title fits a rule, whichever version that is for."""
    return bool(rule.match) and compiled(rule.match).search(title[:MOST_CHARACTERS]) is not None
