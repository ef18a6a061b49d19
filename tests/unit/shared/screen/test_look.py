"""What is read on the screens of real agents, and what must not be read into them."""

import time
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.fleet.backend import Backend, Dialog, ScreenRules
from shared.fleet.profiles import shipped, with_samples
from shared.screen import ScreenReading, holds, read_screen, shows_placeholder, unstyle

SAMPLES = Path(__file__).parents[3] / "samples" / "screens"
FILES = sorted(path for path in SAMPLES.rglob("*") if path.suffix in (".ansi", ".txt"))
IDS = [f"{path.parent.name}/{path.stem}" for path in FILES]

Expected = tuple[str | None, str | None, bool]
NO_BOX: Expected = (None, None, False)
IDLE: Expected = ("", None, False)
WORKING: Expected = ("", None, True)
TWO_LINES = "queued while a tool runs\nsecond line"

EXPECTED: list[tuple[str, Expected]] = [
    # what is in the box; the first pattern that fits counts
    ("*/box-typed-truecolor-*", ("one\ntwo three\n\nfour", None, False)),
    ("*/box-typed-*", ("typed words", None, False)),
    ("codex-*/box-blank-lines-*", ("one\n\n\nfour\n five", None, False)),
    ("codex-*/box-tall-*", ("\n".join(f"ab{n}" for n in range(68, 90)), None, False)),
    ("claude-*/box-placeholder-*", ("[Pasted text #1 +29 lines]", None, False)),
    ("codex-*/box-placeholder-*", ("[Pasted Content 1229 chars]", None, False)),
    ("gemini-*/box-placeholder-*", ("[Pasted Text: 30 lines]", None, False)),
    ("opencode-*/box-placeholder-*", ("[Pasted ~30 lines]", None, False)),
    ("gemini-*/popup-at-*", ("see @cod", None, False)),
    ("*/popup-at-*", ("see @REA", None, False)),
    ("*/popup-slash-*", ("/", None, False)),
    ("claude-*/interrupted-returned-big-*", ("\n".join(["x" * 30] * 37), None, False)),
    ("claude-*/interrupted-returned-*", ("DO-THINK 20 interrupt me", None, False)),
    ("claude-*/plain-interrupted", ("DO-THINK", None, False)),
    ("claude-*/queued-ghost-*", WORKING),
    ("claude-*/queued-tool-*", (TWO_LINES, None, True)),
    ("claude-*/queued-*", ("queued while streaming", None, True)),
    ("opencode-*/queued-tool-*", (TWO_LINES, None, True)),
    ("codex-*/queued-120", IDLE),
    ("*/queued-*", WORKING),
    # shell mode: to be cleared where keys for that are known, else left alone
    ("claude-*/shell-mode-*", ("!", None, False)),
    ("codex-*/shell-mode-*", ("!", None, False)),
    ("*/shell-mode-*", NO_BOX),
    ("*/starting-*", NO_BOX),
    # dialogs; without styles it can't be told which answer is chosen
    ("opencode-*/plain-approval-*", (None, "permission-moved", False)),
    ("opencode-*/moved-*", (None, "permission-moved", False)),
    ("opencode-*/always-*", (None, "always", False)),
    ("claude-*/plan-dialog-*", (None, "plan", False)),
    ("*/agents-view-*", (None, "agents", False)),
    ("*/history-*", (None, "history", False)),
    ("*/hooks-review-*", (None, "hooks-review", False)),
    ("*/settings-*", (None, "settings", False)),
    ("*/*approval-*", (None, "permission", False)),
    ("*/*question*", (None, "question", False)),
    ("*/trust-*", (None, "trust", False)),
    ("*/limit-menu-*", (None, "limit", False)),
    ("claude-*/plain-limit-*", (None, "limit", False)),
    ("*/rewind-menu-*", (None, "rewind", False)),
    ("*/resume-picker-*", (None, "resume", False)),
    ("*/palette-*", (None, "menu", False)),
    # the rest
    ("opencode-*/plain-limit", WORKING),
    ("gemini-*/plain-limit", WORKING),
    ("*/plain-retrying", WORKING),
    ("*/esc-once-*", WORKING),
    ("*/*working-*", WORKING),
    *((f"*/*{name}*", IDLE) for name in ("idle", "interrupted", "rejected", "limit", "credit", "untrusted")),
    *((f"*/{name}*", IDLE) for name in ("shortcuts", "esc-esc-empty", "escape-on-empty")),
]


def program(path: Path) -> Backend:
    return shipped()[path.parent.name.partition("-")[0]]


