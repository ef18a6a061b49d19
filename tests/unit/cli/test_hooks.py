"""`muster hooks`: a person's settings are changed only as asked, and are as they were when the hooks are gone."""

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from services.cli.__main__ import main
from shared.agents.hooks.command import installed
from shared.agents.hooks.formats import FORMATS
from shared.agents.hooks.installation import CannotInstall, carry_out, installed_by, planned_install

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
def test_removing_after_installing_restores_every_byte(person: Person, backend: str) -> None:
    for text in (ODD, ODD.replace("\n", "\r\n"), "{}", '{"a":1}', "\n", "", " \r\n"):
        path = person.file(backend, text)
        assert "were put into" in person.does("install", "--backend", backend)
        once = path.read_bytes()
        assert once != text.encode()
        assert "already" in person.does("install", "--backend", backend)
        assert path.read_bytes() == once
        assert "were taken out of" in person.does("remove", "--backend", backend)
        assert path.read_bytes() == text.encode()
        assert "has no hooks of this fleet" in person.does("remove", "--backend", backend)


@pytest.mark.parametrize("backend", FORMATS)
def test_a_settings_file_made_by_install_is_removed_again(person: Person, backend: str) -> None:
    person.does("install", "--backend", backend)
    path = person.file(backend)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert person.commands(backend) == {event: [installed(person.hooks)] for event in FORMATS[backend].events}
    person.does("remove")
    assert not path.exists()


def test_without_a_backend_hooks_go_into_the_settings_that_exist(person: Person) -> None:
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


def test_a_broken_settings_file_is_reported_with_its_line_and_left_alone(person: Person) -> None:
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


def test_a_file_keeps_its_owner_and_group(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    path = person.file("claude", "{}")
    was = path.stat()
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "fchown", lambda _file, uid, gid: given.append((uid, gid)))
    person.does("install")
    assert given == [(was.st_uid, was.st_gid)]


