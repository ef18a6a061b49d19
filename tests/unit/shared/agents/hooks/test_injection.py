"""Hooks for one start: what each agent is given, and when it is given none."""

import json
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest

from shared.agents.codex import hooks as codex
from shared.agents.gemini import hooks as gemini
from shared.agents.hooks.command import GIVEN, spawned
from shared.agents.hooks.formats import FORMATS
from shared.agents.hooks.injection import InjectedHooks, given
from shared.fleet import load_fleet
from shared.fleet.backend import Backend, HookRules
from shared.fleet.launch_needs import fill
from shared.fleet.profiles import shipped


def for_start(name: str, directory: Path, *extra: str, **env: str) -> InjectedHooks:
    backend = shipped()[name]
    return given(backend.hooks, directory, [*backend.argv, *extra], env)


def test_every_agent_with_hooks_can_be_given_them() -> None:
    assert {backend.hooks.kind for backend in shipped().values() if backend.hooks} == set(FORMATS)
    for backend in shipped().values():
        if backend.hooks and backend.hooks.args:
            assert "{hooks_args}" in backend.argv


def test_claude_gets_a_file_of_settings(tmp_path: Path) -> None:
    hooks = for_start("claude", tmp_path)
    assert [fill(word, hooks.values) for word in hooks.args] == ["--settings", str(tmp_path / "claude.json")]
    assert (hooks.env, hooks.withheld) == ({GIVEN: "given"}, "")
    document = json.loads(hooks.text)["hooks"]
    assert {each["hooks"][0]["command"] for groups in document.values() for each in groups} == {spawned(tmp_path)}
    assert {"UserPromptSubmit", "PermissionRequest", "Stop", "StopFailure", "SubagentStop"} <= document.keys()


@pytest.mark.parametrize("extra", [["--settings", "mine.json"], ["--settings=mine.json"]])
def test_claude_with_settings_of_its_own_gets_none(tmp_path: Path, extra: list[str]) -> None:
    hooks = for_start("claude", tmp_path, *extra)
    assert (hooks.args, hooks.env, hooks.file) == ([], {}, None)
    assert "a --settings of its own" in hooks.withheld


def test_codex_gets_configuration_that_says_what_is_trusted(tmp_path: Path) -> None:
    directory = tmp_path / """it's "odd" \x7f é"""
    hooks = for_start("codex", directory)
    flag, value = (fill(word, hooks.values) for word in hooks.args)
    assert (flag, hooks.file) == ("-c", None)
    document = tomllib.loads(value)["hooks"]
    state = document.pop("state")
    assert set(document) == set(codex.EVENTS)
    assert document["Stop"] == [codex.entry(spawned(directory))]
    assert state["/<session-flags>/config.toml:pre_tool_use:0:0"] == {
        "trusted_hash": codex.trusted_hash("PreToolUse", spawned(directory))
    }
    assert len(state) == len(codex.EVENTS)


def test_a_hook_has_the_hash_that_codex_gives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `hooks/list` of Codex 0.166.0 says it."""
    monkeypatch.setattr(codex, "TIMEOUT_S", 5)
    assert codex.trusted_hash("PreToolUse", "echo hi || :") == (
        "sha256:75a185fd30342c04a9df4866a2122d0d1054e68a5c2c3a0d0cf8698905a7cd56"
    )
    assert codex.trusted_hash("Stop", "echo hi || :") == (
        "sha256:f679932b6a3997399cf9b6d32ffac5ab703197ae20018aee228430a42018e136"
    )


@pytest.mark.parametrize(
    "word",
    [
        *("hooks.Stop=[]", "hooks={}", "-chooks.Stop=[]", "--config=hooks.Stop=[]"),
        *('"hooks".Stop=[]', "'hooks'={}", ' "hooks" . Stop = []', "-c='hooks'.Stop=[]", '--config="hooks"={}'),
    ],
)
def test_codex_with_hooks_on_its_command_line_gets_none(tmp_path: Path, word: str) -> None:
    assert "configures `hooks` itself" in for_start("codex", tmp_path, "-c", word).withheld
    for other in ("model='hooks.x'", "hooksy=1", '"hooks.x"=1'):
        assert for_start("codex", tmp_path, "-c", other).withheld == ""


def all_is_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every directory belongs to root, and nobody else may write in it."""
    real = Path.stat

    def stat_of(path: Path, **how: Any) -> os.stat_result:
        found = real(path, **how)
        mode = found.st_mode & ~(stat.S_IWGRP | stat.S_IWOTH)
        return os.stat_result((mode, *found[1 : stat.ST_UID], 0, *found[stat.ST_UID + 1 :]))

    monkeypatch.setattr(Path, "stat", stat_of)


