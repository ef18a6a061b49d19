"""What of the server's environment reaches a program, and where its values are never seen."""

import json
import os
import secrets
import sys

import psutil
import pytest

from shared.system.tmux import Pane
from tests.integration.tmux.server import SLEEPER, Server, eventually

DUMP = """
import json, os, sys, time
with open(sys.argv[1] + ".part", "w") as part:
    json.dump(dict(os.environ), part)
os.rename(sys.argv[1] + ".part", sys.argv[1])
time.sleep(1000)
"""


@pytest.fixture
def inherited(server: Server) -> dict[str, str]:
    """What is in the environment of a running server."""
    server.run("new-session", "-d", "-s", "theirs", *SLEEPER)
    variables = {"TOKEN": "of somebody", "OTHER_TOKEN": "of another", "EMPTY": ""}
    for name, value in variables.items():
        server.run("set-environment", "-g", name, value)
    return variables


def test_the_servers_variables_reach_a_program_unless_unset(server: Server, inherited: dict[str, str]) -> None:
    assert inherited.items() <= environment(server, "one").items()
    found = environment(server, "two", unset=["TOKEN", "NOT_THERE", "EMPTY"])
    assert {name for name in inherited if name in found} == {"OTHER_TOKEN"}
    assert environment(server, "three", unset=sorted(inherited)).keys().isdisjoint(inherited)


def test_what_is_given_wins_over_what_is_unset(server: Server, inherited: dict[str, str]) -> None:
    found = environment(server, "one", env={"TOKEN": "ours", "EMPTY": ""}, unset=["TOKEN", "EMPTY", "OTHER_TOKEN"])
    assert {name: found.get(name) for name in inherited} == {"TOKEN": "ours", "OTHER_TOKEN": None, "EMPTY": ""}


def test_our_own_variables_are_unset_where_our_server_takes_them_over(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "ours, not the agent's")
    monkeypatch.setenv("KNOWN", "to all")
    found = environment(server, "one", unset=["TOKEN"])
    assert (found.get("TOKEN"), found["KNOWN"]) == (None, "to all")


@pytest.mark.parametrize("running", [False, True], ids=["first", "second"])
def test_values_are_in_no_command_line(server: Server, monkeypatch: pytest.MonkeyPatch, *, running: bool) -> None:
    given, theirs = secrets.token_hex(16), secrets.token_hex(16)
    monkeypatch.setenv("THEIRS", theirs)
    if running:
        server.run("new-session", "-d", "-s", "theirs", *SLEEPER)
    found = environment(server, "one", env={"GIVEN": given}, unset=["THEIRS", "GIVEN"])
    assert (found["GIVEN"], "THEIRS" in found) == (given, False)
    start_command = server.told("display-message", "-p", "-t", "=one:", "#{pane_start_command}")
    lines = [start_command, *(" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))]
    assert any(str(server.home) in line for line in lines[1:]), "the program's own must be among them"
    assert not [line for line in lines if given in line or theirs in line]


def test_stamps_win_over_what_is_unset(server: Server) -> None:
    assert environment(server, "one", unset=["MUSTER_STAMP_SPAWN"])["MUSTER_STAMP_SPAWN"] == "one-1"


def test_variables_are_names(server: Server, inherited: dict[str, str]) -> None:
    server.run("set-environment", "-g", "EQUATION", "a=b=c")
    server.run("set-environment", "-g", "FRAME", "%end 1 2 3")
    server.run("set-environment", "-g", "-r", "REMOVED")
    server.run("set-environment", "-g", "-h", "HIDDEN", "from programs")
    names = server.tmux.variables()
    assert {*inherited, "PATH", "EQUATION", "FRAME"} <= names
    assert names.isdisjoint({"REMOVED", "-REMOVED", "HIDDEN", "of somebody", "a"})
    assert names <= environment(server, "one").keys() | {"OLDPWD", "PWD", "SHLVL", "_"}


def test_without_a_server_the_variables_are_those_it_would_be_started_with(server: Server) -> None:
    assert server.tmux.variables() == set(os.environ) - {"TMUX", "TMUX_PANE"}
    assert not server.path.exists()


def test_a_value_of_several_lines_is_no_further_name(server: Server, inherited: dict[str, str]) -> None:
    before = server.tmux.variables()
    server.run("set-environment", "-g", "LINES_OF_TEXT", "one\nFORGED=two\nwith a space = three\n-REMOVED\n")
    assert server.tmux.variables() - before == {"LINES_OF_TEXT"}


def test_every_variable_that_is_named_can_be_unset(server: Server, inherited: dict[str, str]) -> None:
    server.run("set-environment", "-g", "BASH_FUNC_greet%%", "() {  echo hello\n}")
    names = server.tmux.variables()
    assert "BASH_FUNC_greet%%" not in environment(server, "one", unset=sorted(names - {"PATH"}))


def environment(server: Server, session: str, **options: object) -> dict[str, str]:
    """Start a program and give the environment it found."""
    told = server.home / f"{session}.json"
    pane: Pane = server.start(session, [sys.executable, "-c", DUMP, str(told)], **options)
    eventually(lambda: told.exists() or server.pane(pane.session).dead)
    found: dict[str, str] = json.loads(told.read_text())
    return found
