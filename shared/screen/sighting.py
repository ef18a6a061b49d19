"""What a screen tells of what the agent is doing. What it does not tell stays unknown."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.fleet.backend import Backend, Dialog, Screen, Sign
from shared.fleet.signs import LimitWarning
from shared.screen.look import Look
from shared.states import Activity, Trouble

PLACEHOLDER = re.compile(r"\{(\w+)\}")
OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
LONGEST_QUOTE = 120
INPUT_BOX = "input-box"
"""What stands for a rule where only an input box tells."""


@dataclass(frozen=True, slots=True)
class Sighting:
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


def read_signs(backend: Backend, screen: str, version: str | None = None) -> Sighting | None:
    """What a styled screen tells; None when it tells nothing.

    A dialog by which it asks comes first, then signs that count over work, signs of work, other signs (the lowest), a
    dialog that a person opened, and last an input box with nothing of all that: the agent seems to wait, but only seems
    so. Without a box it never waits.
    """
    look = Look(backend.screen, screen, version)
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
    return Sighting(Activity.WAITING, INPUT_BOX, why, weak=True)


def read_warning(backend: Backend, screen: str, version: str | None = None) -> str:
    """What a styled screen warns of, in the agent's own words: a usage limit that is near. Empty where it does not."""
    return Look(backend.screen, screen, version).warning if backend.screen.warnings else ""


def shows_sign(rules: Screen, sign: Sign | LimitWarning, screen: str) -> bool:
    """Whether a screen shows one sign, whatever else it shows and whichever version the sign is for."""
    return Look(rules, screen, None).find(sign) is not None


def shows_dialog(rules: Screen, dialog: Dialog, screen: str) -> bool:
    """Whether a screen shows one dialog, whatever others it shows and whichever version the dialog is for."""
    return Look(rules, screen, None).find_dialog(dialog) is not None


def _of_dialog(look: Look, dialog: Dialog, place: re.Match[str]) -> Sighting:
    """A dialog that comes with a limit may stand below a banner, which says more."""
    says, why, groups = Activity(dialog.asks), f"its screen shows {dialog.says}", _groups(place)
    found = look.telling([name for name, sign in look.signs.items() if sign.says is Activity.LIMITED])
    if found is not None and says is Activity.LIMITED:
        banner = _of_sign(found[0], look.signs[found[0]], found[1])
        why, groups = f"{why}: {banner.why}", {**banner.groups, **groups}
    return Sighting(says, dialog.id, why, dialog=look.from_there(place), groups=groups)


def _of_sign(name: str, sign: Sign, place: re.Match[str]) -> Sighting:
    groups = _groups(place)
    quoted = _in_one_line(place[0])
    cut = quoted if len(quoted) <= LONGEST_QUOTE else f"{quoted[: LONGEST_QUOTE - 1]}…"
    why = _filled(sign.reason, groups) if sign.reason else f"it shows: {cut}"
    return Sighting(sign.says or Activity.UNKNOWN, name, why, trouble=sign.trouble, groups=groups)


def _groups(place: re.Match[str]) -> dict[str, str]:
    return {key: _in_one_line(value) for key, value in place.groupdict().items() if value}


def _filled(reason: str, groups: Mapping[str, str]) -> str:
    kept = OPTIONAL.sub(lambda part: part[1] if set(PLACEHOLDER.findall(part[1])) <= groups.keys() else "", reason)
    return _in_one_line(PLACEHOLDER.sub(lambda found: groups.get(found[1], ""), kept))


def _in_one_line(text: str) -> str:
    return " ".join(text.split())
