"""What templates say, which file and line end a phase, and how a first prompt is put together."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.handoff.loops.templates import KICKOFF, done_pattern, kickoff, names_its_phase, status_path, values_of
from tests.unit.handoff.samples import loop, phases

PLAN = phases("Plan it", "Build it")


# --- what templates may say ---


def test_a_template_may_name_the_loops_phase_and_branch() -> None:
    given = loop(branch="work", phases=PLAN, status_file="docs/{number}-{phase}.md")
    assert values_of("app", given, 2) == {
        "loop": "app",
        "branch": "work",
        "remote": "https://example.org/app.git",
        "phase": "Build it",
        "number": "2",
        "phases": "2",
        "status_file": "docs/2-build-it.md",
    }


def test_a_loop_in_no_phase_has_no_phase_values() -> None:
    values = values_of("app", loop(), 0)
    assert (values["phase"], values["number"], values["phases"], values["status_file"]) == ("", "", "0", "")


def test_a_loop_in_no_phase_has_no_status_file() -> None:
    given = loop(phases=PLAN, status_file="docs/{number}-{phase}.md")
    assert values_of("app", given, 0)["status_file"] == ""


# --- the status file and its line ---


@pytest.mark.parametrize(
    ("status_file", "number", "expected"),
    [
        (None, 1, None),
        ("STATUS.md", 1, "STATUS.md"),
        ("STATUS.md", 2, "STATUS.md"),
        ("{number}.md", 2, "2.md"),
        ("{phase}/{phase}.md", 1, "plan-it/plan-it.md"),
        ("{other}.md", 1, "{other}.md"),
    ],
)
def test_each_phase_has_its_status_file(status_file: str | None, number: int, expected: str | None) -> None:
    assert status_path(loop(phases=PLAN, status_file=status_file), number) == expected


@pytest.mark.parametrize(
    ("done", "status_file", "expected"),
    [
        ("^DONE", "STATUS.md", False),
        ("^DONE", None, False),
        ("^DONE{2}", "{x}.md", False),
        ("^PHASE {number} DONE", "STATUS.md", True),
        ("^{phase}: DONE", None, True),
        ("^DONE", "{phase}.md", True),
        ("^DONE", "{number}.md", True),
    ],
)
def test_a_line_names_its_phase_by_itself_or_by_its_file(done: str, status_file: str | None, expected: bool) -> None:
    assert names_its_phase(loop(phases=PLAN, done=done, status_file=status_file)) is expected


@pytest.mark.parametrize("names", [("设计", "实现"), ("Build: API", "build api"), ("a" * 64 + "1", "a" * 64 + "2")])
def test_a_status_file_that_two_phases_share_names_neither(names: tuple[str, str]) -> None:
    """Else what ends the first ends the second too, in the same moment."""
    given = loop(phases=phases(*names), status_file="{phase}.md")
    assert status_path(given, 1) != status_path(given, 2) or not names_its_phase(given)


def test_a_done_line_names_its_phase_as_whole_words() -> None:
    given = loop(phases=phases("A+ (b)", "c"), done=r"^{number}: {phase}.{0,3}$")
    assert [bool(re.search(done_pattern(given, 2), line)) for line in ("2: c", "2: c!!!", "12: c", "2: cc")] == [
        *(True, True),
        *(False, False),
    ]
    assert not re.search(done_pattern(loop(phases=phases("a"), done="^DONE {number}"), 1), "DONE 12")
    for done, line in (
        ("^DONE P{number}$", "DONE P1"),
        ("^v{number} DONE", "v1 DONE"),
        ("^DONE p_{phase}$", "DONE p_a"),
    ):
        assert re.search(done_pattern(loop(phases=phases("a"), done=done), 1), line)
    assert re.search(done_pattern(loop(phases=phases("A+ (b)"), done="^{phase} DONE"), 1), "A+ (b) DONE")
    assert not re.search(done_pattern(loop(phases=phases("A+ (b)"), done="^{phase} DONE"), 1), "AA b DONE")


NAMES = st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30)


@given(NAMES, st.sampled_from(["^{phase}: DONE", "(?x) ^{phase}:", "(?i){phase}:", "^({phase}):"]))
def test_a_done_line_can_be_found_by_any_phase_name(name: str, done: str) -> None:
    found = re.compile(done_pattern(loop(phases=phases(name), done=done), 1)).search(f"{name}: DONE")
    assert found is not None


@given(NAMES)
def test_a_status_file_stays_where_it_was_declared(name: str) -> None:
    path = status_path(loop(phases=phases(name), status_file="docs/{phase}.md"), 1)
    assert path is not None
    assert re.fullmatch(r"docs/[a-z0-9_-]+\.md", path)


# --- the first prompt ---


@pytest.mark.parametrize(
    ("template", "role_prompts", "expected"),
    [
        (KICKOFF, [], "Phase 1 of 2: Plan it."),
        (KICKOFF, ["You build.\n"], "You build.\n\nPhase 1 of 2: Plan it."),
        ("Go.", ["You build.", "You test."], "You build.\n\nYou test.\n\nGo."),
        ("Go.", ["", "  \n"], "Go."),
        ("Go.\n{role_prompt}\nNow.", ["You build."], "Go.\nYou build.\nNow."),
        ("Go. {role_prompt}", [], "Go."),
        ("{role_prompt}", ["You build."], "You build."),
        ("", ["You build."], "You build."),
        ("", [], ""),
        ("{phase}", ["You are {agent}, in {phase}."], "You are bob, in Plan it.\n\nPlan it"),
        ("{unknown} {", ["{}"], "{}\n\n{unknown} {"),
        ("Go.", ["Say {role_prompt}."], "Say {role_prompt}.\n\nGo."),
    ],
)
def test_a_first_prompt_is_that_of_the_roles_and_then_that_of_the_phase(
    template: str, role_prompts: list[str], expected: str
) -> None:
    values = {**values_of("app", loop(phases=PLAN), 1), "agent": "bob"}
    assert kickoff(template, role_prompts, values) == expected


def test_a_value_that_was_filled_in_is_not_filled_again() -> None:
    given = loop(phases=phases("{agent} and {role_prompt}"))
    values = {**values_of("app", given, 1), "agent": "bob"}
    assert kickoff("{phase}", ["You build."], values) == "You build.\n\n{agent} and {role_prompt}"
