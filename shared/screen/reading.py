"""What is on a screen, as far as delivering a text is concerned."""

import re
from dataclasses import dataclass

from shared.fleet.backend import Backend, Dialog
from shared.fleet.section import KEY_NAME
from shared.screen.look import Look

PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Reading:
    """What is on a screen, as far as delivering a text is concerned."""

    box: str | None
    """What is in the input box; None when there is no box to type into."""
    dialog: Dialog | None
    working: bool
    dialog_text: str = ""
    """The dialog as it stands there, to tell one from the next."""
    leave: tuple[str, ...] = ()
    """What to press to leave the dialog with nothing bought, changed or called off; none: only a person can."""
    resume: tuple[str, ...] = ()
    """What to press to have the agent go on with what was refused."""

    @property
    def empty(self) -> bool:
        return self.box is not None and not self.box.strip()


def _filled(keys: list[str], place: re.Match[str]) -> tuple[str, ...]:
    """Keys with what the rule's groups matched in them; none at all where one of those is not there."""
    groups = {name: found for name, found in place.groupdict().items() if found}
    filled = tuple(PLACEHOLDER.sub(lambda each: groups.get(each[1], ""), key) for key in keys)
    return filled if all(re.fullmatch(KEY_NAME, key) for key in filled) else ()


def read_screen(backend: Backend, screen: str, version: str | None = None) -> Reading:
    """Read a styled screen. Rules for other versions of the program don't count; where it is not known, all do."""
    look = Look(backend.screen, screen, version)
    working = look.work is not None
    if look.dialog is not None:
        dialog, place = look.dialog
        keys = (_filled(each, place) for each in (dialog.leave, dialog.resume))
        return Reading(None, dialog, working, look.from_there(place), *keys)
    return Reading(look.box, None, working)
