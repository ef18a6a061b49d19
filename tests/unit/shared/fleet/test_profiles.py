"""The profiles that come with Muster: each rule is held to the screens and texts that it carries or names."""

import re
from pathlib import Path
from typing import Any

import pytest

from services.spawner.typing.message_text import TakenForCommand, completed, must_be_no_command, needs_file
from shared.agents.parts import FOLDER, programs_with
from shared.contract.states import Activity
from shared.fleet.backend import Backend, Dialog, PromptDelivery, Sign, TitleRule
from shared.fleet.profiles import STORED, render, shipped, stored_profiles, with_samples
from shared.fleet.screen_rules import LimitWarning
from shared.screen import (
    compiled,
    fits_title,
    read_screen,
    read_signs,
    read_signs_and_warning,
    read_title,
    shows_sign,
    unstyle,
)
from tests.unit.shared.screen.test_look import BOXES

AGENTS = tuple(name for name in programs_with() if name != "demo")
MEASURED = ("claude", "codex", "gemini", "opencode")
RULES = [(name, rule) for name, backend in with_samples().items() for rule in backend.screen.dialogs]
IDS = [f"{name}-{rule.id}" for name, rule in RULES]
SIGNS = [(name, key, sign) for name, each in with_samples().items() for key, sign in each.screen.signs.items() if sign]
TITLES = [(name, key, rule) for name, each in with_samples().items() for key, rule in each.titles.items() if rule]
ALL_SIGNS = [f"{name}-{key}" for name, key, _ in SIGNS]
ALL_TITLES = [f"{name}-{key}" for name, key, _ in TITLES]


def bare(given: Any) -> Any:
    """Without samples."""
    if isinstance(given, dict):
        return {key: bare(each) for key, each in given.items() if key not in ("yes", "no")}
    return [bare(each) for each in given] if isinstance(given, list) else given


def test_the_stored_profiles_lack_only_the_samples() -> None:
    for name, backend in with_samples().items():
        assert bare(backend.model_dump()) == bare(shipped()[name].model_dump())
    assert all(not rule.yes for backend in shipped().values() for rule in backend.screen.dialogs)


def test_what_is_kept_of_the_files_is_what_they_say() -> None:
    assert STORED.read_text(encoding="utf-8") == render(), "run: ./muster test --write"


@pytest.mark.parametrize("content", [None, "", "{", "[]", "null", '{"made_from": "else", "profiles": {"claude": {}}}'])
def test_what_was_kept_of_other_files_or_is_broken_does_not_count(content: str | None, tmp_path: Path) -> None:
    file = tmp_path / "read.json"
    if content is not None:
        file.write_text(content)
    assert stored_profiles(file, {"claude": "binary: claude"}) is None


def test_they_are_all_there() -> None:
    folders = {found.parent.name for found in FOLDER.glob("*/__init__.py")} - {"hooks"}
    assert folders
    assert folders == shipped().keys(), "each program's folder in shared/agents needs __init__.py and profile.yaml"


@pytest.mark.parametrize("name", AGENTS)
def test_a_profile_says_all_that_is_needed(name: str) -> None:
    backend = shipped()[name]
    needed = {
        "binary": backend.binary,
        "install": backend.install,
        "model.args": backend.model.args,
        "resume.args or resume.latest": backend.resume.args or backend.resume.latest,
        "process": backend.process,
        "env_from": backend.env_from,
        "screen.box with a group `text`": "text" in re.compile(backend.screen.box or "").groupindex,
        "a word with {prompt} in prompt_args, since deliver is arg": backend.deliver is not PromptDelivery.ARG
        or any("{prompt}" in word for word in backend.prompt_args),
    }
    lacking = [key for key, given in needed.items() if not given]
    assert not lacking, f"shared/agents/{name}/profile.yaml lacks {', '.join(lacking)}"


@pytest.mark.parametrize("name", AGENTS)
def test_a_prompt_that_looks_like_an_option_is_none(name: str) -> None:
    backend = shipped()[name]
    if backend.deliver is PromptDelivery.ARG:
        assert backend.prompt_args[0] == "--" or backend.prompt_args[0].endswith("={prompt}")


@pytest.mark.parametrize(("name", "rule"), RULES, ids=IDS)
def test_a_rule_carries_its_own_evidence(name: str, rule: Dialog) -> None:
    backend = shipped()[name]
    assert rule.yes or name == "demo", "a rule without a screen that it fits"
    for screen in rule.yes:
        reading = read_screen(backend, screen)
        assert reading.dialog is not None
        assert reading.dialog.id == rule.id
        assert reading.box is None
    for screen in rule.no:
        dialog = read_screen(backend, screen).dialog
        assert dialog is None or dialog.id != rule.id


