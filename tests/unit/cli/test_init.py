"""`muster init`: a file that runs as it is, whose comments are true when they are taken at their word."""

import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.cli.__main__ import main
from services.cli.init import TEMPLATE
from shared.fleet import load_fleet
from shared.fleet.backend import (
    Backend,
    Dialog,
    ForkRules,
    HookRules,
    ModelChoice,
    ResumeRules,
    Sign,
    TitleRule,
    TypingRules,
)
from shared.fleet.declaration import (
    FleetRestarts,
    LogSettings,
    PollSettings,
    RestartPolicy,
    StartSettings,
    TmuxSettings,
)
from shared.fleet.profiles import shipped
from shared.fleet.schema import render, schema
from shared.fleet.screen_rules import LimitWarning, ScreenRules
from shared.fleet.section import Section
from tests.unit.shared.fleet.test_fleet import write

INTERNALS = (
    ForkRules,
    Backend,
    Dialog,
    HookRules,
    LimitWarning,
    ModelChoice,
    ResumeRules,
    ScreenRules,
    Sign,
    TitleRule,
    TypingRules,
)
"""How a program is run and read is for those who bring a new one: docs/fleet.md."""
AS_IT_IS = (TmuxSettings, PollSettings, LogSettings, StartSettings, FleetRestarts)
"""Sections whose values are shown as they hold anyway."""


def uncommented(text: str) -> str:
    """Every setting in use. Before a setting that is not used is a #; prose has a space and a letter behind its #."""
    return re.sub(r"^( *)#(?! \S)", r"\1", text, flags=re.MULTILINE)


def sections(node: Any) -> Iterator[Section]:
    """Every section that was written, with all below it."""
    if isinstance(node, Section):
        yield node
        node = [getattr(node, key) for key in node.model_fields_set]
    elif isinstance(node, dict):
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from sections(each)


def all_kinds(kind: type[Section] = Section) -> Iterator[type[Section]]:
    for each in kind.__subclasses__():
        yield each
        yield from all_kinds(each)


@pytest.mark.parametrize(
    ("line", "used"),
    [
        ("  #key: 1", "  key: 1"),
        ("#  key: 1", "  key: 1"),
        ("# some words", "# some words"),
        ("a: b  # c", "a: b  # c"),
    ],
)
def test_a_commented_setting_is_told_from_prose(line: str, used: str) -> None:
    assert uncommented(line) == used


def test_the_template_is_a_valid_fleet_file(tmp_path: Path) -> None:
    fleet = load_fleet(write(tmp_path, TEMPLATE))
    assert {name: (agent.backend, agent.enabled) for name, agent in fleet.agents.items()} == {
        "builder": ("demo", True),
        "reviewer": ("demo", True),
    }


def test_all_commented_settings_together_are_valid(tmp_path: Path) -> None:
    fleet = load_fleet(write(tmp_path, uncommented(TEMPLATE)))
    assert set(fleet.agents) == {"builder", "reviewer", "tidy", "web"}
    assert fleet.agents["builder"].restart == RestartPolicy()


def test_each_commented_setting_alone_is_valid(tmp_path: Path) -> None:
    """Top-level blocks and the lines of an agent; what belongs to a block goes with it."""
    lines = TEMPLATE.splitlines()
    settings = [number for number, line in enumerate(lines) if re.match(r" *#\w", line)]
    assert len(settings) > 25
    for number in settings:
        end = number + 1
        indent = lines[number].index("#")
        while end < len(lines) and re.match(rf" {{{indent}}}#  ", lines[end]):
            end += 1
        text = "\n".join([*lines[:number], *(uncommented(line) for line in lines[number:end]), *lines[end:]])
        if "on_complete: tidy" not in "".join(lines[number:end]):
            load_fleet(write(tmp_path, text))


def test_every_key_of_every_section_is_mentioned(tmp_path: Path) -> None:
    seen: dict[type[Section], set[str]] = {}
    for section in sections(load_fleet(write(tmp_path, uncommented(TEMPLATE))).declared):
        seen.setdefault(type(section), set()).update(section.model_fields_set)
    for kind in all_kinds():
        if kind not in INTERNALS and kind.__module__.startswith("shared.fleet"):
            unseen = set(kind.model_fields) - seen.get(kind, set())
            assert not unseen, f"TEMPLATE in services/cli/init.py does not show {unseen} of {kind.__name__}: add a line"


def test_numbers_in_the_template_are_the_defaults(tmp_path: Path) -> None:
    written = [*sections(load_fleet(write(tmp_path, uncommented(TEMPLATE))).declared)]
    for kind in AS_IT_IS:
        shown = [each for each in written if isinstance(each, kind)]
        assert shown == [kind()], f"TEMPLATE in services/cli/init.py must show {kind.__name__} once, with its defaults"


def test_the_template_names_every_backend_that_ships() -> None:
    (others,) = re.findall(r"others: (.+)", TEMPLATE)
    assert others.split(", ") == sorted(shipped().keys() - {"demo"}), "TEMPLATE in services/cli/init.py is wrong"


def test_the_schema_is_written_where_the_first_line_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    first = (tmp_path / "fleet.yaml").read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=.muster/fleet.schema.json"
    file = tmp_path / first.partition("=")[2]
    assert file.read_text() == render(schema())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert (file.parent / ".gitignore").read_text() == "*\n"


def test_the_fleet_option_says_where_the_file_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "deep" / "team.yaml"
    assert main(["--fleet", str(path), "init"]) == 0
    assert load_fleet(path).agents
    assert (path.parent / ".muster" / "fleet.schema.json").is_file()
    assert f"next: muster --fleet {path} up" in capsys.readouterr().err


def test_an_existing_file_is_replaced_only_with_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "host: mine\n")
    assert main(["--fleet", str(path), "init"]) == 1
    assert path.read_text() == "host: mine\n"
    assert "is there already" in capsys.readouterr().err
    assert main(["--fleet", str(path), "init", "--force"]) == 0
    assert path.read_text() == TEMPLATE
