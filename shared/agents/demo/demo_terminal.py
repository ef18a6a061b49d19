"""What a demo agent shows: lines that scroll, coloured by how they begin, and below them a block that is redrawn."""

import re
import shutil
import sys

BOLD, FAINT, RED, GREEN, YELLOW, CYAN = "1", "2", "31", "32", "33", "36"
COLOURED = (
    (re.compile(r"^(> heard:)(.*)"), BOLD),
    (re.compile(r"^(●)( .*)"), GREEN),
    (re.compile(r"^(\*)( .*)"), CYAN),
    (re.compile(r"^(! .*)()"), RED),
    (re.compile(r"^(  └ .*\bfailed\b.*)()"), RED),
    (re.compile(r"^(  └ .*\bpassed\b.*)()"), GREEN),
    (re.compile(r"^(  └ .*)()"), FAINT),
    (re.compile(r"^( +\d+ \+ .*)()"), GREEN),
    (re.compile(r"^( +\d+ - .*)()"), RED),
)
"""The part of a line that is coloured, and the rest; the first that matches counts."""


def styled(text: str, style: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m"


def coloured(line: str) -> str:
    for pattern, style in COLOURED:
        if found := pattern.match(line):
            return styled(found[1], style) + found[2]
    return line


class DemoTerminal:
    def __init__(self) -> None:
        self._drawn: list[str] = []

    def draw(self, said: list[str], block: list[str]) -> None:
        """Show new lines, and the block below them. Without new lines only the rows that changed are written."""
        if not said and len(block) == len(self._drawn):
            self._redraw(block)
        else:
            up = len(self._drawn) - 1
            sys.stdout.write(f"\x1b[{up}A" if up > 0 else "")
            sys.stdout.write("\r\x1b[J" if self._drawn else "")
            sys.stdout.write("".join(f"{coloured(line)}\r\n" for line in said))
            sys.stdout.write("\r\n".join(block))
        sys.stdout.flush()
        self._drawn = list(block)

    def _redraw(self, block: list[str]) -> None:
        for up, (row, before) in enumerate(zip(reversed(block), reversed(self._drawn), strict=True)):
            if row != before:
                there, back = (f"\x1b[{up}A", f"\x1b[{up}B") if up else ("", "")
                sys.stdout.write(f"{there}\r\x1b[2K{row}{back}")

    def columns(self) -> int:
        return shutil.get_terminal_size().columns