@pytest.mark.parametrize(("name", "key", "sign"), SIGNS, ids=ALL_SIGNS)
def test_a_sign_carries_its_own_evidence(name: str, key: str, sign: Sign) -> None:
    backend = shipped()[name]
    assert sign.says is not None
    assert sign.match
    assert sign.yes, "a sign without a screen that shows it"
    assert sign.no, "a sign without a screen that looks alike"
    for screen in sign.yes:
        seen = read_signs(backend, screen)
        assert seen is not None
        assert (seen.says, seen.rule) == (sign.says, key)
        assert read_screen(backend, screen).working is (sign.says is Activity.WORKING or sign.over_work)
    for screen in sign.no:
        assert not shows_sign(backend.screen, sign, screen)


@pytest.mark.parametrize(("name", "key", "sign"), SIGNS, ids=ALL_SIGNS)
def test_a_sign_of_one_program_is_none_of_another(name: str, key: str, sign: Sign) -> None:
    """In what another program quotes, say."""
    for other in MEASURED:
        if other != name:
            for screen in sign.yes:
                quoted = "\n".join(f"  {line}" for line in screen.split("\n"))
                seen = read_signs(shipped()[other], f"{quoted}\n\n{BOXES[other]}")
                assert seen is not None
                assert seen.weak, f"{other} takes it for {seen.rule}"


@pytest.mark.parametrize(("name", "key", "sign"), SIGNS, ids=ALL_SIGNS)
def test_a_reason_can_be_filled_in(name: str, key: str, sign: Sign) -> None:
    groups = re.compile(sign.match).groupindex
    assert set(re.findall(r"\{(\w+)\}", sign.reason)) <= groups.keys()
    if sign.style is not None:
        assert "text" in groups


@pytest.mark.parametrize(("name", "key", "rule"), TITLES, ids=ALL_TITLES)
def test_a_title_rule_carries_its_own_evidence(name: str, key: str, rule: TitleRule) -> None:
    assert rule.yes
    assert rule.no
    for title in rule.yes:
        seen = read_title(shipped()[name], title)
        assert seen is not None
        assert (seen.says, seen.rule, seen.weak) == (rule.says, key, rule.weak)
    for title in rule.no:
        assert not fits_title(rule, title)


@pytest.mark.parametrize(("name", "rule"), RULES, ids=IDS)
def test_only_permissions_are_answered_by_keys(name: str, rule: Dialog) -> None:
    if rule.approve:
        assert rule.id == "permission"
        assert rule.deny
    if rule.deny:
        assert rule.asks == "needs_approval"
    for keys in (rule.approve, rule.deny):
        assert "C-c" not in keys


@pytest.mark.parametrize("name", MEASURED)
def test_every_answer_that_changes_more_than_this_once_is_a_person_s(name: str) -> None:
    """A plan's yes changes the permission mode, hooks run outside the sandbox, `always` is more than once."""
    answered = {rule.id: (rule.approve, rule.deny) for rule in shipped()[name].screen.dialogs if rule.approve}
    keys = {"claude": ["1"], "codex": ["y"], "gemini": ["1"], "opencode": ["Enter"]}
    assert answered == {"permission": (keys[name], ["Escape"])}


OPENED = {
    "claude": {"rewind", "resume", "settings", "history", "agents"},
    "codex": {"settings", "resume", "history", "near-limit"},
    "gemini": {"rewind"},
    "opencode": {"menu"},
}
"""What a person opens, or only offers something: no agent asks by it."""


@pytest.mark.parametrize(("name", "rule"), RULES, ids=IDS)
def test_what_a_dialog_means_for_the_agent(name: str, rule: Dialog) -> None:
    opened, limits = rule.id in OPENED.get(name, ()), rule.id == "limit"
    assert rule.asks == ("waiting" if opened else "limited" if limits else "needs_approval")
    for screen in rule.yes:
        seen = read_signs(shipped()[name], screen)
        assert seen is not None
        assert (seen.says.value, seen.rule, seen.weak) == (rule.asks, rule.id, False)


WARNINGS = [
    (name, rule) for name, each in with_samples().items() for rule in each.screen.warnings.values() if rule is not None
]


@pytest.mark.parametrize(("name", "rule"), WARNINGS, ids=[name for name, _ in WARNINGS])
def test_a_warning_carries_its_own_evidence(name: str, rule: LimitWarning) -> None:
    assert rule.yes
    assert rule.no
    assert all(read_signs_and_warning(shipped()[name], screen)[1] for screen in rule.yes)
    assert not any(read_signs_and_warning(shipped()[name], screen)[1] for screen in rule.no)


