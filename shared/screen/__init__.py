"""Reading what an agent shows, by the rules of its backend. Pure: a screen or a title in, what is on it out.

`read_screen` tells what matters for typing, `read_signs` and `read_title` what the agent is doing.
"""

from shared.screen.holding import holds, shows_placeholder
from shared.screen.patterns import compiled
from shared.screen.reading import Reading, read_screen
from shared.screen.sighting import Sighting, read_signs, read_warning, shows_dialog, shows_sign
from shared.screen.styles import unstyle
from shared.screen.titles import fits_title, read_title

__all__ = [
    "Reading",
    "Sighting",
    "compiled",
    "fits_title",
    "holds",
    "read_screen",
    "read_signs",
    "read_title",
    "read_warning",
    "shows_dialog",
    "shows_placeholder",
    "shows_sign",
    "unstyle",
]
