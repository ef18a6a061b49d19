"""Reads an agent's screen and terminal title by the rules of its backend. Pure.

`read_screen` finds what matters for typing, `read_signs` and `read_title` what the agent is doing, `grid` and
`current_line` what people are shown of it.
"""

from shared.screen.box import compiled, holds, shows_placeholder
from shared.screen.grid import grid
from shared.screen.look import ScreenReading, current_line, read_screen
from shared.screen.signs import (
    ScreenActivity,
    fits_title,
    read_signs,
    read_signs_and_warning,
    read_title,
    shows_dialog,
    shows_sign,
)
from shared.screen.styles import unstyle

__all__ = [
    "ScreenActivity",
    "ScreenReading",
    "compiled",
    "current_line",
    "fits_title",
    "grid",
    "holds",
    "read_screen",
    "read_signs",
    "read_signs_and_warning",
    "read_title",
    "shows_dialog",
    "shows_placeholder",
    "shows_sign",
    "unstyle",
]
