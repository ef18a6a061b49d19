"""What a program wrote to its terminal, as lines that a person can read."""

from services.cli.terminal.emulator import TerminalScreen
from services.cli.terminal.lines import LineReading, UnseenLines, tidy

__all__ = ["LineReading", "TerminalScreen", "UnseenLines", "tidy"]
