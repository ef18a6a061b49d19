"""The command in an agent's settings: for any directory, silent, and told apart from everybody else's."""

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.agents.hooks.command import GIVEN, PROGRAM, installed, installed_for, interpreter, spawned

NASTY = Path("""/a b/c'd/"e"/$HOME/`f`/\\g/ü/*/${x}/.muster/hooks""")


def test_the_program_is_run_bare_with_its_directory() -> None:
    words = shlex.split(spawned(NASTY))
    assert words[:5] == [interpreter(), "-I", "-S", str(PROGRAM), str(NASTY)]
    assert PROGRAM.is_file()


def test_no_variable_can_be_put_in_place_of_a_part_of_the_path() -> None:
    assert "$HOME" not in spawned(NASTY)
    assert "${x}" not in spawned(NASTY)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])).filter(lambda text: "/" not in text))
def test_what_was_installed_is_known_again(name: str) -> None:
    directory = Path("/x", name, ".muster/hooks")
    assert installed_for(installed(directory)) == directory
    assert installed_for(spawned(directory)) is None


@pytest.mark.parametrize("command", ["", "true", "echo 'open", f"echo ${GIVEN}", f'[ -z "${GIVEN}" ] && "'])
def test_commands_of_others_are_left_alone(command: str) -> None:
    assert installed_for(command) is None
