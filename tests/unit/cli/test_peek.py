"""`muster peek` for people: the state, what is said of it, the result, and nothing that commands the terminal."""

import io
from pathlib import Path
from typing import Any

import pytest

from services.cli.__main__ import main
from services.cli.peek import as_text
from services.cli.words import Paint

PLAIN = Paint(io.StringIO())


def found(**changes: Any) -> dict[str, Any]:
    known = {"agent": "builder", "state": "working", "summary": "It runs the tests.", "output": "", "text": "{}"}
    return {**known, "seconds": 0.66, "model": "haiku", **changes}


def test_the_state_comes_first() -> None:
    assert as_text(found(), PLAIN) == "builder is working (by haiku, 0.7 s)\nIt runs the tests."
    assert as_text(found(model=None, summary=""), PLAIN) == "builder is working"


def test_a_result_is_shown_as_it_is() -> None:
    text = as_text(found(state="finished", output="one\n  two\n"), PLAIN)
    assert text.splitlines()[1:] == ["It runs the tests.", "", "one", "  two"]


def test_an_answer_without_a_state_is_shown_as_text() -> None:
    assert as_text(found(state=None, text="It is\nx.py"), PLAIN) == "builder says (by haiku, 0.7 s):\nIt is\nx.py"


def test_control_characters_in_an_answer_do_not_reach_the_terminal() -> None:
    odd = "a\x1b[2Jb\x07"
    for told in (found(summary=odd), found(output=odd), found(state=None, text=odd), found(model=odd)):
        assert "\x1b" not in as_text(told, PLAIN)
        assert "\x07" not in as_text(told, PLAIN)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["peek", "Not An Id"], "'Not An Id' is no agent's name"),
        (["peek", "builder"], "the services are not running, so nobody can be asked; start them with: muster up"),
    ],
)
def test_what_can_t_be_asked_is_refused_with_a_sentence(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text("agents: {builder: {}}\n")
    assert main(["--fleet", str(path), *words]) == 1
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--timeout", "0"], "timeout_s: "),
        (["--timeout", "4000"], "timeout_s: "),
        (["--ask", ""], "question: "),
    ],
)
def test_invalid_arguments_are_refused_with_a_sentence(
    words: list[str],
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text("agents: {builder: {}}\n")
    monkeypatch.setattr("services.cli.peek.is_up", lambda _fleet: True)
    assert main(["--fleet", str(path), "peek", "builder", *words]) == 1
    assert f"peek can't be sent: {sentence}" in capsys.readouterr().err
