"""`muster phase` for people: how far a loop is, what does not go on, and nothing that commands the terminal."""

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from services.cli.__main__ import main
from services.cli.phase import as_text
from services.cli.words import Paint

PLAIN = Paint(io.StringIO())
NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def before(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).isoformat()


def loop(**changes: Any) -> dict[str, Any]:
    known = {
        "enabled": True,
        "remote": "x.git",
        "branch": "main",
        "tip": "0123456789abcdef",
        "gone": False,
        "asked": before(3),
        "answered": before(3),
        "next": before(-17),
        "failure": "",
        "roles": {"build": "builder"},
        "phases": [
            {"number": 1, "name": "one", "state": "done"},
            {"number": 2, "name": "two", "state": "current"},
            {"number": 3, "name": "three", "state": "to come"},
        ],
        "number": 2,
        "since": before(90),
        "complete": False,
        "on_complete": None,
        "errands": [],
        "messages": [],
    }
    return {**known, **changes}


def shown(**changes: Any) -> list[str]:
    return as_text({"main": loop(**changes)}, PLAIN, NOW).splitlines()


def test_a_loop_is_shown_with_its_phases_roles_and_remote() -> None:
    assert shown() == [
        "main  is in phase 2 of 3, two, for 90s",
        "  ✓ 1 one",
        "  ▶ 2 two",
        "    3 three",
        "  builder plays build",
        "  x.git main: at 0123456789, asked 3s ago",
    ]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"complete": True}, "main  is complete since 90s"),
        ({"number": 0, "since": None}, "main  has not begun: its remote was not seen yet"),
        ({"phases": []}, "main  has no phases"),
        ({"enabled": False, "asked": None}, "main  is not enabled"),
        ({"failure": "no such host"}, "  x.git main: does not answer: no such host, asked again in 17s"),
        ({"gone": True}, "  x.git main: no such branch, asked 3s ago"),
        ({"asked": None}, "  x.git main: not asked yet"),
        ({"tip": None}, "  x.git main: not seen yet, asked 3s ago"),
        (
            {"messages": [{"agent": "builder", "waiting": 2, "reason": "it does not run"}]},
            "  2 messages wait for builder: it does not run",
        ),
        (
            {"errands": [{"agent": "builder", "what": "start", "done": False, "failure": "no such program"}]},
            "  the start of builder: no such program",
        ),
    ],
)
def test_every_other_state_of_a_loop_has_its_words(changes: dict[str, Any], line: str) -> None:
    assert line in shown(**changes)


def test_finished_actions_are_not_shown() -> None:
    assert shown(errands=[{"agent": "builder", "what": "start", "done": True, "failure": ""}]) == shown()


def test_control_characters_do_not_reach_the_terminal_and_lines_fit() -> None:
    odd = "a\x1b[2Jb\x07"
    phases = [{"number": 1, "name": odd, "state": "current"}]
    for changes in ({"failure": odd}, {"remote": odd}, {"phases": phases, "number": 1}, {"roles": {odd: odd}}):
        text = as_text({odd: loop(**changes)}, PLAIN, NOW)
        assert "\x1b" not in text
        assert "\x07" not in text
    assert max(map(len, as_text({"main": loop()}, PLAIN, NOW, room=20).splitlines())) <= 20


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["show", "Not An Id"], "'Not An Id' is no loop's name"),
        (["next"], "the services are not running, so no loop goes on; start them with: muster up"),
    ],
)
def test_what_can_t_be_asked_is_refused_with_a_sentence(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text("agents: {builder: {}}\n")
    assert main(["--fleet", str(path), "phase", *words]) == 1
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["phase", "set"], "the following arguments are required: phase"),
        (["phase"], "the following arguments are required: show|next|set"),
        (["phase", "jump"], "invalid choice: 'jump'"),
        (["init", "--example", "nothing"], "invalid choice: 'nothing' (choose from 'builder-reviewer')"),
    ],
)
def test_wrong_arguments_are_a_usage_error(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == 2
    assert sentence in capsys.readouterr().err
