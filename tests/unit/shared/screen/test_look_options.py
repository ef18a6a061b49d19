"""The rows of a choice, and the line that tells what an agent is at."""

from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.fleet.backend import Backend, Dialog, ScreenRules
from shared.fleet.profiles import shipped
from shared.screen import ScreenReading, current_line, read_screen
from tests.unit.shared.screen.test_look import FILES

CHOICE = Dialog(id="question", match="x", says="a question", numbered=True)
PLAIN = Dialog(id="permission", match="x", says="a permission dialog")


def options(text: str, dialog: Dialog | None = CHOICE) -> list[tuple[str, str]]:
    return list(ScreenReading(None, dialog, working=False, dialog_text=text).options)


# --- options ---


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Which?\n❯ 1. Red\n  2. Blue", [("1", "Red"), ("2", "Blue")]),
        ("Which?\n  1. Red\n❯ 2. Blue", [("1", "Red"), ("2", "Blue")]),
        ("› 1) Red\n  2) Blue", [("1", "Red"), ("2", "Blue")]),
        ("│ ❯ 1. Red     │\n│   2. Blue    │", [("1", "Red"), ("2", "Blue")]),
        ("● 1. Red\n  2. Blue", [("1", "Red"), ("2", "Blue")]),
        ("1. Red\n2. Blue", [("1", "Red"), ("2", "Blue")]),
        ("❯ 1. Red\n     A warm colour\n  2. Blue", [("1", "Red"), ("2", "Blue")]),
        ("❯ 1. Red\n  2. Blue\n──────\n  4. Chat about this", [("1", "Red"), ("2", "Blue")]),
        ("  3. Blue\n❯ 4. Green", []),
        ("Which?", []),
        ("", []),
    ],
)
def test_the_rows_of_a_choice(text: str, found: list[tuple[str, str]]) -> None:
    assert options(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "I found two ways:\n1. delete it\n2. keep it\nWhich?\n❯ 1. Red\n  2. Blue",
        "I found two ways:\n  1. delete it\n  2. keep it\nWhich?\n❯ 1. Red\n  2. Blue",
        "> 1. quoted\n❯ 1. Red\n  2. Blue",
        "❯ 1. Red\n     1. like blood\n     2. like wine\n  2. Blue\n     1. like the sea",
    ],
)
def test_other_numbers_on_the_screen_are_no_rows(text: str) -> None:
    assert options(text) == [("1", "Red"), ("2", "Blue")]


def test_there_are_at_most_nine() -> None:
    rows = "\n".join(f"  {number}. row" for number in range(1, 15))
    assert [key for key, _ in options(rows)] == list("123456789")


def test_only_a_choice_has_rows() -> None:
    assert options("❯ 1. Yes\n  2. No", PLAIN) == []
    assert options("❯ 1. Yes\n  2. No", None) == []


@given(text=st.text(alphabet="❯>●123. )│\nab", max_size=80))
def test_keys_count_up_from_one(text: str) -> None:
    keys = [key for key, _ in options(text)]
    assert keys == [str(number) for number in range(1, len(keys) + 1)]
    assert all(row and row == row.strip() for _, row in options(text))


QUESTIONS = [path for path in FILES if "question" in path.stem and path.parent.name.startswith("claude")]


@pytest.mark.parametrize("path", QUESTIONS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_rows_of_recorded_questions(path: Path) -> None:
    reading = read_screen(shipped()["claude"], path.read_text(encoding="utf-8"))
    assert reading.options == (("1", "Red"), ("2", "Blue"), ("3", "Type something."), ("4", "Chat about this"))


# --- the current line ---

LINES = [
    ("claude-*/approval-bash-*", "Do you want to proceed?"),
    ("claude-*/approval-edit-*", "Do you want to create new.txt?"),
    ("claude-*/question-*", "Which colour do you want?"),
    ("claude-*/plan-dialog-*", "Exit plan mode?"),
    ("claude-*/plain-working-thinking", "✻ Sketching…"),
    ("codex-*/approval-edit-*", "Would you like to make the following edits?"),
    ("codex-*/question-*", "Which colour do you want?"),
    ("codex-*/idle-after-turn-120", "Worked for 4s • 06:17"),
    ("gemini-*/approval-bash-*", "? Shell  touch made.txt"),
    ("opencode-*/approval-*", "△ Permission required"),
    ("opencode-*/interrupted-120", "▣  Build · Claude Sonnet 4.5 (latest) · interrupted"),
]


@pytest.mark.parametrize(("pattern", "line"), LINES, ids=[pattern for pattern, _ in LINES])
def test_the_line_that_an_agent_is_at(pattern: str, line: str) -> None:
    found = [path for path in FILES if fnmatchcase(f"{path.parent.name}/{path.stem}", pattern)]
    assert found
    for path in found:
        backend = shipped()[path.parent.name.split("-")[0]]
        assert current_line(backend, path.read_text(encoding="utf-8")) == line, path


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_recorded_screen_has_one_line_without_frame(path: Path) -> None:
    line = current_line(shipped()[path.parent.name.split("-")[0]], path.read_text(encoding="utf-8"))
    assert "\n" not in line
    assert line == line.strip(" ─│┃╭╮╰╯▔▁█")


def test_what_the_agent_wrote_last_counts_not_what_a_person_types() -> None:
    boxed = Backend(screen=ScreenRules(box=r"^> (?P<text>.*)\Z"))
    assert current_line(boxed, "it read a file\n\n> next, please") == "it read a file"
    assert current_line(Backend(), "one\ntwo\n────\n") == "two"
    assert current_line(Backend(), "") == ""
    assert current_line(Backend(), "│ \x1b[31mred\x1b[0m │") == "red"


@given(screen=st.text(max_size=200))
def test_whatever_is_on_the_screen_there_is_a_line(screen: str) -> None:
    assert "\n" not in current_line(shipped()["claude"], screen)
