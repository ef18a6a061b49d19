"""Raw terminal output as lines: the small terminal, what has gone by in it, and what a follower has not seen."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.cli.terminal import LineReading, TerminalScreen, UnseenLines, tidy
from services.cli.terminal.lines import moved_out, turned_over, without_side

FRAME = b"\x1b[?2026l"


def shown(data: bytes, rows: int = 6, columns: int = 1000) -> list[str]:
    screen = TerminalScreen(rows, columns)
    screen.feed(data)
    lines = screen.lines()
    while lines and not lines[-1]:
        lines.pop()
    return lines


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"one\r\ntwo", ["one", "two"]),
        (b"one\ntwo", ["one", "   two"]),
        (b"overwritten\rOVER", ["OVERwritten"]),
        (b"abc\b\bX", ["aXc"]),
        (b"a\tb", ["a       b"]),
        (b"\x1b[1;31mred\x1b[0m plain", ["red plain"]),
        (b"\x1b[3;5Hthere", ["", "", "    there"]),
        (b"ab\x1b[2Cc\x1b[3Dd", ["abd c"]),
        (b"one\r\ntwo\x1b[A!", ["one!", "two"]),
        (b"one\r\ntwo\x1b[1F!", ["!ne", "two"]),
        (b"abcdef\x1b[4G\x1b[K", ["abc"]),
        (b"abcdef\x1b[3G\x1b[1K", ["   def"]),
        (b"abc\x1b[2Kd", ["   d"]),
        (b"one\r\ntwo\x1b[1;2H\x1b[J", ["o"]),
        (b"one\r\ntwo\x1b[2;2H\x1b[1J", ["", "  o"]),
        (b"one\x1b[2J\x1b[Htwo", ["two"]),
        (b"abcdef\x1b[3G\x1b[2P", ["abef"]),
        (b"abcdef\x1b[3G\x1b[2@", ["ab  cdef"]),
        (b"abcdef\x1b[3G\x1b[2X", ["ab  ef"]),
        (b"a\r\nb\r\nc\x1b[2;1H\x1b[L", ["a", "", "b", "c"]),
        (b"a\r\nb\r\nc\x1b[2;1H\x1b[M", ["a", "c"]),
        (b"a\x1b[4b", ["aaaaa"]),
        (b"\x1b7There\x1b8t", ["there"]),
        (b"\x1b[sThere\x1b[ut", ["there"]),
        (b"\x1b]0;a title\x07text", ["text"]),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", ["link"]),
        (b"\x1bPpicture\x1b\\text", ["text"]),
        (b"\x1b]0;torn by another\x1b[1mtext", ["text"]),
        (b"\x1b[>4;1mtext\x1b[?u\x1b[<u", ["text"]),
        (b"\x1b[ qtext\x1b[2 q", ["text"]),
        (b"\x1b(Btext", ["text"]),
        ("漢字|\r\n🦀|".encode(), ["漢字|", "🦀|"]),
        ("漢字\x1b[3GX".encode(), ["漢X"]),
        ("漢字\x1b[2GX".encode(), [" X字"]),
        ("e\u0301|".encode(), ["e\u0301|"]),
        ("a\u202eb\u200dc".encode(), ["abc"]),
        ("a\u00a0b".encode(), ["a b"]),
        (b"bad \xff\xfe bytes", ["bad \ufffd\ufffd bytes"]),
        (b"\x1b", []),
        (b"main\x1b[?1049h\x1b[Hother", ["other"]),
        (b"main\x1b[?1049h\x1b[Hother\x1b[?1049l", ["main"]),
        (b"text\x1bc", []),
        (b"\x1b[2;3r\x1b[3;1Hx\ny", ["", "x", " y"]),
        (b"\x1b[2;3r\x1b[2;1Hx\x1bMy", ["", " y", "x"]),
    ],
)
def test_the_screen_shows_what_was_written(data: bytes, lines: list[str]) -> None:
    assert shown(data) == lines


def test_lines_wrap_where_the_screen_ends() -> None:
    assert shown(b"abcdefgh", columns=5) == ["abcde", "fgh"]
    assert shown(b"abcde\r\nf", columns=5) == ["abcde", "f"]
    assert shown(b"abcd\x1b[me\x1b[mf", columns=5) == ["abcde", "f"]


def test_the_screen_grows_for_a_row_that_is_named_but_not_for_a_size_query() -> None:
    assert shown(b"\x1b[9;1Hlow")[8] == "low"
    assert len(shown(b"\x1b[999;999Hlow")) == 6


def test_what_scrolls_away_is_kept_in_order() -> None:
    screen = TerminalScreen(rows=3)
    screen.feed(b"".join(f"{number}\r\n".encode() for number in range(10)))
    assert screen.gone == [str(number) for number in range(8)]
    assert screen.lines() == ["8", "9", ""]


SEQUENCES = st.sampled_from(
    [
        *(
            b"\x1b[H",
            b"\x1b[2J",
            b"\x1b[3J",
            b"\x1b[K",
            b"\x1b[1;31m",
            b"\x1b[5A",
            b"\x1b[2B",
            b"\x1b[9C",
            b"\x1b[3;4H",
        ),
        *(b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?2026h", FRAME, b"\x1b[?25h", b"\x1b]0;t\x07", b"\x1bP+q\x1b\\"),
        *(b"\r\n", b"\n", b"\r", b"\t", b"\b", b"\x1bM", b"\x1b[2;4r", b"\x1b[r", b"\x1b[L", b"\x1b[M", b"\x1b[S"),
        *(
            b"text",
            b"more words",
            "漢字".encode(),
            "e\u0301".encode(),
            "🦀".encode(),
            b"\x1b",
            b"\x1b[",
            b"\x9b",
            b"\xff",
        ),
    ]
)
OUTPUT = st.lists(SEQUENCES | st.binary(max_size=6), max_size=60).map(b"".join)


@settings(max_examples=300, deadline=None)
@given(output=OUTPUT, cuts=st.lists(st.integers(0, 400), max_size=12))
def test_how_the_bytes_are_cut_makes_no_difference(output: bytes, cuts: list[int]) -> None:
    whole, pieces = LineReading(5), LineReading(5)
    whole.feed(output)
    places = sorted({0, len(output), *(cut for cut in cuts if cut < len(output))})
    for start, end in pairwise(places):
        pieces.feed(output[start:end])
    assert (pieces.take(), pieces.now(), pieces.rewrites) == (whole.take(), whole.now(), whole.rewrites)


@settings(max_examples=300, deadline=None)
@given(output=OUTPUT | st.text().map(str.encode))
def test_no_control_characters_are_left(output: bytes) -> None:
    reading = LineReading(5)
    reading.feed(output)
    text = "".join([*reading.take(), *reading.now()])
    assert not [letter for letter in text if ord(letter) < 32 or 0x7F <= ord(letter) < 0xA0 or letter in "\u202e\u2028"]


# --- what has gone by ---


def picture(lines: list[str]) -> bytes:
    """A repaint of the whole screen, as a program that scrolls by itself sends it."""
    return b"".join(f"\x1b[{row};1H{line}\x1b[K".encode() for row, line in enumerate(lines, 1)) + FRAME


def conversation(first: int, count: int = 8) -> list[str]:
    return ["HEADER", *(f"line {number:03}" for number in range(first, first + count)), "> box", "footer"]


def feed_pictures(*pictures: list[str]) -> LineReading:
    reading = LineReading(rows=11)
    reading.feed(b"\x1b[?1049h")
    for lines in pictures:
        reading.feed(picture(lines))
    return reading


def test_what_scrolls_inside_a_program_is_given_once() -> None:
    reading = feed_pictures(*(conversation(first) for first in (0, 1, 2, 5)))
    assert reading.take() == [f"line {number:03}" for number in range(5)]
    assert reading.now() == conversation(5)


def test_a_line_that_scrolls_back_in_is_not_given_again() -> None:
    reading = feed_pictures(*(conversation(first) for first in (0, 3, 1, 4, 6)))
    assert reading.take() == [f"line {number:03}" for number in range(6)]


def test_the_lines_of_a_replaced_page_are_given() -> None:
    reading = feed_pictures(conversation(0), conversation(50), conversation(52))
    assert reading.take() == [*(f"line {number:03}" for number in range(8)), "line 050", "line 051"]


def test_a_replaced_page_that_comes_back_is_given_once() -> None:
    reading = feed_pictures(conversation(0), conversation(50), conversation(0), conversation(2))
    taken = reading.take()
    assert [taken.count(f"line {number:03}") for number in range(8)] == [1] * 8


def test_a_spinner_is_never_given_as_scrolled() -> None:
    pictures = [[*conversation(0)[:-2], f"✻ Working… ({second}s)", "footer"] for second in range(30)]
    assert feed_pictures(*pictures).take() == []


def test_a_column_at_the_side_is_left_out() -> None:
    side = ["Context", "22 tokens", "", "LSP"]

    def with_side(first: int) -> list[str]:
        lines = conversation(first)
        return [f"{line:<120}{side[row] if row < len(side) else ''}".rstrip() for row, line in enumerate(lines)]

    reading = feed_pictures(with_side(0), with_side(1), with_side(3))
    assert reading.take() == ["line 000", "line 001", "line 002"]
    assert reading.now() == conversation(3)


def test_a_table_is_no_side_column() -> None:
    rows = [f"{'name':<40}{'size':<40}{number}" for number in range(9)]
    assert without_side(rows) == rows
    far = ["text", f"{'a word':<110}alone", "text"]
    assert without_side(far) == far


@pytest.mark.parametrize(
    ("before", "after", "went"),
    [
        ("abcdef", "bcdefg", "a"),
        ("abcdef", "defghi", "abc"),
        ("Habcdef", "Hcdefgh", "ab"),
        ("abcdef", "abcdef", ""),
        ("abcdef", "abXdef", ""),
        ("abcdef", "uvwxyz", ""),
        ("bcdefg", "abcdef", ""),
        ("", "", ""),
    ],
)
def test_the_lines_that_scrolled_out_are_found(before: str, after: str, went: str) -> None:
    assert moved_out(list(before), list(after)) == list(went)


def test_a_page_counts_as_replaced_only_when_most_of_it_changed() -> None:
    page = [f"line {number}" for number in range(20)]
    assert turned_over(page, [f"other {number}" for number in range(20)]) == page
    assert turned_over(page, [f"{line} and more" for line in page]) == []
    assert turned_over(page, [*(f"other {number}" for number in range(5)), *page[5:]]) == []


def test_a_program_that_writes_all_lines_again_is_not_read_twice() -> None:
    reading = LineReading(rows=4)
    history = b"".join(f"line {number}\r\n".encode() for number in range(20))
    reading.feed(history)
    reading.feed(b"\x1b[2J\x1b[3J\x1b[H" + history + b"line 20\r\n")
    assert [*reading.take(), *reading.now()] == [f"line {number}" for number in range(21)]
    reading.feed(history + b"\x1b[?25h")  # a repaint is complete
    reading.feed(b"\x1b[2J\x1b[3J\x1b[H" + history)
    assert [*reading.take(), *reading.now()] == [f"line {number}" for number in range(20)]


@pytest.mark.parametrize(
    ("lines", "tidied"),
    [([], []), (["", "", "a"], ["a"]), (["a", "", "", "b", ""], ["a", "", "b", ""]), (["a"], ["a"])],
)
def test_empty_lines_in_a_row_become_one(lines: list[str], tidied: list[str]) -> None:
    assert tidy(lines) == tidied


# --- following ---


def followed(*pieces: bytes, rows: int = 12) -> list[str]:
    reading, fresh = LineReading(rows), UnseenLines()
    found: list[str] = []
    for piece in pieces:
        reading.feed(piece)
        found += fresh.look(reading)
    return [line for line in [*found, *fresh.look(reading), *fresh.look(reading)] if line]


def test_a_follower_sees_every_line_once() -> None:
    lines = [f"line {number}" for number in range(40)]
    assert followed(*(f"{line}\r\n".encode() for line in lines)) == lines
    assert followed("".join(f"{line}\r\n" for line in lines).encode()) == lines


def test_a_line_is_shown_when_it_is_complete() -> None:
    assert followed(b"one", b" two", b" three", b"", b"\r\nfour") == ["one two three", "four"]


def test_the_same_words_said_twice_are_shown_twice() -> None:
    assert followed(b"All done.\r\n", b"", b"next\r\n", b"All done.\r\n", b"") == ["All done.", "next", "All done."]


def test_a_spinner_is_shown_once() -> None:
    turning = [f"\r✻ Working… ({second}s · esc to interrupt)".encode() for second in range(9) for _ in range(2)]
    assert followed(b"begin\r\n", *turning) == ["begin", "✻ Working… (0s · esc to interrupt)"]


def test_a_list_with_numbers_is_no_spinner() -> None:
    steps = [f"{number}. step {number}" for number in range(1, 30)]
    pieces = [piece for step in steps for piece in (f"{step}\r\n".encode(), b"")]
    assert followed(*pieces, rows=5) == steps


def test_a_history_written_anew_is_not_shown_again() -> None:
    lines = [f"line {number}" for number in range(30)]
    history = "".join(f"{line}\r\n" for line in lines).encode()
    assert followed(history, b"\x1b[2J\x1b[3J\x1b[H" + history + b"new\r\n", b"") == [*lines, "new"]


def test_a_follower_begins_with_what_there_is() -> None:
    reading, fresh = LineReading(5), UnseenLines()
    reading.feed(b"".join(f"line {number}\r\n".encode() for number in range(9)))
    assert fresh.begin(reading) == [f"line {number}" for number in range(9)]
    assert fresh.look(reading) == []
    reading.feed(b"".join(f"line {number}\r\n".encode() for number in range(9, 12)))
    assert [*fresh.look(reading), *fresh.look(reading)] == ["line 9", "line 10", "line 11"]
