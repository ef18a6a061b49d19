"""`muster hooks`: a person's settings are changed only as asked, and are as they were when the hooks are gone."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from services.cli.__main__ import main
from shared.hooks.command import installed
from shared.hooks.formats import FORMATS

SETTINGS = {"claude": ".claude/settings.json", "codex": ".codex/hooks.json", "gemini": ".gemini/settings.json"}
ODD = """{
   // who am I?
   "env" : {"KEY": "secret"},
   "hooks": {
      "Stop": [ {"hooks": [{"type": "command", "command": "theirs"}]} ], "Unknown": []
   },   "unknown": [1,2,]
}
"""


class Person:
    """Somebody with a fleet and a home."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = directory / "home"
        self.home.mkdir()
        self.fleet = directory / "fleet's dir" / "fleet.yaml"
        self.fleet.parent.mkdir()
        self.fleet.write_text("agents: {a: {backend: claude}, b: {backend: codex}, c: {}}\n")
        self._capsys = capsys

    @property
    def hooks(self) -> Path:
        return self.fleet.parent / ".muster" / "hooks"

    def file(self, backend: str, text: str | None = None) -> Path:
        path = self.home / SETTINGS[backend]
        if text is not None:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(text.encode())
        return path

    def does(self, *words: str, code: int = 0) -> str:
        assert main(["--fleet", str(self.fleet), "hooks", *words, "--home", str(self.home)]) == code
        said = self._capsys.readouterr()
        return said.err if code else said.out

    def told(self, *words: str) -> Any:
        return json.loads(self.does(*words, "--json"))

    def commands(self, backend: str) -> dict[str, list[str]]:
        document = json.loads(self.file(backend).read_text())
        return {
            event: [each["command"] for group in groups for each in group["hooks"]]
            for event, groups in document["hooks"].items()
        }


@pytest.fixture
def person(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Person:
    return Person(tmp_path, capsys)


@pytest.mark.parametrize("backend", FORMATS)
def test_install_and_remove_leave_every_byte(person: Person, backend: str) -> None:
    for text in (ODD, ODD.replace("\n", "\r\n"), "{}", '{"a":1}', "\n"):
        path = person.file(backend, text)
        assert "were put into" in person.does("install", "--backend", backend)
        once = path.read_bytes()
        assert once != text.encode()
        assert "already" in person.does("install", "--backend", backend)
        assert path.read_bytes() == once
        assert "were taken out of" in person.does("remove", "--backend", backend)
        assert path.exists() is bool(text.strip())
        assert not text.strip() or path.read_bytes() == text.encode()
        assert "has no hooks of this fleet" in person.does("remove", "--backend", backend)


@pytest.mark.parametrize("backend", FORMATS)
def test_a_file_that_was_made_for_them_goes_with_them(person: Person, backend: str) -> None:
    person.does("install", "--backend", backend)
    path = person.file(backend)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert person.commands(backend) == {event: [installed(person.hooks)] for event in FORMATS[backend].events}
    person.does("remove")
    assert not path.exists()


def test_without_a_name_those_in_use_are_meant(person: Person) -> None:
    assert "none of the agents that have hooks is in use here" in person.does("install", code=1)
    person.file("gemini", "{}")
    person.file("claude", "{}")
    done = person.told("install")
    assert [(each["backend"], each["changed"]) for each in done] == [("claude", True), ("gemini", True)]
    assert not person.file("codex").exists()
    assert [each["changed"] for each in person.told("install")] == [False, False]
    assert [each["changed"] for each in person.told("remove")] == [True, False, True]


def test_a_dry_run_shows_what_would_change_and_no_secrets(person: Person) -> None:
    path = person.file("claude", ODD)
    said = person.does("install", "--dry-run")
    assert "would be put into" in said
    assert '+   "unknown"' not in said
    assert "PermissionRequest" in said
    assert "secret" not in said
    assert path.read_text() == ODD
    assert not person.hooks.exists()
    assert person.told("install", "--dry-run")[0]["changed"] is False


def test_a_broken_file_is_told_with_its_line_and_left(person: Person) -> None:
    first, path = person.file("claude", "{}"), person.file("gemini", '{\n  "a": 1\n  "b": 2\n}')
    said = person.does("install", code=1)
    assert f"{path}, line 3: a comma or }} was expected; nothing was changed" in said
    assert (first.read_text(), path.read_text()) == ("{}", '{\n  "a": 1\n  "b": 2\n}')
    path.write_bytes(b'{"a": "\xff"}')
    assert "is not UTF-8" in person.does("install", "--backend", "gemini", code=1)


def test_links_are_followed_and_the_mode_is_kept(person: Person) -> None:
    real = person.home / "dotfiles.json"
    real.write_text("{}")
    real.chmod(0o640)
    link = person.file("claude")
    link.parent.mkdir()
    link.symlink_to(real)
    person.does("install")
    assert link.is_symlink()
    assert "SessionStart" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    person.does("remove")
    assert (link.is_symlink(), real.read_text()) == (True, "{}")


def test_after_a_move_the_old_hooks_are_replaced(person: Person) -> None:
    path = person.file("claude", ODD)
    person.does("install")
    moved = person.fleet.parent.rename(person.fleet.parent.with_name("moved"))
    person.fleet = moved / "fleet.yaml"
    assert person.told("show")["settings"][0]["current"] is False
    person.does("install")
    assert "fleet's dir" not in path.read_text()
    assert str(moved) in path.read_text()
    person.does("remove")
    assert path.read_text() == ODD


def test_those_of_another_fleet_stay(person: Person) -> None:
    path = person.file("claude", ODD)
    person.does("install")
    theirs, first = person.hooks, person.fleet
    person.fleet = person.home.parent / "second" / "fleet.yaml"
    person.fleet.parent.mkdir()
    person.fleet.write_text("agents: {}\n")
    person.does("install")
    (shown, *_) = person.told("show")["settings"]
    assert (shown["installed"], shown["current"], shown["others"]) == (True, True, [str(theirs)])
    person.does("remove")
    person.fleet = first
    assert person.told("install")[0]["changed"] is False
    person.does("remove")
    assert path.read_text() == ODD


def test_codex_wants_a_person_to_agree(person: Person) -> None:
    assert "whether the new hooks are to be trusted" in person.does("install", "--backend", "codex")


def test_show_says_who_is_started_with_hooks_and_why_not(person: Person) -> None:
    person.fleet.write_text(
        "backends: {mine: {like: claude, extra_args: [--settings, x]}, off: {like: claude, hooks: null}}\n"
        "agents: {a: {backend: claude}, b: {backend: mine}, c: {backend: off}, d: {}}\n"
    )
    said = person.does("show")
    assert "a: is started with hooks" in said
    assert "b: is started without hooks: its command line has a --settings of its own" in said
    assert "Claude Code:" in said
    assert [each["agent"] for each in person.told("show")["agents"]] == ["a", "b"]
    assert person.told("show", "--backend", "gemini")["agents"] == []
