"""`muster explain` for people: the verdict, every source, the subagents, and nothing that commands the terminal."""

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from services.cli.__main__ import main
from services.cli.explain import SOURCES, as_text
from services.cli.words import Paint
from shared.agents.evidence import EvidenceSource

NOW = datetime(2030, 1, 1, tzinfo=UTC)
PLAIN = Paint(io.StringIO())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def piece(source: str, says: str = "working", **more: Any) -> dict[str, Any]:
    known = {"at": NOW.isoformat(), "age_s": 3.0, "why": f"{source} says so", "rule": "", "weak": False}
    return {"source": source, "says": says, **known, "believed": False, "because": "agrees with hooks", **more}


def found(*evidence: dict[str, Any], **more: Any) -> dict[str, Any]:
    known = {"agent": "builder", "spawn": "s1", "backend": "claude", "version": None, "status": "working"}
    since = (NOW - timedelta(minutes=5)).isoformat()
    shown: dict[str, Any] = {**known, "since": since, "reason": "it uses Bash", "decided_by": "hooks", "subagents": {}}
    return {**shown, "evidence": list(evidence), **more}


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_the_verdict_comes_first_and_each_source_in_its_order() -> None:
    told = as_text(found(piece("screen"), piece("hooks", believed=True, rule="r7")), PLAIN, NOW)
    lines = told.splitlines()
    assert lines[:3] == ["builder (claude) is working for 5m", "because it uses Bash", ""]
    assert lines[3].split()[:3] == ["SOURCE", "SAYS", "FOR"]
    assert [row[1] if row[0] == "▶" else row[0] for row in rows(told)[4:]] == list(SOURCES)
    (believed,) = [line for line in lines if "▶" in line]
    assert believed.split()[1:4] == ["hooks", "working", "3s"]
    assert "hooks says so [r7]" in believed
    assert not any(line != line.rstrip() for line in lines)


def test_a_source_without_evidence_is_shown_as_nothing() -> None:
    told = as_text(found(piece("hooks")), PLAIN, NOW)
    assert [row for row in rows(told) if row[:1] == ["title"]] == [["title", "-", "nothing"]]
    assert sum(row[-1:] == ["nothing"] for row in rows(told)) == len(SOURCES) - 1


def test_the_sources_are_those_of_the_monitor() -> None:
    assert list(SOURCES) == [each.value for each in EvidenceSource]


def test_a_source_of_a_newer_monitor_is_shown_too() -> None:
    assert ["crystal", "working", "3s"] in [row[:3] for row in rows(as_text(found(piece("crystal")), PLAIN, NOW))]


def test_version_and_subagents_are_shown_if_known() -> None:
    told = as_text(found(version="2.1.197", subagents={"a1": "waiting", "a2": "working"}), PLAIN, NOW)
    assert told.startswith("builder (claude 2.1.197) is working")
    assert told.endswith("\n\nsubagents: a1 waiting, a2 working")
    assert "subagents" not in as_text(found(), PLAIN, NOW)


def test_control_characters_in_answers_do_not_reach_the_terminal() -> None:
    bad = "\x1b]0;x\x07\x1b[2J\n\r\x9b1m\u202e"
    evil = piece(bad, bad, why=bad, rule=bad, because=bad)
    more = {"agent": bad, "backend": bad, "version": bad, "status": bad, "reason": bad, "subagents": {bad: bad}}
    told = as_text(found(evil, piece("hooks", bad, why=bad, because=bad), **more), PLAIN, NOW)
    assert all(letter.isprintable() or letter == "\n" for letter in told)
    assert len(told.splitlines()) == len(as_text(found(evil, subagents={"a": "b"}), PLAIN, NOW).splitlines())


def test_colours_are_for_terminals_only() -> None:
    assert "\x1b[" not in as_text(found(piece("hooks", believed=True)), PLAIN, NOW)
    coloured = as_text(found(piece("hooks")), Paint(Terminal()), NOW)
    assert coloured.count("\x1b[32mworking\x1b[0m") == 2, "as the verdict, and as what a source says"


def explain(fleet: Path, agent: str) -> int:
    return main(["--fleet", str(fleet), "explain", agent])


def test_without_services_it_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (fleet := tmp_path / "fleet.yaml").write_text("agents: {builder: {}}\n")
    assert explain(fleet, "builder") == 1
    assert "start them with: muster up" in capsys.readouterr().err


def test_an_invalid_name_is_refused_and_shown_without_control_characters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (fleet := tmp_path / "fleet.yaml").write_text("agents: {builder: {}}\n")
    assert explain(fleet, "no\x1b[2J one") == 1
    said = capsys.readouterr().err
    assert "is no agent's name" in said
    assert "\x1b" not in said


def test_the_table_fits_the_terminal() -> None:
    wordy = found(piece("hooks", why="so much to say of it " * 9, because="for so many reasons " * 9))
    assert max(map(len, as_text(wordy, PLAIN, NOW).splitlines())) > 300
    assert all(len(line) <= 90 for line in as_text(wordy, PLAIN, NOW, 90).splitlines())


@pytest.mark.parametrize(
    ("health", "line"),
    [
        ({"state": "working", "summary": "half done", "trouble": ""}, "ago: working: half done"),
        ({"state": "unresponsive", "summary": "", "trouble": ""}, "ago: unresponsive"),
        ({"state": "working", "summary": "x", "trouble": "not logged in"}, "ago, without an answer: not logged in"),
    ],
)
def test_the_last_health_check_is_shown(health: dict[str, str], line: str) -> None:
    asked = {"asked": (NOW - timedelta(minutes=3)).isoformat(), **health}
    assert as_text(found(health=asked), PLAIN, NOW).splitlines()[-1] == f"asked how its work is 3m {line}"
    assert "asked how its work is" not in as_text(found(health=None), PLAIN, NOW)