MENUS = {
    "claude-2.1.325": "   What do you want to do?\n\n   ❯ 1. Adjust monthly spend limit\n"
    "     2. Stop and wait for limit to reset\n     3. Upgrade your plan\n\n   Enter to confirm · Esc to cancel",
    "claude-other": "   What do you want to do?\n\n   ❯ 1. Add funds to continue with extra usage\n"
    "     2. Upgrade your plan\n\n   Enter to confirm · Esc to cancel",
    "gemini": "│ Usage limit reached for all Pro models.   │\n"
    "│ ● 1. Use AI Credits - Continue this request (Overage) │\n"
    "│   2. Manage - View balance and purchase more credits │\n│   3. Stop - Abort request │\n╰──────────────────╯",
    "gemini-free": "│ Usage limit reached for all Pro models.   │\n│ ● 1. Switch to gemini-flash │\n"
    "│   2. Keep trying │\n│   3. Stop │\n╰──────────────────╯",
    "codex": "  Approaching rate limits\n  Switch to gpt-6-luna for lower credit usage?\n\n"
    "› 1. Switch to gpt-6-luna  Fast.\n"
    "  2. Keep current model\n  3. Keep current model (never show again)  Hide\n\n  enter select · esc back",
}


@pytest.mark.parametrize(
    ("menu", "leave", "resume"),
    [
        ("claude-2.1.325", ("2",), ()),
        ("claude-other", (), ()),
        ("gemini", ("3",), ()),
        ("gemini-free", ("3",), ("2",)),
        ("codex", ("2",), ()),
    ],
)
def test_a_menu_is_left_by_the_row_that_costs_and_changes_nothing_or_not_at_all(
    menu: str, leave: tuple[str, ...], resume: tuple[str, ...]
) -> None:
    reading = read_screen(shipped()[menu.partition("-")[0]], MENUS[menu])
    assert reading.dialog is not None
    assert (reading.leave, reading.resume) == (leave, resume)


NEVER_S = 60
"""A rule that goes back and forth takes minutes; the others a moment, on a machine of any load."""


@pytest.mark.timeout(NEVER_S)
@pytest.mark.parametrize(("name", "rule"), RULES, ids=IDS)
def test_a_dialog_is_looked_for_without_end_on_no_hostile_screen(name: str, rule: Dialog) -> None:
    """Nor on one that looks like the beginning of it again and again."""
    backend = shipped()[name]
    for sample in rule.yes:
        rows = [row for row in sample.split("\n") if row.strip()]
        for part in (rows[:1], rows[:-1], rows[-1:]):
            hostile = "\n".join((part or rows) * 200)
            whole = "\n".join([row.ljust(200) + "." for row in hostile.split("\n")[-200:]])
            assert read_screen(backend, hostile) is not None
            assert read_screen(backend, whole) is not None


HOSTILE = {
    "claude": [
        [" ☐ x", "Enter to select"],
        [" Do you want to ?", "?"],
        ["─" * 20, " Exit plan mode?", "  ❯ 1. Yes", "  2. No"],
    ],
    "codex": [["› 1. x", "  a · enter to · enter x · esc"], ["  Question 1/1", "  enter to submit"]],
    "gemini": [["│ Usage limit reached for x │", "│ Access resets at 3:05 PM. │", "│ ● 1. Keep trying │"]],
    "opencode": [["  ┃  △ Permission required", "  ┃   Allow once   Allow always   Reject"]],
}


