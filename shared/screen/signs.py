"""The activity of an agent by its screen and by its terminal title."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.contract.states import Activity, Trouble
from shared.fleet.backend import Backend, Dialog, ScreenRules, Sign, TitleRule
from shared.fleet.screen_rules import LimitWarning
from shared.fleet.version_ranges import matches
from shared.screen.box import compiled
from shared.screen.look import PLACEHOLDER, ScreenLook, ScreenReading

FRAME = r"\s\u2500-\u259f"
PAINT = re.compile(rf"^[{FRAME}]*[❯›●○◯>]?[{FRAME}]*|[{FRAME}]+$", re.MULTILINE)
"""What changes when the same dialog is drawn again: frames, and the mark of the selected row. Only around rows: inside
them, a blank or a `>` makes another command."""


def fingerprint(reading: ScreenReading) -> str:
    """Identifies the dialog on the screen; empty if there is none."""
    if reading.dialog is None:
        return ""
    text = f"{reading.dialog.id}\n{' '.join(PAINT.sub('', reading.dialog_text).split())}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
LONGEST_QUOTE = 120
INPUT_BOX = "input-box"
"""The rule's id if only an input box is seen."""


@dataclass(frozen=True, slots=True)
class ScreenActivity:
    """The activity by one rule."""

    says: Activity
    rule: str
    why: str
    """The reason, for people."""
    weak: bool = False
    """Whether it follows from something absent, or is only a hint."""
    dialog: str = ""
    """The dialog as the screen shows it, if it is one."""
    trouble: Trouble | None = None
    """Why the agent can't go on by itself, if the rule says so."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """The named groups of the rule, each in one line: the reset time of a limit, for example."""


def read_signs(backend: Backend, screen: str, version: str | None = None) -> ScreenActivity | None:
    """The activity by a styled screen; None if it shows nothing.

    A dialog that asks something comes first, then signs that count over work, signs of work, other signs (the lowest
    one), a dialog that a person opened, and last a bare input box: then the agent seems to wait. Without a box it never
    waits.
    """
    return _activity(backend, ScreenLook(backend.screen, screen, version))


def read_signs_and_warning(
    backend: Backend, screen: str, version: str | None = None
) -> tuple[ScreenActivity | None, str]:
    """The same, and the agent's own warning that a usage limit is near; empty if there is none."""
    look = ScreenLook(backend.screen, screen, version)
    return _activity(backend, look), look.warning


def _activity(backend: Backend, look: ScreenLook) -> ScreenActivity | None:
    if look.dialog is not None and look.dialog[0].asks != "waiting":
        return _of_dialog(look, *look.dialog)
    over = [name for name, sign in look.signs.items() if sign.over_work]
    excluded = {Activity.WORKING, *([] if look.has_box else [Activity.WAITING])}
    others = [name for name, sign in look.signs.items() if sign.says not in excluded]
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


def shows_sign(rules: ScreenRules, sign: Sign | LimitWarning, screen: str) -> bool:
    """Whether a screen shows a sign, whatever its versions."""
    return ScreenLook(rules, screen, None).find(sign) is not None


def shows_dialog(rules: ScreenRules, dialog: Dialog, screen: str) -> bool:
    """Whether a screen shows a dialog, whatever its versions."""
    return ScreenLook(rules, screen, None).find_dialog(dialog) is not None


def _of_dialog(look: ScreenLook, dialog: Dialog, place: re.Match[str]) -> ScreenActivity:
    """The activity by a dialog. A banner above a dialog about a limit says more about it."""
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
    """The activity by the first rule that a title fits; None if it fits none."""
    for name, rule in backend.titles.items():
        if rule is not None and rule.says is not None and matches(rule.versions, version) and fits_title(rule, title):
            bare = " ".join(title.split())
            shown = bare if len(bare) <= LONGEST_TITLE else f"{bare[: LONGEST_TITLE - 1]}…"
            return ScreenActivity(rule.says, name, f"its terminal's title is {shown!r}", weak=rule.weak)
    return None


def fits_title(rule: TitleRule, title: str) -> bool:
    """Whether a title fits a rule, whatever its versions."""
    return bool(rule.match) and compiled(rule.match).search(title[:MOST_CHARACTERS]) is not None
