"""A terminal emulator for text only: where letters stand, and which lines scrolled away. No colours, no replies.

Agents repaint: they move the cursor, erase and write again, so stripping the escape sequences from their output does
not give readable text. How the bytes are split into chunks makes no difference.
"""

import codecs
import re
import unicodedata
from collections.abc import Callable, Iterator
from enum import StrEnum


class TokenKind(StrEnum):
    TEXT = "text"
    COMMAND = "command"
    """What follows `ESC [`: numbers and a letter that says what to do."""
    ESCAPE = "escape"
    CONTROL = "control"


TOKEN = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
    r"|\x1b\[(?P<command>[0-?]{0,64}[ -/]{0,4}[@-~])"
    r"|(?P<string>\x1b[\]PX^_])"
    r"|\x1b(?P<escape>[ -/]{0,4}[0-Z\\`-~])"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f-\x9f])"
)
UNFINISHED = re.compile(r"\x1b(?:\[[0-?]{0,64}[ -/]{0,4}|[ -/]{0,4})")
STRING_END = re.compile(r"[\x07\x18\x1a\x1b]")


class Tokens:
    """Cuts bytes into tokens. What is not complete waits for the next bytes."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._in_string = False

    def feed(self, data: bytes) -> Iterator[tuple[TokenKind, str]]:
        text = self._rest + self._decoder.decode(data)
        self._rest = ""
        at = 0
        while at < len(text):
            if self._in_string:
                at = self._skip_string(text, at)
            elif found := TOKEN.match(text, at):
                at = found.end()
                if found.lastgroup == "string":
                    self._in_string = True
                elif found.lastgroup:
                    yield TokenKind(found.lastgroup), found[found.lastgroup]
            elif UNFINISHED.fullmatch(text, at):
                self._rest = text[at:]
                return
            else:
                at += 1  # an escape that begins no sequence

    def _skip_string(self, text: str, at: int) -> int:
        """Any escape ends a string, so that a torn one does no harm."""
        end = STRING_END.search(text, at)
        self._in_string = end is None
        return len(text) if end is None else end.start() if end[0] == "\x1b" else end.end()


Row = list[str]


class Grid:
    """Rows of cells. A row is as long as what was written to it; the rest is blank."""

    def __init__(self, rows: int) -> None:
        self.rows: list[Row] = [[] for _ in range(rows)]

    def line(self, y: int) -> str:
        return "".join(self.rows[y]).rstrip()

    def place(self, y: int, x: int, cells: Row) -> None:
        row = self.rows[y]
        end = x + len(cells)
        row.extend(" " * (x - len(row)))
        if 0 < x < len(row) and row[x] == "":
            row[x - 1] = " "  # what is left of a wide letter is not a letter
        if end < len(row) and row[end] == "":
            row[end] = " "
        row[x:end] = cells

    def join(self, y: int, x: int, mark: str) -> None:
        """Put an accent on the letter before this place."""
        row = self.rows[y]
        for at in range(min(x, len(row)) - 1, -1, -1):
            if row[at]:
                row[at] += mark
                return

    def erase(self, y: int, start: int = 0, end: int | None = None) -> None:
        row = self.rows[y]
        if end is None or end >= len(row):
            del row[start:]
        elif start < end:
            self.place(y, start, [" "] * (end - start))

    def insert(self, y: int, x: int, count: int) -> None:
        row = self.rows[y]
        if x < len(row):
            row[x:x] = [" "] * count

    def delete(self, y: int, x: int, count: int) -> None:
        del self.rows[y][x : x + count]

    def shift(self, top: int, bottom: int, count: int) -> None:
        """Move the rows from `top` to `bottom` up by `count`, or down when it is negative; what leaves is lost."""
        region = self.rows[top : bottom + 1]
        size = len(region)
        count = max(-size, min(count, size))
        blank: list[Row] = [[] for _ in range(abs(count))]
        self.rows[top : bottom + 1] = region[count:] + blank if count >= 0 else blank + region[: size + count]


TAB = 8
MOST_ROWS = 300
"""A program that names a row beyond this asks for the end of the screen, to learn its size."""
WHOLE_SCREEN = {"47", "1047", "1049"}
FRAME_ENDS = {("2026", False), ("25", True)}
"""What programs send when a repaint is complete: the end of a synchronised one, or the cursor is shown again."""


class TerminalScreen:
    """Takes bytes; shows `lines()` and `gone`.

    It is wider than a real terminal, so that long lines are not wrapped, and grows when a program names a row below its
    last one. `gone` holds what scrolled away at the top of the main screen; its reader empties it. `on_frame` is called
    when a repaint is complete, `on_forget` when the program clears the scrollback, as some do before they write all of
    it again.
    """

    def __init__(self, rows: int = 50, columns: int = 1000) -> None:
        self.columns = columns
        self.gone: list[str] = []
        self.on_frame: Callable[[], None] = lambda: None
        self.on_forget: Callable[[], None] = lambda: None
        self._tokens = Tokens()
        self._rows = rows
        self._begin()

    def _begin(self) -> None:
        self._main, self._other = Grid(self._rows), Grid(self._rows)
        self._grid = self._main
        self._x = self._y = 0
        self._saved = (0, 0)
        self._top, self._bottom = 0, self._rows - 1
        self._last = " "

    @property
    def alternate(self) -> bool:
        """Whether the program has taken the whole screen, as editors do: nothing scrolls away there."""
        return self._grid is self._other

    def lines(self) -> list[str]:
        """What is on the screen, row by row, without spaces at the ends."""
        return [self._grid.line(y) for y in range(self._rows)]

    def feed(self, data: bytes) -> None:
        for kind, token in self._tokens.feed(data):
            match kind:
                case TokenKind.TEXT:
                    self._write(token)
                case TokenKind.COMMAND:
                    self._command(token)
                case TokenKind.CONTROL:
                    self._control(token)
                case TokenKind.ESCAPE:
                    self._escape(token)

    def _write(self, text: str) -> None:
        if text.isascii():
            self._last = text[-1]
            self._place(list(text))
            return
        for letter in text:
            category = unicodedata.category(letter)
            if category in ("Mn", "Me"):
                self._grid.join(self._y, self._x, letter)
            elif category == "Zs":
                self._place([" "])
            elif category not in ("Cf", "Zl", "Zp"):  # joiners and direction marks would disorder a reader's terminal
                self._last = letter
                self._place([letter, ""] if unicodedata.east_asian_width(letter) in "WF" else [letter])

    def _place(self, cells: list[str]) -> None:
        while cells:
            if self._x >= self.columns:
                self._x = 0
                self._down()
            here, cells = cells[: self.columns - self._x], cells[self.columns - self._x :]
            self._grid.place(self._y, self._x, here)
            self._x += len(here)

    def _control(self, control: str) -> None:
        match control:
            case "\n" | "\x0b" | "\x0c":
                self._down()
            case "\r":
                self._x = 0
            case "\b":
                self._x = max(0, self._x - 1)
            case "\t":
                self._x = min((self._x // TAB + 1) * TAB, self.columns - 1)

    def _escape(self, escape: str) -> None:
        match escape:
            case "D":
                self._down()
            case "E":
                self._x = 0
                self._down()
            case "M" if self._y == self._top:
                self._grid.shift(self._top, self._bottom, -1)
            case "M":
                self._y = max(self._y - 1, 0)
            case "7":
                self._saved = (self._x, self._y)
            case "8":
                self._x, self._y = self._saved
            case "c":
                self._begin()

    def _down(self) -> None:
        if self._y == self._bottom:
            self._scroll(1)
        else:
            self._y = min(self._y + 1, self._rows - 1)

    def _scroll(self, count: int) -> None:
        if self._top == 0 and not self.alternate:
            self.gone += [self._grid.line(y) for y in range(min(count, self._bottom + 1))]
        self._grid.shift(self._top, self._bottom, count)

    # --- commands ---

    def _command(self, command: str) -> None:
        final, given = command[-1], command[:-1]
        if given[:1] in ("?", "<", "=", ">"):
            if final in "hl" and given[0] == "?":
                self._mode(given[1:].split(";"), on=final == "h")
            return
        if given and not given[-1].isdigit() and given[-1] not in ";:":
            return  # an intermediate letter makes another command of it
        numbers = [int(number) if number.isdigit() else 0 for number in given.split(";")]
        first = max(1, numbers[0])
        match final:
            case "A" | "B" | "C" | "D" | "E" | "F" | "G" | "`" | "a" | "d" | "e" | "H" | "f":
                self._move(final, first, numbers[1] if len(numbers) > 1 else 1)
            case "J":
                self._erase_display(numbers[0])
            case "S":
                self._scroll(first)
            case "T":
                self._grid.shift(self._top, self._bottom, -first)
            case "r":
                self._set_region(numbers)
            case "s":
                self._saved = (self._x, self._y)
            case "u" if not given:
                self._x, self._y = self._saved
            case _:
                self._edit(final, numbers[0])

    def _edit(self, final: str, number: int) -> None:
        """What changes the letters from where the cursor is."""
        x, y, count = self._x, self._y, max(1, number)
        match final:
            case "K":
                start, end = ((x, None), (0, x + 1), (0, None))[min(number, 2)]
                self._grid.erase(y, start, end)
            case "X":
                self._grid.erase(y, x, x + count)
            case "@":
                self._grid.insert(y, x, min(count, self.columns))
            case "P":
                self._grid.delete(y, x, count)
            case "L" | "M" if self._top <= y <= self._bottom:
                self._grid.shift(y, self._bottom, count if final == "M" else -count)
            case "b":
                self._write(self._last * min(count, self.columns))

    def _move(self, final: str, first: int, second: int) -> None:
        x, y = self._x, self._y
        match final:
            case "A" | "F":
                y -= first
            case "B" | "E" | "e":
                y += first
            case "C" | "a":
                x += first
            case "D":
                x -= first
            case "G" | "`":
                x = first - 1
            case "d":
                y = self._row(first)
            case "H" | "f":
                x, y = max(1, second) - 1, self._row(first)
        self._x = 0 if final in "EF" else max(0, min(x, self.columns - 1))
        self._y = max(0, min(y, self._rows - 1))

    def _row(self, number: int) -> int:
        """A row that a program names, from 1; it knows how many there are."""
        if self._rows < number <= MOST_ROWS:
            more = number - self._rows
            for grid in (self._main, self._other):
                grid.rows += Grid(more).rows
            self._bottom += more if self._bottom == self._rows - 1 else 0
            self._rows = number
        return min(number, self._rows) - 1

    def _erase_display(self, what: int) -> None:
        match what:
            case 0:
                self._grid.erase(self._y, self._x)
                lines = range(self._y + 1, self._rows)
            case 1:
                self._grid.erase(self._y, 0, self._x + 1)
                lines = range(self._y)
            case 2:
                lines = range(self._rows)
            case _:
                self.on_forget()
                return
        for y in lines:
            self._grid.erase(y)

    def _set_region(self, numbers: list[int]) -> None:
        top = max(1, numbers[0])
        bottom = numbers[1] if len(numbers) > 1 and numbers[1] else self._rows
        if top < bottom:
            self._top, self._bottom = top - 1, self._row(bottom)
            self._x = self._y = 0

    def _mode(self, numbers: list[str], *, on: bool) -> None:
        for number in numbers:
            if number in WHOLE_SCREEN and on != self.alternate:
                self.on_frame()
                self._other = Grid(self._rows)
                self._grid = self._other if on else self._main
            if (number, on) in FRAME_ENDS:
                self.on_frame()