@pytest.mark.timeout(NEVER_S)
@pytest.mark.parametrize("name", HOSTILE)
def test_no_rule_goes_back_and_forth_over_rows_without_end(name: str) -> None:
    for rows in HOSTILE[name]:
        wide = [f"{row} " * (200 // (len(row) + 1)) for row in rows]
        for each in (rows, wide):
            many = [row for row in each for _ in range(200 // len(each))]  # one after the other
            for screen in ("\n".join(each * (200 // len(each))), "\n".join(many)):
                assert read_screen(shipped()[name], f"{screen}\n.") is not None


@pytest.mark.parametrize("name", MEASURED)
def test_a_dialog_over_the_box_that_is_only_quoted_is_none(name: str) -> None:
    """Even with its colours, in the middle of a conversation."""
    backend = shipped()[name]
    for rule in with_samples()[name].screen.dialogs:
        for screen in rule.yes if rule.over else ():
            quoted = "\n".join(f"    {unstyle(line)[0]}" for line in screen.split("\n"))
            assert read_screen(backend, f"● It shows\n\n{quoted}\n\n{BOXES[name]}").box == ""


@pytest.mark.parametrize("name", MEASURED)
def test_nothing_that_could_end_or_interrupt_the_agent_clears_its_box(name: str) -> None:
    assert not {"C-c", "C-d", "Escape", "Enter"} & set(shipped()[name].typing.clear)


ORDERS = {
    "claude": ["/compact", "/not-a-command x", "/a\nb", "!ls", "exit", "quit", "/"],
    "codex": ["/compact", "/model x", "!ls", "\n!ls"],
    "opencode": ["/help", "/init now", "exit", "quit"],
    "gemini": ["/help", "/chat save x"],
    "agy": ["/resume", "exit"],
    "aider": ["/add x", "!ls"],
}
"""Texts that the program would carry out itself. Each shipped program has a row."""
PROMPTS = ["/etc/passwd is a file", "exit the loop", "a /word", "# head", "? why", "& so on", "--flag", "-", "quit it"]


@pytest.mark.parametrize("name", AGENTS)
def test_commands_to_the_program_are_distinguished_from_prompts(name: str) -> None:
    assert name in ORDERS, f"add texts that {name} takes for commands of its own to ORDERS in this file"
    typing = shipped()[name].typing
    for text in ORDERS[name]:
        with pytest.raises(TakenForCommand):
            must_be_no_command(typing, text)
    for text in PROMPTS:
        if name != "aider" or text[0] != "/":
            must_be_no_command(typing, text)


@pytest.mark.parametrize(
    ("name", "text", "by_file"),
    [
        *((name, "plain\ntext with é, 漢字 and 🙂", False) for name in AGENTS),
        *((name, f"a{character}b", True) for name in AGENTS for character in "\x00\r\x1b\x07\x7f\x85\x9b"),
        ("claude", "a\tb", True),
        ("codex", "a\tb", False),
        ("opencode", "a\tb", False),
        ("gemini", "a\tb", False),
        ("claude", "e\u0301", True),
        ("codex", "e\u0301", False),
        ("gemini", "zero\u200bwidth", True),
        ("codex", "zero\u200bwidth", False),
        ("gemini", "👩\u200d👧", False),
        ("opencode", "/srv/app/ws", True),
        ("opencode", "look at /srv/app/ws", False),
        ("gemini", "'/srv/app/ws/x.py'", True),
    ],
)
def test_what_a_paste_would_change_goes_by_file(name: str, text: str, by_file: bool) -> None:
    assert needs_file(shipped()[name], text) is by_file


@pytest.mark.parametrize(
    ("name", "text", "pasted"),
    [
        ("claude", "see @STORED", "see @STORED "),
        ("claude", "@", "@ "),
        ("claude", "see @STORED now", "see @STORED now"),
        ("claude", "mail me@example.org", "mail me@example.org"),
        ("claude", "one\ntwo\nthree\nsee @STORED", "one\ntwo\nthree\nsee @STORED"),
        ("claude", "x" * 800 + " @STORED", "x" * 800 + " @STORED"),
        ("codex", "see @STORED", "see @STORED "),
        ("codex", "use $skill", "use $skill "),
        ("codex", "cost: 5$", "cost: 5$"),
        ("opencode", "see @STORED", "see @STORED "),
        ("opencode", "one\ntwo\nsee @STORED", "one\ntwo\nsee @STORED"),
        ("gemini", "see @STORED", "see @STORED "),
    ],
)
def test_a_word_that_would_be_completed_is_closed_by_a_space(name: str, text: str, pasted: str) -> None:
    assert completed(shipped()[name].typing, text) == pasted


@pytest.mark.parametrize(
    ("name", "placeholder"),
    [
        ("claude", "[Pasted text #1]"),
        ("claude", "[Pasted text #12 +133 lines]"),
        ("codex", "[Pasted Content 1001 chars]"),
        ("codex", "[Pasted Content 1500 chars] #2"),
        ("gemini", "[Pasted Text: 6 lines]"),
        ("gemini", "[Pasted Text: 10000 chars]"),
        ("opencode", "[Pasted ~3 lines]"),
    ],
)
def test_placeholders_of_pastes(name: str, placeholder: str) -> None:
    pattern = shipped()[name].screen.placeholder
    assert pattern is not None
    assert compiled(pattern).fullmatch(placeholder)


def test_a_profile_can_be_changed_in_every_field() -> None:
    for backend in shipped().values():
        assert Backend.model_validate(backend.model_dump()) == backend
