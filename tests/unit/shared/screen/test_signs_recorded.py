"""What the screens and titles of the real programs tell, each alone: right, or nothing, or only a hint.

They were recorded at several widths. A screen that tells something wrong for certain is a failure; the situations in
which it tells nothing, or hints at the wrong thing, are listed here, so that a change of them is seen.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from shared.fleet.profiles import shipped
from shared.screen import ScreenActivity, read_screen, read_signs, read_title, unstyle
from tests.real_agents.situations import SITUATIONS, Press
from tests.unit.shared.screen.test_look import BOXES

RECORDED = Path(__file__).parents[3] / "real_agents" / "recorded"


@dataclass(frozen=True)
class Case:
    program: str
    version: str
    situation: str
    columns: int
    expected: str
    screen: str
    title: str

    @property
    def name(self) -> str:
        return f"{self.program}-{self.version}-{self.situation}@{self.columns}"

    @property
    def where(self) -> str:
        return f"{self.program}/{self.situation}"

    def by_screen(self, program: str | None = None) -> ScreenActivity | None:
        return read_signs(shipped()[program or self.program], self.screen, None if program else self.version)

    def by_title(self) -> ScreenActivity | None:
        return read_title(shipped()[self.program], self.title, self.version)


@cache
def cases() -> list[Case]:
    """Of programs that run: what a dead one left on its screen is not asked."""
    return list(_read())


def _read() -> Iterator[Case]:
    for path in sorted(RECORDED.rglob("*@*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        if not found["dead"]:
            yield Case(
                found["cli"],
                found["version"],
                found["situation"],
                found["columns"],
                found["expected"],
                "\n".join(found["screen"]),
                found["title"],
            )


PROGRAMS = sorted({(case.program, case.version) for case in cases()})
every_program = pytest.mark.parametrize(
    "recorded",
    [[case for case in cases() if (case.program, case.version) == each] for each in PROGRAMS],
    ids=["-".join(each) for each in PROGRAMS],
)
"""All of a program at once: a test for each of the many would take longer to set up than to run."""


def _wrong(recorded: list[Case], see: Callable[[Case], ScreenActivity | None]) -> dict[str, ScreenActivity]:
    """What is told for certain and is not so, by case."""
    seen = {case: see(case) for case in recorded}
    return {
        case.name: told for case, told in seen.items() if told and not told.weak and told.says.value != case.expected
    }


def test_there_are_recordings_of_every_program_that_was_measured() -> None:
    assert {case.program for case in cases()} == {"claude", "codex", "gemini", "opencode"}


@every_program
def test_a_screen_tells_nothing_wrong(recorded: list[Case]) -> None:
    assert _wrong(recorded, lambda case: case.by_screen()) == {}


@every_program
def test_a_title_tells_nothing_wrong(recorded: list[Case]) -> None:
    assert _wrong(recorded, lambda case: case.by_title()) == {}


@every_program
def test_a_screen_tells_nothing_wrong_where_the_version_is_not_known(recorded: list[Case]) -> None:
    assert _wrong(recorded, lambda case: read_signs(shipped()[case.program], case.screen)) == {}


@every_program
def test_a_limit_is_told_with_its_reset(recorded: list[Case]) -> None:
    seen = {case.name: case.by_screen() for case in recorded if case.situation not in WITHOUT_RESET}
    limits = {name: told for name, told in seen.items() if told is not None and told.says.value == "limited"}
    assert limits or recorded[0].program == "gemini"  # which never says it
    assert {name: told for name, told in limits.items() if not told.groups.get("reset")} == {}


WITHOUT_RESET = ("limit-api", "limit-per_day", "limit-per_day-dismissed")
"""The program is told none, or does not say it."""


def _blind(sightings: list[tuple[Case, ScreenActivity | None]]) -> dict[str, str]:
    """By situation: what is told where it is not the truth for certain."""
    found: dict[str, set[str]] = {}
    for case, seen in sightings:
        if seen is None:
            found.setdefault(case.where, set()).add("nothing")
        elif seen.weak and seen.says.value != case.expected:
            found.setdefault(case.where, set()).add(f"seems {seen.says.value}")
    return {where: ", ".join(sorted(told)) for where, told in sorted(found.items())}


SCREENS_BLIND_IN = {
    "codex/streaming": "seems waiting",  # its status line is away while words come
    "codex/subagent-background": "seems waiting",  # the main conversation has ended
}
"""The screen alone tells nothing there, or hints at the wrong thing."""
TITLES_TELL = {
    "claude-2.1.197": {
        "failed": "seems waiting",
        "limited": "seems waiting",
        "needs_approval": "nothing, seems waiting",
        "waiting": "seems waiting",
        "working": "working",
    },
    "claude-2.1.325": dict.fromkeys(("failed", "limited", "needs_approval", "waiting", "working"), "nothing"),
    "codex-0.166.0": {
        "failed": "nothing",
        "limited": "nothing",
        "needs_approval": "needs_approval, nothing",  # nothing before it is trusted
        "waiting": "nothing",
        "working": "nothing, working",  # nothing when only a subagent works
    },
    "gemini-0.61.0": {
        "failed": "seems waiting",
        "limited": "seems waiting, seems working",
        "needs_approval": "needs_approval, seems waiting",
        "waiting": "seems waiting",
        "working": "seems working",
    },
    "opencode-1.18.33": dict.fromkeys(("failed", "limited", "needs_approval", "waiting", "working"), "nothing"),
}
"""By program and by what is true."""


def test_where_a_screen_alone_is_blind() -> None:
    assert _blind([(case, case.by_screen()) for case in cases()]) == SCREENS_BLIND_IN


def test_what_a_title_alone_tells() -> None:
    for case in cases():
        seen = case.by_title()
        told = "nothing" if seen is None else f"{'seems ' if seen.weak else ''}{seen.says.value}"
        assert told in TITLES_TELL[f"{case.program}-{case.version}"][case.expected].split(", "), case.where


# --- the keys that answer a dialog ---

FOR_YES = {"claude": "Yes", "codex": "Yes, proceed", "gemini": "Allow once", "opencode": "Allow once"}
MARKED = re.compile(r"\x1b\[48;[\d;:]+m (?:\x1b\[[\d;:]+m)+(\w[\w ]*)")
"""A word that alone in its row has a background of another colour, which begins a column before it."""


def _row_of(key: str, screen: str) -> str:
    """What a key chooses, by what the dialog itself says."""
    if key == "Enter":
        return next((found[1].strip() for row in screen.split("\n")[::-1] if (found := MARKED.search(row))), "")
    form = rf"^\W*{key}\. (?P<row>.*?)[ │]*$" if key.isdigit() else rf"^\W*\d\. (?P<row>.*) \({key}\)$"
    return next(iter(re.findall(form, unstyle(screen)[0], re.MULTILINE)[-1:]), "")


PERMISSIONS = [case for case in cases() if (seen := case.by_screen()) is not None and seen.rule == "permission"]


def test_permission_dialogs_of_every_program_were_recorded() -> None:
    assert {case.program for case in PERMISSIONS} == set(FOR_YES)


@pytest.mark.parametrize("case", PERMISSIONS, ids=lambda case: f"{case.where}-{case.version}@{case.columns}")
def test_the_key_for_yes_chooses_the_row_that_says_so(case: Case) -> None:
    dialog = read_screen(shipped()[case.program], case.screen, case.version).dialog
    assert dialog is not None
    (key,) = dialog.approve
    assert _row_of(key, case.screen) == FOR_YES[case.program]


@pytest.mark.parametrize("program", FOR_YES)
def test_the_key_for_no_is_the_one_that_was_seen_to_reject(program: str) -> None:
    """In the recorded situation it is pressed in the dialog; afterwards nothing is asked, and nothing was run."""
    (rejected,) = {one.steps for one in SITUATIONS if one.name == "rejected" and program in one.clis}
    (pressed,) = {step.keys for step in rejected if isinstance(step, Press)}
    after = [case for case in cases() if case.where == f"{program}/rejected"]
    assert after
    assert all(read_screen(shipped()[program], case.screen, case.version).dialog is None for case in after)
    for dialog in shipped()[program].screen.dialogs:
        assert not dialog.deny or tuple(dialog.deny) == pressed


@pytest.mark.parametrize("case", PERMISSIONS, ids=lambda case: f"{case.where}-{case.version}@{case.columns}")
def test_the_dialog_itself_says_that_escape_is_no(case: Case) -> None:
    """That of opencode names no key for it."""
    said = re.search(r"(?m)^ Esc to cancel\b|\bNo, .*\(esc\)", unstyle(case.screen)[0])
    assert said or case.program == "opencode"


# --- what is only quoted ---


def _claude(rows: list[str]) -> str:
    shown = "\n     ".join(rows)
    return f"❯ show it\n\n● Bash(cat log)\n  ⎿  {shown}\x1b[0m\n\n● That is it.\n\n✻ Baked for 1s\n\n{BOXES['claude']}"


def _claude_saying(rows: list[str]) -> str:
    shown = "\n  ".join(rows)
    return f"❯ show it\n\n● {shown}\x1b[0m\n\n{BOXES['claude']}"


def _codex(rows: list[str]) -> str:
    shown = "\n    ".join(rows)
    return f"› show it\n\n• Ran cat log\n  └ {shown}\x1b[0m\n\n• That is it.\n\n{BOXES['codex']}"


def _codex_saying(rows: list[str]) -> str:
    shown = "\n  ".join(rows)
    return f"› show it\n\n• {shown}\x1b[0m\n\n{BOXES['codex']}"


def _gemini(rows: list[str]) -> str:
    shown = "\x1b[0m │\n│ ".join(rows)
    frame = "─" * 60
    return f" > show it\n\n╭{frame}╮\n│ {shown}\x1b[0m │\n╰{frame}╯\n\n✦ That is it.\n\n{BOXES['gemini']}"


def _gemini_saying(rows: list[str]) -> str:
    shown = "\n  ".join(rows)
    return f" > show it\n\n✦ {shown}\x1b[0m\n\n{BOXES['gemini']}"


def _opencode(rows: list[str]) -> str:
    shown = "\x1b[0m\n  ┃  ".join(rows)
    return f"  ┃\n  ┃  {shown}\x1b[0m\n  ┃\n\n     That is it.\n\n     ▣  Build · lab · 2.1s\n{BOXES['opencode']}"


def _opencode_saying(rows: list[str]) -> str:
    shown = "\n     ".join(rows)
    return f"  ┃\n  ┃  show it\n  ┃\n\n     {shown}\x1b[0m\n\n     ▣  Build · lab · 2.1s\n{BOXES['opencode']}"


TOOLS = {"claude": _claude, "codex": _codex, "gemini": _gemini, "opencode": _opencode}
SAYING = {
    "claude": _claude_saying,
    "codex": _codex_saying,
    "gemini": _gemini_saying,
    "opencode": _opencode_saying,
}


def _believed(recorded: list[Case], form: Callable[[Case, str], str]) -> dict[tuple[str, str], ScreenActivity | None]:
    """Where a screen that is only shown by a waiting program is taken for something else, by case and that program."""
    seen = {(case.name, each): read_signs(shipped()[each], form(case, each)) for case in recorded for each in TOOLS}
    return {where: told for where, told in seen.items() if told is None or told.says.value != "waiting"}


@every_program
def test_a_screen_in_the_output_of_a_tool_tells_nothing(recorded: list[Case]) -> None:
    """With all its colours, for a tool can show those."""

    def shown(case: Case, program: str) -> str:
        return TOOLS[program]([row for row in case.screen.split("\n") if row.strip()])

    assert _believed(recorded, shown) == {}


@every_program
def test_a_screen_in_an_answer_tells_nothing(recorded: list[Case]) -> None:
    def said(case: Case, program: str) -> str:
        return SAYING[program]([row for row in unstyle(case.screen)[0].split("\n") if row.strip()])

    assert _believed(recorded, said) == {}


@every_program
def test_rules_of_other_programs_find_no_work_limit_or_failure(recorded: list[Case]) -> None:
    """A dialog may look like one of another program: what runs in a pane is known."""
    seen = {(case.name, each): case.by_screen(each) for case in recorded for each in TOOLS if each != case.program}
    assert {where: told for where, told in seen.items() if told and not told.weak and not told.dialog} == {}
