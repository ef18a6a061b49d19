"""The demo agent's terminal: what was there is replaced, and what did not change is not written again."""

import pytest

from services.cli.terminal.emulator import TerminalScreen
from shared.agents.demo.demo_terminal import DemoTerminal, coloured
from shared.screen.styles import unstyle

COLUMNS = 30
RULE = "─" * COLUMNS


class Painted:
    """A terminal, and what stands on the screen by all that it wrote."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self._terminal = DemoTerminal()
        self._screen = TerminalScreen(rows=12, columns=COLUMNS)
        self.written = ""

    def draw(self, said: list[str], block: list[str]) -> list[str]:
        self._terminal.draw(said, block)
        self.written = self._capsys.readouterr().out
        self._screen.feed(self.written.encode())
        return [line for line in self._screen.lines() if line]


@pytest.fixture
def painted(capsys: pytest.CaptureFixture[str]) -> Painted:
    return Painted(capsys)


def test_the_block_stays_below_what_scrolls(painted: Painted) -> None:
    assert painted.draw(["one"], [RULE, "› a", RULE]) == ["one", RULE, "› a", RULE]
    assert painted.draw(["two"], [RULE, "› a", "  b", RULE]) == ["one", "two", RULE, "› a", "  b", RULE]
    assert painted.draw(["three"], [RULE, "Sure?"]) == ["one", "two", "three", RULE, "Sure?"]
    assert painted.draw(["four"], []) == ["one", "two", "three", "four"]


def test_only_rows_that_changed_are_written_again(painted: Painted) -> None:
    painted.draw(["one"], ["· Reading… (1s)", RULE, "› a", RULE])
    assert painted.draw([], ["✢ Reading… (2s)", RULE, "› a", RULE]) == ["one", "✢ Reading… (2s)", RULE, "› a", RULE]
    assert "─" not in painted.written
    assert painted.draw([], ["✢ Reading… (2s)", RULE, "› ab", RULE])[3] == "› ab"
    assert "Reading" not in painted.written
    painted.draw([], ["✢ Reading… (2s)", RULE, "› ab", RULE])
    assert painted.written == ""


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ("● Read(a.py)", ["32", "0"]),
        ("* allowed", ["36", "0"]),
        ("! not logged in", ["31", "0"]),
        ("> heard: go on", ["1", "0"]),
        ("  └ 41 passed in 2.31s", ["32", "0"]),
        ("  └ 1 failed, 63 passed in 5.02s", ["31", "0"]),
        ("  └ 212 lines", ["2", "0"]),
        ("    88 + table.write(order)", ["32", "0"]),
        ("    88 - table.write(order)", ["31", "0"]),
        ("demo agent builder", []),
    ],
)
def test_colours_change_no_letter(line: str, codes: list[str]) -> None:
    assert unstyle(coloured(line))[0] == line
    assert [piece.split("m")[0] for piece in coloured(line).split("\x1b[")[1:]] == codes
