"""Texts in the cells of a terminal, and tables that fit one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cli.tables import Column, cut, fitted, pad, table, width

RED, GREEN, END = "\x1b[31m", "\x1b[32m", "\x1b[0m"


@pytest.mark.parametrize(
    ("text", "cells"),
    [("", 0), ("builder", 7), ("ü", 1), ("u\u0308", 1), ("漢字", 4), ("🚀 go", 5), (f"{RED}red{END}", 3), ("ｆ", 2)],
)
def test_a_text_is_as_wide_as_a_terminal_shows_it(text: str, cells: int) -> None:
    assert width(text) == cells


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ("builder", 7, "builder"),
        ("builder", 6, "build…"),
        ("builder", 1, "…"),
        ("builder", 0, ""),
        ("漢字漢字", 5, "漢字…"),
        ("漢字漢字", 4, "漢…"),  # half a letter can't be shown
        (f"{RED}builder{END}", 4, f"{RED}bui…{END}"),
        (f"a{RED}b{END}cdef", 3, f"a{RED}b{END}…{END}"),
    ],
)
def test_a_text_that_does_not_fit_is_cut_with_an_ellipsis(text: str, columns: int, shown: str) -> None:
    assert cut(text, columns) == shown


@given(st.text(max_size=30), st.integers(0, 40))
def test_any_text_is_cut_to_fit(text: str, columns: int) -> None:
    assert width(cut(text, columns)) <= columns
    assert width(pad(cut(text, columns), columns)) == columns


NAME, KIND, WHY = Column("NAME", least=6), Column("KIND", worth=1), Column("WHY", least=5)
ROWS = [("builder-of-things", "demo", "because of this"), ("b", "demo", "x")]


def test_without_a_width_nothing_is_cut() -> None:
    assert fitted([NAME, KIND, WHY], ROWS) == [
        "NAME               KIND  WHY",
        "builder-of-things  demo  because of this",
        "b                  demo  x",
    ]


def test_the_widest_column_is_cut_first() -> None:
    assert fitted([NAME, KIND, WHY], ROWS, 38)[1] == "builder-of-thi…  demo  because of this"
    assert fitted([NAME, KIND, WHY], ROWS, 30)[1] == "builder-of…  demo  because of…"


def test_where_cutting_is_not_enough_the_least_useful_column_is_left_out() -> None:
    assert fitted([NAME, KIND, WHY], ROWS, 16) == ["NAME     WHY", "builde…  becaus…", "b        x"]


def test_a_line_is_cut_when_nothing_else_is_left() -> None:
    assert fitted([Column("NAME")], [("builder",)], 4) == ["NAME", "bui…"]


def test_an_empty_column_may_be_left_out() -> None:
    columns = [Column("A"), Column("B", when_empty=False), Column("C")]
    assert fitted(columns, [("a", "", "c")]) == ["A  C", "a  c"]
    assert fitted(columns, [("a", "b", "c"), ("a", "", "c")])[0] == "A  B  C"


cells = st.text(st.characters(categories=["L", "N", "P", "Zs", "So", "Mn"]), max_size=30)


@given(st.lists(st.tuples(cells, cells, cells), max_size=5), st.integers(1, 60))
def test_any_table_fits(rows: list[tuple[str, str, str]], room: int) -> None:
    lines = fitted([NAME, KIND, WHY], rows, room)
    assert len(lines) == len(rows) + 1
    assert all(width(line) <= room for line in lines)


# --- columns that are never cut ---


def test_a_table_lines_up_whatever_is_coloured() -> None:
    rows = [("a", f"{GREEN}running{END}", "x"), ("longer", "-", f"{RED}y{END}")]
    assert table(("NAME", "STATUS", ""), rows).splitlines() == [
        "NAME    STATUS",
        f"a       {GREEN}running{END}  x",
        f"longer  -        {RED}y{END}",
    ]


def test_a_table_lines_up_whatever_is_wide() -> None:
    assert table(("A", "B"), [("漢字", "x"), ("u\u0308", "y")]).splitlines() == ["A     B", "漢字  x", "u\u0308     y"]


def test_a_table_may_have_no_rows() -> None:
    assert table(("A", "B"), []) == "A  B"


@given(st.lists(st.tuples(st.text(max_size=12), st.text(max_size=12)), max_size=4))
def test_any_text_can_be_in_a_table(rows: list[tuple[str, str]]) -> None:
    shown = table(("A", "B"), rows)
    assert all(cell.strip() in shown for row in rows for cell in row)


@pytest.mark.parametrize("cell", ["\x1b[2J", "\x1b[", "a\x1b[31"])
def test_an_escape_that_is_no_colour_does_not_break_a_table(cell: str) -> None:
    """Who asked for something is free text, and ends up as the reason in `muster status`."""
    head, first, second = table(("A", "B"), [(cell, "x"), ("m", "y")]).split("\n")
    assert (head.split(), first[-1:], second.split()) == (["A", "B"], "x", ["m", "y"])
