"""A screen of its own: every picture replaces the last one, and the terminal is given back."""

import os

import pytest

from services.cli.live_screen import ENTER, LEAVE, picture
from services.cli.terminal import TerminalScreen

SIZE = os.terminal_size((10, 4))


def after(*pictures: list[str]) -> list[str]:
    """What a terminal shows after these pictures."""
    screen = TerminalScreen(SIZE.lines, SIZE.columns)
    for lines in pictures:
        screen.feed(picture(lines, SIZE).encode())
    return screen.lines()


@pytest.mark.parametrize(
    "lines",
    [["one"], ["one", "two"], ["a", "b", "c", "d"], ["0123456789"] * 4, ["漢字漢字漢"], ["", "x"], ["x", "", "", ""]],
)
@pytest.mark.parametrize("before", [["longer than", "x" * 10, "y" * 10, "z" * 10], ["short"]])
def test_a_picture_replaces_all_of_the_one_before(before: list[str], lines: list[str]) -> None:
    assert after(before, lines) == [*lines, *[""] * (SIZE.lines - len(lines))]


def test_a_line_as_wide_as_the_window_keeps_its_last_letter() -> None:
    """An erase right after it would take that away: the cursor still stands on it."""
    assert not picture(["0123456789"] * 4, SIZE).endswith(("\x1b[K", "\x1b[J"))
    assert "0123456789\x1b[K" not in picture(["0123456789", "x"], SIZE)


def test_nothing_is_erased_before_it_is_drawn_over() -> None:
    drawn = picture(["one", "two"], SIZE)
    assert drawn.startswith("\x1b[Hone")
    assert "\x1b[2J" not in drawn


def test_the_screen_is_restored_afterwards() -> None:
    screen = TerminalScreen(4, 10)
    screen.feed(b"$ muster\r\n" + ENTER.encode() + picture(["table"], SIZE).encode())
    assert screen.alternate
    screen.feed(LEAVE.encode())
    assert screen.lines()[0] == "$ muster"
