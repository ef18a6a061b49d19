"""What a screen and a terminal title say about an agent's activity. What they don't say stays unknown."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.contract.states import Activity, Trouble
from shared.fleet.backend import Backend, Dialog, ScreenRules, Sign, TitleRule
from shared.fleet.screen_rules import LimitWarning
from shared.fleet.version_ranges import matches
from shared.screen.box import compiled
from shared.screen.look import ScreenLook, ScreenReading

PAINT = re.compile(r"[\s❯›●○◯>\u2500-\u259f]")
"""What changes where the same dialog is painted anew: the row that is chosen, how lines are wrapped, frames."""


def fingerprint(reading: ScreenReading) -> str:
    """The same as long as the very same dialog stands there; empty where there is none."""
    if reading.dialog is None:
        return ""
    text = f"{reading.dialog.id}\n{PAINT.sub('', reading.dialog_text)}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


PLACEHOLDER = re.compile(r"\{(\w+)\}")
OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
LONGEST_QUOTE = 120
INPUT_BOX = "input-box"
"""What stands for a rule where only an input box tells."""


@dataclass(frozen=True, slots=True)
class ScreenActivity:
    """What one rule tells."""

    says: Activity
    rule: str
    """Its id."""
    why: str
    """For people."""
    weak: bool = False
    """Told by what is absent, or only a hint."""
    dialog: str = ""
    """The dialog as it stands there, where it is one."""
    trouble: Trouble | None = None
    """Why the agent can't go on by itself, where that is told."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """What the named groups of the rule matched, each in one line: when a limit is reset, say."""


def read_signs(backend: Backend, screen: str, version: str | None = None) -> ScreenActivity | None:
    """What a styled screen tells; None when it tells nothing.

    A dialog by which it asks comes first, then signs that count over work, signs of work, other signs (the lowest), a
    dialog that a person opened, and last an input box with nothing of all that: the agent seems to wait, but only seems
    so. Without a box it never waits.
    """
    look = ScreenLook(backend.screen, screen, version)
    if look.dialog is not None and look.dialog[0].asks != "waiting":
        return _of_dialog(look, *look.dialog)
    over = [name for name, sign in look.signs.items() if sign.over_work]
    told_elsewhere = {Activity.WORKING, *([Activity.WAITING] if look.box is None else [])}
    others = [name for name, sign in look.signs.items() if sign.says not in told_elsewhere]
    found = look.telling(over) or look.work or look.telling(others)
    if found is not None:
        name, place = found
        return _of_sign(name, look.signs[name], place)
    if look.dialog is not None:
        return _of_dialog(look, *look.dialog)
    if look.box is None or backend.screen.box is None:
        return None
    holds = "holds a text" if look.box.strip() else "is empty"
    why = f"its input box {holds}, and nothing on its screen shows work"
    return ScreenActivity(Activity.WAITING, INPUT_BOX, why, weak=True)


def read_warning(backend: Backend, screen: str, version: str | None = None) -> str:
    """What a styled screen warns of, in the agent's own words: a usage limit that is near. Empty where it does not."""
    return ScreenLook(backend.screen, screen, version).warning if backend.screen.warnings else ""


def shows_sign(rules: ScreenRules, sign: Sign | LimitWarning, screen: str) -> bool:
    """Whether a screen shows one sign, whatever else it shows and whichever version the sign is for."""
    return ScreenLook(rules, screen, None).find(sign) is not None


def shows_dialog(rules: ScreenRules, dialog: Dialog, screen: str) -> bool:
    """Whether a screen shows one dialog, whatever others it shows and whichever version the dialog is for."""
    return ScreenLook(rules, screen, None).find_dialog(dialog) is not None


def _of_dialog(look: ScreenLook, dialog: Dialog, place: re.Match[str]) -> ScreenActivity:
    """A dialog that comes with a limit may stand below a banner, which says more."""
    says, why, groups = Activity(dialog.asks), f"its screen shows {dialog.says}", _groups(place)
    found = look.telling([name for name, sign in look.signs.items() if sign.says is Activity.LIMITED])
    if found is not None and says is Activity.LIMITED:
        banner = _of_sign(found[0], look.signs[found[0]], found[1])
        why, groups = f"{why}: {banner.why}", {**banner.groups, **groups}
    return ScreenActivity(says, dialog.id, why, dialog=look.from_there(place), groups=groups)


def _of_sign(name: str, sign: Sign, place: re.Match[str]) -> ScreenActivity:
    groups = _groups(place)
    quoted = _in_one_line(place[0])
    cut = quoted if len(quoted) <= LONGEST_QUOTE else f"{quoted[: LONGEST_QUOTE - 1]}…"
    why = _filled(sign.reason, groups) if sign.reason else f"it shows: {cut}"
    return ScreenActivity(sign.says or Activity.UNKNOWN, name, why, trouble=sign.trouble, groups=groups)


def _groups(place: re.Match[str]) -> dict[str, str]:
    return {key: _in_one_line(value) for key, value in place.groupdict().items() if value}


def _filled(reason: str, groups: Mapping[str, str]) -> str:
    kept = OPTIONAL.sub(lambda part: part[1] if set(PLACEHOLDER.findall(part[1])) <= groups.keys() else "", reason)
    return _in_one_line(PLACEHOLDER.sub(lambda found: groups.get(found[1], ""), kept))


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


MOST_CHARACTERS = 1000
LONGEST_TITLE = 80


def read_title(backend: Backend, title: str, version: str | None = None) -> ScreenActivity | None:
    """What a title tells, by the first rule that it fits; None when it tells nothing."""
    for name, rule in backend.titles.items():
        if rule is not None and rule.says is not None and matches(rule.versions, version) and fits_title(rule, title):
            bare = " ".join(title.split())
            shown = bare if len(bare) <= LONGEST_TITLE else f"{bare[: LONGEST_TITLE - 1]}…"
            return ScreenActivity(rule.says, name, f"its terminal's title is {shown!r}", weak=rule.weak)
    return None


def fits_title(rule: TitleRule, title: str) -> bool:
    """Whether a title fits a rule, whichever version that is for."""
    return bool(rule.match) and compiled(rule.match).search(title[:MOST_CHARACTERS]) is not None
