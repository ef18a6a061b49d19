"""A captured screen as rows of styled pieces: every colour and switch, and nothing that an agent could slip in."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shared.screen.grid import LONGEST_ROW, ScreenGrid, grid


def pieces(screen: str) -> list[list[tuple[str, dict[str, Any]]]]:
    """Each row's texts with their styles."""
    drawn = grid(screen)
    return [[(text, drawn.styles[number]) for text, number in row] for row in drawn.rows]


def style(codes: str) -> dict[str, Any]:
    ((_, found),) = pieces(f"\x1b[{codes}mx")[0:1][0]
    return found


def test_plain_text_has_the_first_style() -> None:
    assert grid("one\ntwo") == ScreenGrid([{}], [[("one", 0)], [("two", 0)]])
    assert grid("") == ScreenGrid([{}], [[]])
    assert grid("a\n\nb").rows == [[("a", 0)], [], [("b", 0)]]


@pytest.mark.parametrize(
    ("codes", "found"),
    [
        ("31", {"f": 1}),
        ("47", {"b": 7}),
        ("90", {"f": 8}),
        ("107", {"b": 15}),
        ("38;5;9", {"f": 9}),
        ("48;5;16", {"b": "#000000"}),
        ("38;5;196", {"f": "#ff0000"}),
        ("38;5;231", {"f": "#ffffff"}),
        ("38;5;232", {"f": "#080808"}),
        ("38;5;255", {"f": "#eeeeee"}),
        ("38:5:196", {"f": "#ff0000"}),
        ("38;2;1;2;255", {"f": "#0102ff"}),
        ("48:2:1:2:255", {"b": "#0102ff"}),
        ("48:2::1:2:255", {"b": "#0102ff"}),
        ("38;2;300;0;0", {"f": "#ff0000"}),
        ("1", {"bold": True}),
        ("2", {"dim": True}),
        ("3;4", {"italic": True, "underline": True}),
        ("4:3", {"underline": True}),
        ("7;9", {"reverse": True, "strike": True}),
        ("1;38;5;1;44", {"bold": True, "f": 1, "b": 4}),
        ("38;5;256", {}),
        ("38;7;1", {}),
        ("38", {}),
        ("38;5", {"f": 0}),
        ("999", {}),
        ("58;5;1", {}),
        ("58;2;1;2;3", {}),
    ],
)
def test_a_colour_or_a_switch(codes: str, found: dict[str, Any]) -> None:
    assert style(codes) == found


@pytest.mark.parametrize(
    ("codes", "left"),
    [
        ("", {}),
        ("0", {}),
        ("39", {"b": 2, "bold": True, "dim": True}),
        ("49", {"f": 1, "bold": True, "dim": True}),
        ("22", {"f": 1, "b": 2}),
        ("0;3", {"italic": True}),
        ("34", {"f": 4, "b": 2, "bold": True, "dim": True}),
    ],
)
def test_a_reset_takes_back_what_it_names(codes: str, left: dict[str, Any]) -> None:
    assert style(f"31;42;1;2m\x1b[{codes}") == left


@pytest.mark.parametrize(
    ("on", "off"), [("3", "23"), ("4", "24"), ("4:3", "24"), ("7", "27"), ("9", "29"), ("4", "4:0")]
)
def test_a_switch_is_switched_off(on: str, off: str) -> None:
    assert style(f"{on}m\x1b[{off}") == {}


def test_a_style_goes_on_in_the_next_rows() -> None:
    rows = pieces("\x1b[31mred\nstill\x1b[0m not\n\x1b[31magain")
    assert rows == [[("red", {"f": 1})], [("still", {"f": 1}), (" not", {})], [("again", {"f": 1})]]
    assert len(grid("\x1b[31mred\n\x1b[0m\x1b[31mred").styles) == 2, "equal styles are one"


def test_wide_characters_stay_whole() -> None:
    assert pieces("\x1b[32m日本\x1b[0m e\u0301 🙂") == [[("日本", {"f": 2}), (" e\u0301 🙂", {})]]


def test_the_width_is_in_columns() -> None:
    assert grid("ab\nabcd\n").width == 4
    assert grid("日本").width == 4
    assert grid("").width == 0


@pytest.mark.parametrize(
    "hostile",
    ["\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\x1b[2J", "\x1b[?25l", "\x1b(B", "\x0e\x0f", "\x1bc", "\x1b[>4;1m"],
)
def test_other_escapes_are_taken_out(hostile: str) -> None:
    assert pieces(f"a{hostile}b") == [[("ab", {})]]


@pytest.mark.parametrize("control", ["\x00", "\x07", "\x08", "\x0b", "\x7f", "\x9b31m", "\r", "\u202e"])
def test_control_characters_do_not_split_rows(control: str) -> None:
    assert len(grid(f"a{control}b").rows) == 1


def test_a_row_is_bounded() -> None:
    drawn = grid("x" * 999 + "\x1b[31m" + "y" * 5000 + "\n" + "\x1b[31my\x1b[32mz" * 5000)
    assert all(sum(len(text) for text, _ in row) <= LONGEST_ROW for row in drawn.rows)


SCREENS = st.lists(
    st.text(max_size=20)
    | st.from_regex(r"\x1b\[[0-9;:]{0,12}m", fullmatch=True)
    | st.sampled_from(["\x1b", "\x1b[", "\x1b[38;5m", "\x1b[38;2;;m", "\x1b[:m", "\n", "\x1b[38:2:1m", "\x1b[²m"])
).map("".join)


@given(screen=SCREENS | st.binary(max_size=200).map(lambda given: given.decode("utf-8", "surrogateescape")))
@example("\x1b[38;5;99999999999999999999m x")
@example("\x1b[³m x")
def test_whatever_a_screen_holds_it_is_drawn(screen: str) -> None:
    drawn = grid(screen)
    assert len(drawn.rows) <= screen.count("\n") + 1
    for row in drawn.rows:
        for text, number in row:
            assert text
            assert "\n" not in text
            assert number < len(drawn.styles)
    for each in drawn.styles:
        for name, value in each.items():
            if name in ("f", "b"):
                assert (isinstance(value, int) and 0 <= value < 16) or (isinstance(value, str) and len(value) == 7)
            else:
                assert value is True
