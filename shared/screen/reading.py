"""What is on a screen, as far as delivering a text is concerned."""

from dataclasses import dataclass

from shared.fleet.backend import Backend, Dialog
from shared.screen.look import Look


@dataclass(frozen=True, slots=True)
class Reading:
    """What is on a screen, as far as delivering a text is concerned."""

    box: str | None
    """What is in the input box; None when there is no box to type into."""
    dialog: Dialog | None
    working: bool
    dialog_text: str = ""
    """The dialog as it stands there, to tell one from the next."""

    @property
    def empty(self) -> bool:
        return self.box is not None and not self.box.strip()


def read_screen(backend: Backend, screen: str, version: str | None = None) -> Reading:
    """Read a styled screen. Rules for other versions of the program don't count; where it is not known, all do."""
    look = Look(backend.screen, screen, version)
    working = look.work is not None
    if look.dialog is not None:
        dialog, place = look.dialog
        return Reading(None, dialog, working, look.from_there(place))
    return Reading(look.box, None, working)