def test_gemini_gets_them_only_where_root_alone_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o770)
    assert "only from directories of root's" in for_start("gemini", tmp_path / "hooks").withheld
    all_is_roots(monkeypatch)
    monkeypatch.setattr(gemini, "SYSTEM", tmp_path / "none")
    assert for_start("gemini", tmp_path).env == {gemini.DEFAULTS: str(tmp_path / "gemini.json"), GIVEN: "given"}
    assert gemini.DEFAULTS in for_start("gemini", tmp_path, **{gemini.DEFAULTS: "mine"}).withheld
    monkeypatch.setattr(gemini, "SYSTEM", tmp_path)
    assert "is there" in for_start("gemini", tmp_path).withheld


def test_without_a_place_on_the_command_line_none_are_given(tmp_path: Path) -> None:
    """Else those in the user's settings would keep silent for nothing."""
    hooks = given(HookRules(kind="claude", args=["--settings", "{hooks_file}"]), tmp_path, ["{binary}"], {})
    assert (hooks.env, hooks.withheld) == ({}, "its `argv` has no {hooks_args}")
    assert given(Backend().hooks, tmp_path, [], {}) == InjectedHooks()


def test_the_file_is_private_and_written_only_when_it_differs(tmp_path: Path) -> None:
    directory = tmp_path / ".muster" / "hooks"
    hooks = for_start("claude", directory)
    hooks.lay_out(directory)
    file = directory / "claude.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == stat.S_IMODE((directory / "spool").stat().st_mode) == 0o700
    was = file.stat().st_ino
    hooks.lay_out(directory)
    assert file.stat().st_ino == was
    file.write_text("something else")
    hooks.lay_out(directory)
    assert file.read_text() == hooks.text


@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
def test_what_was_given_can_be_taken_back(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    all_is_roots(monkeypatch)
    monkeypatch.setattr(gemini, "SYSTEM", tmp_path / "none")
    hooks = for_start(name, tmp_path)
    words = [fill(word, hooks.values) for word in hooks.args]
    argv, env = hooks.taken_back(["-x", *words[:1], *words, "-y"], {"A": "b", **hooks.env})
    assert (argv, env) == (["-x", *words[:1], "-y"], {"A": "b"})


def test_what_is_not_there_as_it_was_given_is_not_taken_back(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not on its command line"):
        for_start("claude", tmp_path).taken_back(["-x"], {})


@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
def test_a_path_that_no_text_can_hold_gets_none(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    all_is_roots(monkeypatch)
    monkeypatch.setattr(gemini, "SYSTEM", tmp_path / "none")
    (tmp_path / "\udcff").mkdir()
    hooks = for_start(name, tmp_path / "\udcff")
    assert (hooks.args, hooks.env, hooks.withheld) == ([], {}, "the path of the fleet is not UTF-8")


def test_a_start_without_hooks_leaves_no_trace(tmp_path: Path) -> None:
    InjectedHooks(withheld="why").lay_out(tmp_path / "hooks")
    assert list(tmp_path.iterdir()) == []


def test_a_fleet_file_can_do_without(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text("backends: {claude: {hooks: null}, mine: {like: codex}}\n")
    backends = load_fleet(path).backends
    assert backends["claude"].hooks is None
    assert backends["mine"].hooks == shipped()["codex"].hooks