def test_a_file_whose_owner_cannot_be_kept_is_left_alone(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    path = person.file("claude", "{}")

    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refused)
    assert f"{path} would not keep its owner and group; nothing was changed" in person.does("install", code=1)
    assert [file.read_text() for file in path.parent.iterdir()] == ["{}"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_root_gives_a_new_file_to_the_owner_of_its_directory(person: Person) -> None:
    path = person.file("claude", "{}")
    os.chown(path, 4711, 4712)
    os.chown(person.home, 4711, 4713)
    person.does("install", "--backend", "claude")
    person.does("install", "--backend", "gemini")
    made = person.file("gemini")
    assert [(each.stat().st_uid, each.stat().st_gid) for each in (path, made, made.parent)] == [
        (4711, 4712),
        (4711, 4713),
        (4711, 4713),
    ]


def test_a_file_that_changed_meanwhile_is_left_alone(person: Person) -> None:
    path = person.file("claude", "{}")
    change = planned_install("claude", person.hooks, {"HOME": str(person.home)})
    path.write_text('{"theirs": 1}')
    with pytest.raises(CannotInstall, match="was changed at this very moment"):
        carry_out(change)
    assert path.read_text() == '{"theirs": 1}'


@pytest.mark.parametrize("what", ["install", "remove"])
def test_changes_that_succeeded_are_reported_when_another_failed(
    person: Person, what: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [person.file(backend, "{}") for backend in SETTINGS]
    if what == "remove":
        person.does("install")
    before = paths[1].read_text()
    replace = Path.replace

    def fails_for_codex(temporary: Path, path: Path) -> Path:
        if path == paths[1]:
            raise OSError(errno.EROFS, "Read-only file system")
        return replace(temporary, path)

    monkeypatch.setattr(Path, "replace", fails_for_codex)
    words = ["--fleet", str(person.fleet), "hooks", what, "--home", str(person.home)]
    fault = f"{paths[1]} can't be written: Read-only file system"
    assert main(words) == 1
    said = capsys.readouterr()
    assert [line.partition(":")[0] for line in said.out.splitlines()][:2] == ["Claude Code", "Gemini CLI"]
    assert said.err == f"muster: Codex: {fault}\n"
    assert paths[1].read_text() == before
    assert main([*words, "--json"]) == 1
    said = capsys.readouterr()
    assert [each["error"] for each in json.loads(said.out)] == [None, fault, None]
    assert fault in said.err


def test_removing_also_removes_unread_calls(person: Person) -> None:
    person.file("claude", "{}")
    person.does("install")
    spool = person.hooks / "spool"
    (spool / "1-1").write_bytes(b"1\t5\t\t%1\t\t9\n{}")
    (spool / "2-2").write_bytes(b"1\t5\ts1\t%1\t\t9\n{}")
    person.does("remove", "--dry-run")
    person.does("remove", "--backend", "codex")
    assert len(list(spool.iterdir())) == 2
    assert "1 call of agents that you started was removed unread" in person.does("remove")
    assert [file.name for file in spool.iterdir()] == ["2-2"]
    assert "unread" not in person.does("remove")


def test_hooks_of_a_fleet_that_moved_are_replaced_on_request(person: Person) -> None:
    path = person.file("claude", ODD)
    person.does("install")
    moved = person.fleet.parent.rename(person.fleet.parent.with_name("moved"))
    person.fleet = moved / "fleet.yaml"
    (shown, *_) = person.told("show")["settings"]
    assert (shown["installed"], shown["current"], len(shown["others"])) == (False, False, 1)
    assert "which is not there (--gone takes them out)" in person.does("show")
    assert "which is not there (--gone takes them out)" in person.does("install")
    env = {"HOME": str(person.home)}
    assert len(installed_by("claude", env)) == 2
    person.does("install", "--gone")
    assert list(installed_by("claude", env)) == [person.hooks]
    assert str(moved) in path.read_text()
    person.does("remove")
    assert path.read_text() == ODD


@pytest.mark.parametrize("what", ["install", "remove"])
def test_hooks_of_a_fleet_on_an_absent_disk_stay(person: Person, what: str) -> None:
    path = person.file("claude", "{}")
    person.does("install")
    away, first = person.hooks, person.fleet
    first.parent.rename(first.parent.with_name("elsewhere"))
    person.fleet = person.home.parent / "second" / "fleet.yaml"
    person.fleet.parent.mkdir()
    person.fleet.write_text("agents: {}\n")
    person.does("install")
    person.does(what)
    assert installed_by("claude", {"HOME": str(person.home)})[away] == len(FORMATS["claude"].events)
    person.does("remove", "--gone")
    assert path.read_text() == "{}"


@pytest.mark.parametrize("error", [PermissionError, OSError])
def test_a_fleet_that_cannot_be_looked_at_is_not_gone(
    person: Person, error: type[OSError], monkeypatch: pytest.MonkeyPatch
) -> None:
    person.file("claude", "{}")
    person.does("install")
    theirs, look = person.hooks, Path.stat
    person.fleet = person.home.parent / "second" / "fleet.yaml"
    person.fleet.parent.mkdir()
    person.fleet.write_text("agents: {}\n")

    def stat_of(path: Path, **options: Any) -> os.stat_result:
        if path.is_relative_to(theirs.parent):
            raise error(errno.EACCES, "no")
        return look(path, **options)

    monkeypatch.setattr(Path, "stat", stat_of)
    person.does("install", "--gone")
    person.does("remove", "--gone")
    assert theirs in installed_by("claude", {"HOME": str(person.home)})


def test_an_invalid_path_in_the_settings_does_no_harm(person: Person) -> None:
    text = json.dumps({"hooks": {"Stop": [{"hooks": [{"command": installed(Path("/a\0b/.muster/hooks"))}]}]}})
    path = person.file("claude", text)
    person.does("install", "--gone")
    person.does("show")
    person.does("remove", "--gone")
    assert path.read_text() == text


def test_a_fleet_with_a_path_that_is_no_text_is_refused(person: Person) -> None:
    person.file("claude", "{}")
    with pytest.raises(CannotInstall, match="the path of the fleet is not UTF-8"):
        planned_install("claude", Path("/\udcff/.muster/hooks"), {"HOME": str(person.home)})


def test_hooks_of_another_fleet_stay(person: Person) -> None:
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


def test_installing_for_codex_says_that_a_person_must_agree(person: Person) -> None:
    assert "whether the new hooks are to be trusted" in person.does("install", "--backend", "codex")


def test_show_says_which_agents_are_started_with_hooks_and_why_not(person: Person) -> None:
    person.fleet.write_text(
        "backends: {mine: {like: claude, extra_args: [--settings, x]}, off: {like: claude, hooks: null}}\n"
        "agents: {a: {backend: claude}, b: {backend: mine}, c: {backend: off}, d: {}}\n"
    )
    said = person.does("show")
    assert "a: is started with hooks" in said
    assert "b: is started without hooks: its command line has a --settings of its own" in said
    assert "c: is started without hooks: its backend 'off' has none" in said
    assert "d: is started without hooks: its backend 'demo' has none" in said
    assert "Claude Code:" in said
    assert [(each["agent"], each["given"]) for each in person.told("show")["agents"]] == [
        ("a", True),
        ("b", False),
        ("c", False),
        ("d", False),
    ]
    assert [each["agent"] for each in person.told("show", "--backend", "claude")["agents"]] == ["a", "b"]
    assert person.told("show", "--backend", "gemini")["agents"] == []
