"""How a text is worded for an input box, and when it goes by a file."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.spawner.typing.message_text import (
    DIRECTORY,
    CannotWrite,
    TakenForCommand,
    completed,
    must_be_no_command,
    needs_file,
    write_message,
)
from shared.fleet.backend import Backend, TypingRules
from shared.fleet.profiles import shipped

PLAIN = TypingRules()
STRICT = TypingRules(command=r"\A[/!]", completes=r"@\S*\Z", composes=True)


@pytest.mark.parametrize("text", ["/clear", "!rm -rf .", "/model\nx"])
def test_an_order_to_the_program_is_refused(text: str) -> None:
    with pytest.raises(TakenForCommand, match="as an order to itself"):
        must_be_no_command(STRICT, text)
    must_be_no_command(PLAIN, text)


def test_a_word_that_would_be_completed_gets_a_space() -> None:
    assert completed(STRICT, "see @REA") == "see @REA "
    assert completed(STRICT, "see @README first") == "see @README first"
    assert completed(PLAIN, "see @REA") == "see @REA"


@pytest.mark.parametrize("text", ["a\x1b[31m", "bell\x07", "cr\r\n", "\x7f", "\x9b", "form\x0c"])
def test_what_a_paste_would_lose_goes_by_file(text: str) -> None:
    assert needs_file(Backend(typing=PLAIN), text)


@pytest.mark.parametrize("text", ["plain", "two\nlines", "a\ttab", "漢字 🦀", "quotes ' \" `", ""])
def test_the_rest_is_pasted(text: str) -> None:
    assert not needs_file(Backend(typing=PLAIN), text)


def test_decomposed_characters_go_by_file_where_they_would_be_composed() -> None:
    assert needs_file(Backend(typing=STRICT), "e\u0301")
    assert not needs_file(Backend(typing=STRICT), "\u00e9")
    assert not needs_file(Backend(typing=PLAIN), "e\u0301")


@pytest.mark.parametrize("name", sorted(shipped()))
@given(text=st.text(min_size=1))
def test_no_shipped_backend_pastes_the_end_of_a_paste(name: str, text: str) -> None:
    assert needs_file(shipped()[name], f"{text}\x1b[201~{text}")


@given(text=st.text())
def test_a_message_file_has_the_text_byte_for_byte(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    workspace = tmp_path_factory.mktemp("workspace")
    path = workspace / write_message(workspace, "m1", text)
    assert path.read_bytes() == text.encode()
    assert path.stat().st_mode & 0o777 == 0o600
    assert (workspace / DIRECTORY / ".gitignore").read_text() == "*\n"


def test_a_workspace_that_takes_no_file_is_told(tmp_path: Path) -> None:
    (tmp_path / DIRECTORY).write_text("in the way")
    with pytest.raises(CannotWrite, match="can't be laid into the workspace"):
        write_message(tmp_path, "m1", "text")


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """A repository may bring one along: what lies where it leads must not be touched."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".gitignore").write_text("mine\n")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / DIRECTORY).symlink_to(elsewhere)
    with pytest.raises(CannotWrite, match="is a link"):
        write_message(workspace, "m1", "text")
    assert [(path.name, path.read_text()) for path in elsewhere.iterdir()] == [(".gitignore", "mine\n")]
    (workspace / DIRECTORY).unlink()
    (workspace / DIRECTORY).mkdir()
    (workspace / DIRECTORY / ".gitignore").symlink_to(elsewhere / ".gitignore")
    write_message(workspace, "m1", "text")
    assert (elsewhere / ".gitignore").read_text() == "mine\n"


def test_a_text_like_the_hint_in_an_empty_box_goes_by_file() -> None:
    assert needs_file(shipped()["claude"], 'Try "fix the tests"')
