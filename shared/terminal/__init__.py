"""What a program wrote to its terminal, as lines that a person can read."""

from shared.terminal.fresh import Fresh
from shared.terminal.reading import Reading, tidy
from shared.terminal.screen import Screen

__all__ = ["Fresh", "Reading", "Screen", "tidy"]