def told(reading: ScreenReading) -> Expected:
    return reading.box, reading.dialog.id if reading.dialog else None, reading.working


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_what_a_recorded_screen_says(path: Path) -> None:
    name = f"{path.parent.name}/{path.stem}"
    expected = next((expected for pattern, expected in EXPECTED if fnmatchcase(name, pattern)), "not in the table")
    assert told(read_screen(program(path), path.read_text())) == expected


def test_there_are_screens_of_every_program_that_was_measured() -> None:
    assert {path.parent.name.partition("-")[0] for path in FILES} == {"claude", "codex", "gemini", "opencode"}


def test_a_screen_is_read_quickly() -> None:
    """Rules that go back and forth over a row take a hundred times as long; a loaded machine takes ten."""
    screens = [(program(path), path.read_text()) for path in FILES]
    for backend, screen in screens:
        read_screen(backend, screen)  # patterns are compiled once
    since = time.process_time()
    for backend, screen in screens:
        read_screen(backend, screen)
    assert (time.process_time() - since) / len(screens) < 0.01


# --- dialogs that are only quoted ---

CLAUDE_BOX = "─" * 80 + "\n❯\xa0\n" + "─" * 80 + "\n  ? for shortcuts"
CODEX_BOX = "\n\n› Ask Codex to do anything\n\n  gpt-5.1-codex default · ~/ws\n  ? for shortcuts"
GEMINI_BOX = "─" * 80 + "\n Shift+Tab to accept edits\n\n >   Type your message or @path/to/file\n\n workspace\n ~/ws"
OPENCODE_BOX = "\n  ┃\n  ┃\n  ┃\n  ┃  Build · Sonnet Anthropic\n  ╹" + "▀" * 60 + "\n   ~/ws   ctrl+p commands"
BOXES = {"claude": CLAUDE_BOX, "codex": CODEX_BOX, "gemini": GEMINI_BOX, "opencode": OPENCODE_BOX}
QUOTED = [
    dialog for name in BOXES for rule in with_samples()[name].screen.dialogs if not rule.over for dialog in rule.yes
]


@pytest.mark.parametrize("name", BOXES)
@pytest.mark.parametrize("dialog", QUOTED)
def test_a_dialog_above_a_whole_input_box_is_only_quoted(name: str, dialog: str) -> None:
    screen = f"{dialog}\n\n{BOXES[name]}"
    assert told(read_screen(shipped()[name], screen)) == IDLE
    indented = "\n".join(f"  {line}" for line in dialog.split("\n"))
    assert told(read_screen(shipped()[name], f"● It shows\n\n{indented}\n\n{BOXES[name]}")) == IDLE


@pytest.mark.parametrize("name", BOXES)
@pytest.mark.parametrize("other", [each for each in BOXES if each != "opencode"])
def test_an_input_box_in_an_answer_is_no_box(name: str, other: str) -> None:
    """That of opencode may stand anywhere on the screen; the last one counts."""
    quoted = "\n".join(f"    {line}" for line in BOXES[other].split("\n"))
    assert read_screen(shipped()[name], f"● It looks so:\n\n{quoted}").box is None


@pytest.mark.parametrize("name", [each for each in BOXES if each != "opencode"])
def test_a_box_above_a_dialog_is_no_box(name: str) -> None:
    """Below that of opencode is only its footer."""
    rules = with_samples()[name].screen
    permission = next(rule for rule in rules.dialogs if rule.id == "permission")
    screen = f"{BOXES[name].rstrip()}\n\n{permission.yes[0]}"
    reading = read_screen(shipped()[name], screen)
    assert told(reading) == (None, "permission", False)
    assert reading.dialog_text.endswith(permission.yes[0].split("\n")[-1])


def test_a_dialog_is_told_from_the_next_by_what_it_asks() -> None:
    for name in BOXES:
        permission = next(rule for rule in with_samples()[name].screen.dialogs if rule.id == "permission").yes[0]
        first, second = (
            read_screen(shipped()[name], permission.replace("touch x", what)) for what in ("touch x", "rm -r y")
        )
        assert first.dialog_text != second.dialog_text, name


def test_a_dialog_over_the_box_counts_all_the_same() -> None:
    over = Dialog(id="menu", match="^ {20}Commands$", says="a menu", over=True)
    backend = Backend(binary="x", screen=ScreenRules(box=r"^> (?P<text>.*)\Z", dialogs=[over]))
    assert told(read_screen(backend, f"{' ' * 20}Commands\n> hello")) == (None, "menu", False)
    assert told(read_screen(backend, "Commands\n> hello")) == ("hello", None, False)


PANEL, GROUND = "\x1b[48;5;233m", "\x1b[48;5;0m"


