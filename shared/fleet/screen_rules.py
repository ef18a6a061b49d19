"""Rules that read an agent's activity from its screen and terminal title: data, each with its own samples."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from shared.contract.ids import Id
from shared.contract.states import Activity, Trouble
from shared.fleet.section import KeyName, Regex, Section
from shared.fleet.version_ranges import parse


def _is_range(wanted: str) -> str:
    parse(wanted)
    return wanted


Versions = Annotated[str, AfterValidator(_is_range)]
"""Of the agent's program: `>=2.1.300`, `>=2.1, <2.2`. Empty: all of them."""


class Below(StrEnum):
    """Which part of the screen a sign is looked for in."""

    LAST_PROMPT = "last_prompt"  # from the last prompt that was sent down to the input box
    BOX = "box"  # the footer
    ANYWHERE = "anywhere"


class Style(StrEnum):
    """How characters look: faint, or a colour as people tell them apart, whatever the theme makes of it."""

    FAINT = "faint"
    GREY = "grey"
    RED = "red"
    YELLOW = "yellow"
    GREEN = "green"
    BLUE = "blue"
    PURPLE = "purple"


class Sign(Section):
    """Something on the screen that tells what the agent is doing. It needs `says` and `match`."""

    says: Activity | None = None
    match: Regex = ""
    """With `below: last_prompt`, its end `\\Z` is directly above the input box. `reason` can use its named groups."""
    below: Below = Below.LAST_PROMPT
    """Where it is looked for: an old banner above the last prompt says nothing any more."""
    style: Style | None = None
    """Of the group `text`, else of all that matched; not asked where nothing on the screen has a style of that kind."""
    trouble: Trouble | None = None
    """Why it can't go on by itself, where it says `failed`."""
    over_work: bool = False
    """Whether it counts though the screen shows work: the agent waits, and tries again by itself."""
    reason: str = ""
    """A sentence for people. `{reset}` is what that group matched; what stands in [ ] needs all of its groups."""
    versions: Versions = ""
    """Of the program, for which it is."""
    yes: list[str] = []
    """Screens that show it, and …"""
    no: list[str] = []
    """… such that do not, though they look alike."""


class LimitWarning(Section):
    """Something on the screen that warns of a usage limit before it is reached. It needs `match`."""

    match: Regex = ""
    """Its group `text`, else all of it, is what a person is told."""
    below: Below = Below.ANYWHERE
    """Where it is looked for."""
    style: Style | None = None
    """As for a sign."""
    versions: Versions = ""
    """Of the program, for which it is."""
    yes: list[str] = []
    """Screens that show it, and …"""
    no: list[str] = []
    """… such that do not, though they look alike."""


class TitleRule(Section):
    """What the terminal's title tells. It needs `says` and `match`."""

    says: Activity | None = None
    match: Regex = ""
    """Searched in the title."""
    weak: bool = False
    """Whether it is only a hint, which doubts no other evidence."""
    versions: Versions = ""
    """Of the program, for which it is."""
    yes: list[str] = []
    """Titles that are such, and …"""
    no: list[str] = []
    """… such that are not."""


class Dialog(Section):
    """Something on the screen that takes the keys: nothing is typed while it is there. It needs `match` and `says`."""

    id: Id
    """Its name among the dialogs."""
    match: Regex | None = ""
    """Searched in the lines at the bottom of the screen. `null` takes a shipped dialog away.

    A group `panel` stands on a background of its own, as do the rows around it; a group `chosen` on another one than
    the group `others`.
    """
    says: str = ""
    """What a person is told: `a permission dialog`."""
    asks: Literal["needs_approval", "limited", "waiting"] = "needs_approval"
    """What it means that it is there; `waiting`: a person opened it, and the agent asks nothing."""
    approve: list[KeyName] = []
    """What to press for yes, this once; none: only a person at the terminal can."""
    deny: list[KeyName] = []
    """What to press for no."""
    numbered: bool = False
    """Whether it is a choice whose rows are chosen by their number."""
    leave: list[str] = []
    """What to press to leave it with nothing bought, changed or called off; `{row}` is what that group matched."""
    resume: list[str] = []
    """What to press, where it is about a usage limit that has lifted, to have the agent go on with what was refused."""
    over: bool = False
    """Whether it stands over an input box that is still whole. Else it is not looked for where the box is."""
    versions: Versions = ""
    """Of the program, for which it is."""
    yes: list[str] = []
    """Screens that are such a dialog, and …"""
    no: list[str] = []
    """… such that are not, though they look alike. Tests hold the rule to both."""


class ScreenRules(Section):
    """How to read what the agent shows."""

    box: Regex | None = None
    """The input box, with the group `text`; typed into only while it is there. None: typed into at any time.

    A group `frame` is as wide as the box: what stands to the right of it is not in the box.
    """
    box_rows: int = Field(default=40, ge=1)
    """How many rows from the bottom up are read: so far up the box may begin."""
    continued: Regex = r"^ {0,2}"
    """What the box puts before each further line of the text."""
    beside: Regex | None = None
    """What the box puts beside the text in a row, a mark that it scrolls, say."""
    ghost: list[Regex] = []
    """Texts that the box shows while it is empty."""
    placeholder: Regex | None = None
    """What the box shows for a long paste, in place of it."""
    above: Regex | None = None
    """What the box puts above itself, up to `\\Z`: no part of the conversation."""
    prompt: Regex | None = None
    """A prompt that was sent, as it stands above the box, with all its rows."""
    signs: dict[Id, Sign | None] = {}
    """What tells what the agent is doing. `null` takes a shipped one away."""
    warnings: dict[Id, LimitWarning | None] = {}
    """What warns of a usage limit before it is reached. `null` takes a shipped one away."""
    dialogs: list[Dialog] = []
    """What may stand in the way of typing. The first that matches counts, your own before the shipped ones."""
