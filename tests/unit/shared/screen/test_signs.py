"""What a screen and a title tell of what an agent is doing, by rules made up for it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contract.states import Activity
from shared.fleet.backend import Backend
from shared.fleet.profiles import shipped
from shared.fleet.screen_rules import Style
from shared.screen import ScreenActivity, read_screen, read_signs, read_title, unstyle
from shared.screen.signs import fingerprint
from shared.screen.styles import LETTERS, PLAIN, colours

BOX = "──────────\n> {}\n──────────\n  footer"
IDLE = BOX.format("")

SIGNS: dict[str, Any] = {
    "busy": {"says": "working", "match": r"^\* busy$", "reason": "it is busy"},
    "limit": {
        "says": "limited",
        "match": r"^! (?P<text>(?P<scope>\w+) limit(?:\s+until\s+(?P<reset>.+))?)",
        "style": "red",
        "reason": "its {scope} limit is reached[, until {reset}]",
    },
    "retries": {"says": "limited", "match": r"^  retrying$", "below": "box", "over_work": True},
    "done": {"says": "waiting", "match": r"^done\Z"},
    "broken": {"says": "failed", "match": "^broken$", "below": "anywhere"},
}
DIALOGS: list[dict[str, Any]] = [
    {"id": "permission", "match": r"^May I\?[\s\S]*\Z", "says": "a permission dialog"},
    {"id": "palette", "match": r"^Commands  esc$", "says": "a menu", "asks": "waiting", "over": True},
    {"id": "limit-menu", "match": r"^Wait or pay\?\Z", "says": "a menu about the limit", "asks": "limited"},
]


def backend(**changes: Any) -> Backend:
    signs = {**SIGNS, **changes.pop("signs", {})}
    screen = {
        "box": r"^─{10}\n> ?(?P<text>.*)\n─{10}(?:\n  .*)*\Z",
        "prompt": "^# .*",
        "signs": signs,
        "dialogs": DIALOGS,
        **changes,
    }
    return Backend.model_validate({"binary": "x", "screen": screen})


def told(screen: str, version: str | None = None, **changes: Any) -> tuple[str, str] | None:
    seen = read_signs(backend(**changes), screen, version)
    return None if seen is None else (f"{'weak ' if seen.weak else ''}{seen.says.value}", seen.rule)


@pytest.mark.parametrize(
    ("screen", "expected"),
    [
        (f"hello\n{IDLE}", ("weak waiting", "input-box")),
        (BOX.format("typed"), ("weak waiting", "input-box")),
        ("hello", None),
        ("", None),
        # the order
        ("* busy\nMay I?\n1. yes", ("needs_approval", "permission")),
        ("! day limit\nWait or pay?", ("limited", "limit-menu")),
        # … in which a dialog that a person opened comes after what the agent shows
        (f"Commands  esc\n{IDLE}", ("waiting", "palette")),
        (f"hello\nCommands  esc\n{BOX.format('half a thought')}", ("waiting", "palette")),
        ("Commands  esc", ("waiting", "palette")),
        (f"Commands  esc\n* busy\n{IDLE}", ("working", "busy")),
        (f"! day limit\nCommands  esc\n{IDLE}", ("limited", "limit")),
        (f"* busy\n{IDLE}", ("working", "busy")),
        (f"! day limit\n* busy\n{IDLE}", ("working", "busy")),
        (f"* busy\n{IDLE}\n  retrying", ("limited", "retries")),
        (f"! day limit\ndone\n{IDLE}", ("waiting", "done")),
        (f"done\n! day limit\n{IDLE}", ("limited", "limit")),
        # which part of the screen
        (f"! day limit\n# go on\nhello\n{IDLE}", ("weak waiting", "input-box")),
        (f"# go on\n! day limit\n{IDLE}", ("limited", "limit")),
        (f"* busy\n# go on\n{IDLE}", ("weak waiting", "input-box")),
        (f"broken\n# go on\n{IDLE}", ("failed", "broken")),
        (f"  retrying\n{IDLE}", ("weak waiting", "input-box")),
        (f"done\n\n\n{IDLE}", ("waiting", "done")),
        (f"done\nmore\n{IDLE}", ("weak waiting", "input-box")),
        (f"{BOX.format('! day limit')}", ("weak waiting", "input-box")),
        # without a box it waits for nothing
        ("done", None),
        ("! day limit", ("limited", "limit")),
        ("  retrying", None),
    ],
)
def test_what_a_screen_tells(screen: str, expected: tuple[str, str] | None) -> None:
    assert told(screen) == expected


RED, BRIGHT, GREEN, OFF = "\x1b[31m", "\x1b[38;5;211m", "\x1b[32m", "\x1b[0m"


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        (f"! {RED}day limit{OFF}", True),
        (f"! {BRIGHT}day limit{OFF}", True),
        (f"{RED}! day limit{OFF}", True),
        (f"! {GREEN}day limit{OFF}", False),
        (f"{RED}! day{OFF} limit", False),
        (f"! day limit {RED}elsewhere{OFF}", False),
        ("! day limit", True),  # no colours anywhere
        (f"! {RED}day limit until{OFF}\n{RED}  9:00{OFF}", True),
    ],
)
def test_a_sign_has_a_colour(line: str, counts: bool) -> None:
    assert (told(f"{line}\n{IDLE}") == ("limited", "limit")) is counts


def test_a_sign_can_be_faint() -> None:
    signs = {"busy": {**SIGNS["busy"], "style": "faint"}}
    assert told(f"\x1b[2m* busy{OFF}\n{IDLE}", signs=signs) == ("working", "busy")
    assert told(f"* busy\n\x1b[2mhint{OFF}\n{IDLE}", signs=signs) == ("weak waiting", "input-box")
    assert told(f"* busy\n{IDLE}", signs=signs) == ("working", "busy")


def test_the_reason_says_what_the_groups_matched() -> None:
    whole = read_signs(backend(), f"! weekly limit until\n  9:00 (UTC)\n{IDLE}")
    assert whole is not None
    assert whole.why == "its weekly limit is reached, until 9:00 (UTC)"
    assert whole.groups["reset"] == "9:00 (UTC)"
    assert whole.groups["scope"] == "weekly"
    short = read_signs(backend(), f"! weekly limit\n{IDLE}")
    assert short is not None
    assert short.why == "its weekly limit is reached"
    bare = read_signs(backend(), f"broken\n{IDLE}")
    assert bare is not None
    assert bare.why == "it shows: broken"


def test_a_menu_about_a_limit_says_what_the_banner_above_it_says() -> None:
    seen = read_signs(backend(), "! day limit until 9:00\n\nWait or pay?")
    assert seen is not None
    assert (seen.groups["reset"], seen.dialog) == ("9:00", "Wait or pay?")
    assert seen.why == "its screen shows a menu about the limit: its day limit is reached, until 9:00"


def test_a_dialog_is_told_with_its_text() -> None:
    seen = read_signs(backend(), "* busy\nMay I?\n1. yes")
    assert seen == ScreenActivity(
        Activity.NEEDS_APPROVAL, "permission", "its screen shows a permission dialog", dialog="May I?\n1. yes"
    )


@pytest.mark.parametrize(
    ("version", "expected"),
    [("2.1.325", ("working", "busy")), ("2.1.197", ("weak waiting", "input-box")), (None, ("working", "busy"))],
)
def test_a_rule_is_for_some_versions(version: str | None, expected: tuple[str, str]) -> None:
    signs = {"busy": {**SIGNS["busy"], "versions": ">=2.1.300"}}
    assert told(f"* busy\n{IDLE}", version, signs=signs) == expected
    assert read_screen(backend(signs=signs), f"* busy\n{IDLE}", version).working is (expected[0] == "working")


def test_a_dialog_is_for_some_versions() -> None:
    dialogs = [{**DIALOGS[0], "versions": "<2"}]
    assert told("May I?", "1.9", dialogs=dialogs) == ("needs_approval", "permission")
    assert told("May I?", "2.0", dialogs=dialogs) is None


def test_a_rule_that_was_taken_away_says_nothing() -> None:
    assert told(f"* busy\n{IDLE}", signs={"busy": None}) == ("weak waiting", "input-box")


def test_hints_above_the_box_are_no_part_of_the_conversation() -> None:
    screen = f"done\n\n{' ' * 30}hint · /effort\n{IDLE}"
    assert told(screen) == ("weak waiting", "input-box")
    assert told(screen, above=r"^ {20,}\S.*\Z") == ("waiting", "done")


def test_a_backend_that_can_t_be_seen_tells_nothing_by_its_box() -> None:
    assert told("hello", box=None) is None
    assert told("* busy", box=None) == ("working", "busy")


# --- titles ---

TITLED = Backend.model_validate(
    {
        "binary": "x",
        "titles": {
            "old": {"says": "waiting", "match": "^✳ ", "weak": True, "versions": "<2"},
            "busy": {"says": "working", "match": "^[⠁-⣿✳] "},
            "gone": None,
        },
    }
)


@pytest.mark.parametrize(
    ("title", "version", "expected"),
    [
        ("⠐ x", "1", (Activity.WORKING, "busy", False)),
        ("✳ x", "1", (Activity.WAITING, "old", True)),
        ("✳ x", "2", (Activity.WORKING, "busy", False)),
        ("✳ x", None, (Activity.WAITING, "old", True)),
        ("x", "1", None),
        ("", None, None),
    ],
)
def test_what_a_title_tells(title: str, version: str | None, expected: tuple[Activity, str, bool] | None) -> None:
    seen = read_title(TITLED, title, version)
    assert (None if seen is None else (seen.says, seen.rule, seen.weak)) == expected


# --- colours ---


@pytest.mark.parametrize(
    ("codes", "colour"),
    [
        ("31", "red"),
        ("91", "red"),
        ("38;5;1", "red"),
        ("38;5;211", "red"),
        ("38;2;255;107;128", "red"),
        ("38:2::171:43:63", "red"),
        ("1;38;5;9;4", "red"),
        ("38;5;220", "yellow"),
        ("33", "yellow"),
        ("38;5;114", "green"),
        ("38;5;75", "blue"),
        ("36", "blue"),
        ("38;5;183", "purple"),
        ("38;5;246", "grey"),
        ("38;5;8", "grey"),
        ("90", "grey"),
        ("38;2;102;102;102", "grey"),
        ("38;5;231", None),
        ("38;5;232", None),
        ("37", None),
        ("48;5;1", None),
        ("4:3", None),
        ("31;39", None),
        ("31;0", None),
    ],
)
def test_the_name_of_a_colour(codes: str, colour: str | None) -> None:
    found = colours(f"\x1b[34mx\x1b[0m\x1b[{codes}mtext")
    assert found is not None
    assert found[1:] == (PLAIN if colour is None else LETTERS[Style(colour)]) * 4


def test_a_screen_without_colours_has_none() -> None:
    assert colours("plain \x1b[1mbold\x1b[0m \x1b[48;5;1mbox\x1b[49m \x1b[39m") is None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "\x1b[31m", "\x1b[0m", "\x1b[38;5;2m", "\x1b[38;2;1;2m", "\x1b[7m", "\xa0", "\n"]),
            st.text(alphabet=st.characters(exclude_categories=["Cc", "Cs"]), max_size=8),
        )
    )
)
def test_colours_have_the_places_of_the_text(pieces: list[tuple[str, str]]) -> None:
    screen = "\x1b[32mx" + "".join(f"{style}{text}" for style, text in pieces)
    plain, found = unstyle(screen)[0], colours(screen)
    assert found is not None
    assert [len(row) for row in plain.split("\n")] == [len(row) for row in found.split("\n")]


@given(st.text(max_size=300), st.sampled_from(sorted(shipped())))
def test_any_text_can_be_read_and_gives_the_same_result_again(text: str, name: str) -> None:
    backend = shipped()[name]
    for read in (read_signs, read_title):
        assert read(backend, text) == read(backend, text)


CHOICES = {
    "claude": " Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel · Tab to amend",
    "gemini": "│ ● 1. Allow once │\n│   3. No, suggest changes (esc) │\n╰────────────────────────────────╯",
}


@pytest.mark.parametrize("kind", CHOICES)
def test_a_dialog_whose_upper_end_is_not_on_the_screen_is_told_by_what_is_seen_of_it(kind: str) -> None:
    """Else all commands that are longer than the screen would be one dialog, which shows none of them."""
    left, right = ("│ ", " │") if kind == "gemini" else ("   ", "")
    above = [f"{left}echo line {number}{right}" for number in range(30)]
    screens = ["\n".join([*above, f"{left}{last}{right}", CHOICES[kind]]) for last in ("make clean", "make public")]
    readings = [read_screen(shipped()[kind], screen) for screen in screens]
    assert [reading.dialog.id for reading in readings if reading.dialog] == ["permission"] * 2
    assert ["make clean" in reading.dialog_text for reading in readings] == [True, False]
    assert fingerprint(readings[0]) != fingerprint(readings[1])


@pytest.mark.parametrize(
    ("one", "other"),
    [("rm -rf /tmp/build", "rm -rf / tmp/build"), ("echo x > /etc/a", "echo x /etc/a"), ("a >b", "a >> b")],
)
def test_a_blank_or_a_redirection_makes_another_dialog(one: str, other: str) -> None:
    asked = "Do you allow this? {}\n  1. Yes\n  2. No\n1 or 2 · esc to refuse"
    readings = [read_screen(shipped()["demo"], asked.format(command)) for command in (one, other)]
    assert fingerprint(readings[0]) != fingerprint(readings[1])


def test_a_dialog_that_is_drawn_again_is_the_same_one() -> None:
    rows = " Do you want to proceed?\n{}1. Yes\n{}2. No\n\n Esc to cancel · Tab to amend"
    readings = [read_screen(shipped()["claude"], rows.format(*marks)) for marks in ((" ❯ ", "   "), ("   ", " ❯ "))]
    assert fingerprint(readings[0]) == fingerprint(readings[1]) != ""