def panelled(title: str, *, above: str = PANEL, left: str = "漢字 left") -> str:
    """A title on a panel that begins in column 10, in a conversation on another ground."""
    blank = f"{GROUND}{' ' * 10}{PANEL}{' ' * 30}{GROUND}"
    first = f"{GROUND}{' ' * 10}{above}{' ' * 30}{GROUND}"
    return f"{first}\n{left.ljust(8)}{PANEL}{title.ljust(30)}{GROUND}\n{blank}\n> hello"


def test_a_panel_stands_on_a_background_of_its_own() -> None:
    over = Dialog(id="menu", match="(?P<panel>Commands {5,}esc)", says="a menu", over=True)
    backend = Backend(binary="x", screen=ScreenRules(box=r"^> (?P<text>.*)\Z", box_rows=5, dialogs=[over]))
    menu = "Commands            esc"
    assert told(read_screen(backend, panelled(menu))) == (None, "menu", False)
    assert told(read_screen(backend, "older\n" * 20 + panelled(menu))) == (None, "menu", False)
    assert told(read_screen(backend, panelled(menu, above=GROUND))) == ("hello", None, False)
    assert told(read_screen(backend, unstyle(panelled(menu))[0])) == ("hello", None, False)
    assert told(read_screen(backend, panelled(menu).replace(GROUND, PANEL))) == ("hello", None, False)


@pytest.mark.parametrize(
    ("row", "chosen"),
    [
        ("\x1b[44m Yes \x1b[49m Always  No", True),
        ("\x1b[7m Yes \x1b[27m Always  No", True),
        (" Yes \x1b[104m Always \x1b[0m No", False),
        (" Yes  Always \x1b[48;2;1;2;3m No \x1b[m", False),
        ("\x1b[44m Yes  Always  No \x1b[0m", False),
        (" Yes  Always  No", False),
    ],
)
def test_what_is_chosen_stands_on_another_background_than_the_others(row: str, chosen: bool) -> None:
    asks = Dialog(id="asks", match="(?P<chosen>Yes) +(?P<others>Always +No)", says="a question")
    reading = read_screen(Backend(binary="x", screen=ScreenRules(dialogs=[asks])), f"Sure?\n{row}")
    assert (reading.dialog is not None) is chosen


def test_a_backend_that_can_t_be_seen_still_has_dialogs() -> None:
    asks = Dialog(id="asks", match="^Sure\\?$", says="a question")
    backend = Backend(binary="x", screen=ScreenRules(box=None, dialogs=[asks]))
    assert told(read_screen(backend, "$")) == IDLE
    assert told(read_screen(backend, "Sure?")) == (None, "asks", False)


AIDER = "Aider v0.86.1\nModel: sonnet with diff edit format\n" + "─" * 80 + "\n"
AGY = "▸ Thought for 2s\n" + "─" * 60 + "\n"


@pytest.mark.parametrize(
    ("name", "screen", "box"),
    [
        ("aider", f"{AIDER}> ", ""),
        ("aider", f"{AIDER}README.md\narchitect> two\nlines", "two\nlines"),
        ("aider", "Aider v0.86.1\nModel: sonnet", None),
        ("agy", f"{AGY}>\n{'─' * 60}\n? for shortcuts", ""),
        ("agy", f"{AGY}> two\n  lines\n{'─' * 60}\n? for shortcuts", "two\nlines"),
        ("agy", f"{AGY}> quoted", None),
        ("demo", "─" * 60 + "\n› \x1b[2mtype a message\x1b[0m\n" + "─" * 60 + "\n  demo agent", ""),
    ],
)
def test_boxes_of_which_no_screen_was_recorded(name: str, screen: str, box: str | None) -> None:
    assert read_screen(shipped()[name], screen).box == box


def test_a_box_without_a_text_is_empty() -> None:
    backend = Backend(binary="x", screen=ScreenRules(box=r"^>(?: (?P<text>.+))?\Z"))
    assert read_screen(backend, ">").box == ""
    assert read_screen(backend, "> x").box == "x"


# --- styles ---


@pytest.mark.parametrize(
    ("screen", "marked"),
    [
        ("› \x1b[2mtype here\x1b[0m", "› \0\0\0\0 \0\0\0\0"),
        ("› \x1b[2mtype\x1b[22m here", "› \0\0\0\0 here"),
        ("› \x1b[38;5;2mgreen\x1b[48;2;2;2;2m on\x1b[1;2m faint", "› green on \0\0\0\0\0"),
        ("› \x1b[38:2::2:2:2mgreen", "› green"),
        ("❯ \x1b[7mP\x1b[0;2mress up", "❯ \0\0\0\0\0 \0\0"),
        ("❯ \x1b[7mP\x1b[0mress up", "❯ Press up"),
        ("❯ \x1b[7mPress\x1b[0;2m up", "❯ Press \0\0"),
        ("❯ text\x1b[7m \x1b[0m  ", "❯ text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \x1b(Bend\x0f", "link end"),
    ],
)
def test_faint_characters_are_hints(screen: str, marked: str) -> None:
    assert unstyle(screen)[1] == marked


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "\x1b[2m", "\x1b[0m", "\x1b[7m", "\x1b[38;5;2m", "\x1b[22;7m", "\xa0", "\n"]),
            st.text(alphabet=st.characters(exclude_categories=["Cc", "Cs"]), max_size=8),
        )
    )
)
def test_both_readings_have_the_same_places(pieces: list[tuple[str, str]]) -> None:
    plain, marked = unstyle("".join(f"{style}{text}" for style, text in pieces))
    assert len(plain) == len(marked)
    assert all(two in (one, "\0") for one, two in zip(plain, marked, strict=True))
    assert "\x1b" not in plain


