"""Every recorded transcript and live file through the readers: what they say, and what they can't know."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from shared.agents.claude import live_file
from shared.agents.evidence import Evidence
from shared.agents.opencode import activity as opencode
from shared.agents.transcript_activity import READINGS
from shared.contract.states import Activity

RECORDED = Path(__file__).parents[3] / "real_agents" / "recorded"
CASES = sorted(RECORDED.glob("*/*@120.json"))

ALL = ("claude", "codex", "gemini", "opencode")
WHILE_ASKED = "nothing is written while a person is asked: hooks, live file, title or screen tell"
OUTLASTS = "the turn is over before its subagents are (a weak claim): hooks or screen tell"
ENDED = "the file stays as it was when the process ended: the process tells"

CORRECTED: Mapping[tuple[str, str], tuple[str, str]] = {
    **{(cli, each): ("working", WHILE_ASKED) for cli in ALL for each in ("approval-command", "approval-edit")},
    ("claude", "approval-unchecked"): ("working", WHILE_ASKED),
    **{(cli, "subagent-approval"): ("working", WHILE_ASKED) for cli in ALL},
    **{(cli, "exit"): ("waiting", ENDED) for cli in ALL},
    **{(cli, "killed"): ("working", ENDED) for cli in ALL},
    ("codex", "subagent-background"): ("waiting", OUTLASTS),
    ("codex", "subagent-approval"): ("waiting", OUTLASTS),
    ("claude", "interrupted-early"): ("working", "nothing is written of it: the live file tells"),
    ("gemini", "limit-per_day"): ("working", "nothing is written of it, and a menu is up: the screen tells"),
    ("opencode", "limit-account"): (
        "working",
        "it waits and tries again by itself, and writes nothing: the screen tells",
    ),
    ("gemini", "question"): ("working", WHILE_ASKED),
}
"""What a transcript says that another source has to correct: by program and situation, with the reason."""

LIVE_CORRECTED: Mapping[str, tuple[tuple[str, ...], str]] = {
    **dict.fromkeys(
        ("limit-five_hour", "limit-seven_day", "limit-seven_day_opus", "limit-overage"),
        (("needs_approval", "waiting"), "it says that a menu is open, not which: the transcript tells"),
    ),
    **dict.fromkeys(
        ("limit-five_hour-dismissed", "limit-seven_day-dismissed", "limit-api", "auth-failure", "credit"),
        (("waiting",), "it knows nothing of why a turn ended: the transcript tells"),
    ),
    "killed": (("working",), ENDED),
}


def case(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def transcript_claim(cli: str, lines: list[dict[str, Any]]) -> Evidence | None:
    if cli == "opencode":
        return opencode.claim_of(lines[-4:])
    reading = READINGS[cli]()
    for line in lines:
        reading.take(line)
    return reading.claim()


def said(evidence: Evidence | None) -> str | None:
    return evidence.says.value if evidence is not None else None


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_transcript_says_what_is_true_or_what_another_source_corrects(path: Path) -> None:
    recorded = case(path)
    cli, situation, transcript = recorded["cli"], recorded["situation"], recorded["transcript"]
    claim = transcript_claim(cli, transcript["lines"] if transcript else [])
    wrong, _ = CORRECTED.get((cli, situation), (None, ""))
    if wrong is not None:
        assert said(claim) in (wrong, recorded["expected"], None)
        if claim is not None and said(claim) != "needs_approval" == recorded["expected"]:
            assert claim.weak  # or it would speak against those who know
    elif claim is not None:
        assert said(claim) == recorded["expected"]
        assert claim.at <= recorded["recorded_at"]
        assert claim.at >= recorded["recorded_at"] - 120


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_subagents_lines_are_not_the_agents_own(path: Path) -> None:
    recorded = case(path)
    if recorded["cli"] != "claude":  # the others keep them apart, and it is the path that tells
        return
    for transcript in recorded["subagent_transcripts"].values():
        assert transcript_claim("claude", transcript["lines"]) is None


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_live_file_says_what_is_true_or_what_another_source_corrects(path: Path) -> None:
    recorded = case(path)
    if recorded["live"] is None:
        return
    claim = live_file.claim_of(recorded["live"])
    wrong, _ = LIVE_CORRECTED.get(recorded["situation"], ((), ""))
    assert claim is not None
    assert claim.says.value in (wrong or (recorded["expected"],))
    if claim.says.value != recorded["expected"] and claim.says is Activity.NEEDS_APPROVAL:
        assert claim.rule == "menu"


def test_there_are_recordings() -> None:
    assert {case(path)["cli"] for path in CASES} >= {"claude", "codex"}
