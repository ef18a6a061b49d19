"""Reads an agent's screen and terminal title by the rules of its backend. Pure.

`read_screen` finds what matters for typing, `read_signs` and `read_title` what the agent is doing.
"""

from shared.screen.box import compiled, holds, shows_placeholder
from shared.screen.look import ScreenReading, read_screen
from shared.screen.signs import (
    ScreenActivity,
    fits_title,
    read_signs,
    read_title,
    read_warning,
    shows_dialog,
    shows_sign,
)
from shared.screen.styles import unstyle

__all__ = [
    "ScreenActivity",
    "ScreenReading",
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