@settings(deadline=None)
@given(st.text(max_size=400), st.sampled_from(sorted(shipped())))
def test_any_screen_can_be_read_and_gives_the_same_result_again(screen: str, name: str) -> None:
    assert read_screen(shipped()[name], screen) == read_screen(shipped()[name], screen)


def test_what_stands_beside_the_box_is_not_in_it() -> None:
    backend = shipped()["opencode"]
    width = 40
    rows = ["", "漢字 and more", "two", "", "Build · Sonnet Anthropic"]
    beside = ["A title", "Context", "22 tokens", "0% used", "/srv/app/ws"]
    cells = [f"  ┃  {row}".rstrip() for row in rows]
    wide = [row + " " * (width - len(row) - row.count("漢") - row.count("字")) + "   " for row in cells]
    screen = "\n".join(row + side for row, side in zip(wide, beside, strict=True))
    screen += "\n  ╹" + "▀" * (width - 3) + "\n   ~/ws"
    assert read_screen(backend, screen).box == "漢字 and more\ntwo"


# --- what a box holds ---

PLACEHOLDER = r"\[Pasted text #\d+(?: \+\d+ lines)?\]"
LONG = "\n".join(f"line {n} of the text" for n in range(40))


@pytest.mark.parametrize(
    ("box", "text", "expected"),
    [
        ("run the tests", "run the tests", True),
        ("run the\ntests", "run the tests", True),
        ("run the tests", "run  the\n\n\ttests", True),
        ("run the", "run the tests", False),
        ("run the tests now", "run the tests", False),
        ("", "run the tests", False),
        ("  ", "", False),
        # what terminals show in their own way
        ("e\u0301 漢字", "é 漢字", True),
        ("ok 👩  👧 ❤", "ok 👩\u200d👧 ❤\ufe0f", True),
        ("🙂", "🙃", True),
        ("漢字", "汉字", False),
        # placeholders
        ("[Pasted text #1 +39 lines]", LONG, True),
        ("[Pasted text #2]", "x" * 900, True),
        ("[Pasted text #1 +39 lines]", "run the tests", False),
        ("[Pasted text #1 +39 lines][Pasted text #2 +39 lines]", LONG, False),
        ("old words [Pasted text #1 +39 lines]", LONG, False),
        ("what is [Pasted text #1]?", "what is [Pasted text #1]?", True),
        ("[Pasted text #1]", "[Pasted text #1]", True),
        # a box that scrolls shows the end
        ("\n".join(LONG.split("\n")[-15:]), LONG, True),
        ("\n".join(f"a{n}" for n in range(30, 45)), "\n".join(f"a{n}" for n in range(45)), True),
        ("\n".join(LONG.split("\n")[:15]), LONG, False),
        ("\n".join(LONG.split("\n")[-3:]), LONG, False),
        (LONG, LONG + "\nand more", False),
    ],
)
def test_a_box_holds_a_text(box: str, text: str, expected: bool) -> None:
    assert holds(box, text, PLACEHOLDER) is expected


@given(st.text(), st.integers(5, 60))
def test_a_text_is_held_however_its_lines_are_broken(text: str, width: int) -> None:
    box = "\n".join(line[at : at + width] for line in text.split("\n") for at in range(0, max(1, len(line)), width))
    assert holds(box, text, PLACEHOLDER) is bool(box.strip())


@given(st.text(alphabet=st.characters(categories=["L", "N"]), min_size=1), st.text(alphabet="ab\n ", min_size=1))
def test_another_text_is_not_held(text: str, more: str) -> None:
    if more.strip():
        assert not holds(text + more, text, PLACEHOLDER)
        assert not holds(more + text, text, PLACEHOLDER)


def test_a_placeholder_is_one_and_alone() -> None:
    assert shows_placeholder(" [Pasted text #1 +39 lines] ", PLACEHOLDER)
    assert not shows_placeholder("[Pasted text #1] x", PLACEHOLDER)
    assert not shows_placeholder("anything", None)
