"""Which commits become events and messages, for which agents, and with which text."""

from datetime import UTC, datetime
from typing import Any

import pytest

from services.handoff.loops.commits import (
    SUBJECT_CHARACTERS,
    MatchedCommits,
    OutgoingMessage,
    match,
    recipients,
    role_of,
)
from services.handoff.loops.templates import values_of
from shared.contract.events.loops import CommitMatched, WorkClaimed, WorkReviewed
from tests.unit.handoff.samples import commit, loop, matched, observation, sha

Patterns = dict[str, dict[str, Any]]
CLAIM: Patterns = {"claim": {"to": "reviewer"}}


def of(subject: str, patterns: Patterns) -> MatchedCommits:
    return matched(observation([commit(subject=subject)]), loop(patterns=patterns))


# --- which ---


@pytest.mark.parametrize(
    ("subject", "matches"),
    [
        ("claim: the parser", True),
        ("Claim: the parser", True),
        ("CLAIM(core): the parser", True),
        ("Claim(scope)!: the parser", True),
        ("claim!: the parser", True),
        ("claim():", True),
        ("claim:", True),
        ("claims: the parser", False),
        ("reclaim: the parser", False),
        (" claim: the parser", False),
        ("claim the parser", False),
        ("claim : the parser", False),
        ("claim(a)(b): the parser", False),
        ("claim(core: the parser", False),
        ("claim(core)x: the parser", False),
        ("fix: claim: the parser", False),
        ('Revert "claim: the parser"', False),
        ("", False),
    ],
)
def test_commits_are_known_by_the_name_of_the_pattern(subject: str, matches: bool) -> None:
    assert len(of(subject, CLAIM).events) == matches


def test_the_name_of_a_pattern_is_not_a_regular_expression() -> None:
    patterns: Patterns = {"a-b_c": {"to": "builder"}}
    assert len(of("a-b_c: done", patterns).events) == 1
    assert of("a-bxc: done", patterns).events == []


def test_a_regular_expression_is_searched_as_it_is_written() -> None:
    patterns: Patterns = {"gate": {"subject": r"\[gate \d+\]$", "to": "builder"}}
    assert len(of("build [gate 12]", patterns).events) == 1
    assert of("build [GATE 12]", patterns).events == []
    assert of("gate: no", patterns).events == []


@pytest.mark.parametrize(
    ("pattern", "kind"), [("claim", WorkClaimed), ("review", WorkReviewed), ("gate", CommitMatched)]
)
def test_the_name_of_the_pattern_decides_the_kind_of_event(
    pattern: str, kind: type[WorkClaimed | WorkReviewed | CommitMatched]
) -> None:
    made = commit(subject=f"{pattern}: done", committed=1_700_000_000)
    (event,) = matched(observation([made]), loop(patterns={pattern: {"to": "reviewer"}})).events
    assert event == kind(
        loop="app",
        pattern=pattern,
        branch="main",
        commit=made.sha,
        subject=made.subject,
        author="Ada",
        committed=datetime.fromtimestamp(1_700_000_000, UTC),
        to=["rita"],
    )


def test_one_commit_may_match_several_patterns_and_has_one_key() -> None:
    patterns = {**CLAIM, "any": {"subject": ".", "to": "builder", "text": "{pattern}"}}
    found = of("claim: x", patterns)
    assert [event.kind for event in found.events] == ["claim", "commit"]
    assert [message.agent for message in found.messages] == ["rita", "bob"]
    assert found.keys == [commit(subject="claim: x").key]


# --- to whom ---


def test_a_role_stands_for_its_agent_and_an_agent_for_itself() -> None:
    given = loop(roles={"builder": "bob", "tester": "bob", "reviewer": "rita"})
    assert recipients(given, ["builder", "tester", "bob", "zoe", "reviewer"]) == ["bob", "zoe", "rita"]


def test_a_role_comes_before_an_agent_of_the_same_name() -> None:
    assert recipients(loop(roles={"rita": "bob", "bob": "rita"}), ["rita"]) == ["bob"]


def test_an_agent_that_is_named_twice_gets_one_message() -> None:
    found = of("claim: x", {"claim": {"to": ["builder", "bob", "reviewer"]}})
    assert [message.agent for message in found.messages] == ["bob", "rita"]
    assert [event.to for event in found.events] == [["bob", "rita"]]


def test_the_role_in_a_message_is_the_one_that_it_was_sent_to() -> None:
    given = loop(roles={"builder": "bob", "tester": "bob"})
    assert role_of(given, "bob", ["tester"]) == "tester"
    assert role_of(given, "bob", ["zoe", "builder", "tester"]) == "builder"
    assert role_of(given, "bob", ["bob"]) == ""


# --- in which words ---


def test_a_message_says_what_its_template_asks_for() -> None:
    words = "{loop} {branch} {phase} {number}/{phases} {role} {agent} {commit} {sha} {author} {subject} {pattern}"
    given = loop(patterns={"claim": {"to": "reviewer", "text": words}}, phases=[{"name": "plan"}, {"name": "build"}])
    (message,) = match(given, observation([commit()]), (), values_of("app", given, 2), "app").messages
    whole = sha(10)
    said = f"app main build 2/2 reviewer rita {whole[:10]} {whole} Ada claim: the parser claim"
    assert message == OutgoingMessage("rita", said, outlives_phase=False)


def test_a_value_that_was_filled_in_is_not_filled_again() -> None:
    (message,) = of("claim: {author} {sha} {x} {", CLAIM).messages
    assert message.text == f"Ada committed {sha(10)[:10]}: claim: {{author}} {{sha}} {{x}} {{"


def test_a_huge_subject_is_cut() -> None:
    found = of("claim: " + "x" * 100_000, CLAIM)
    (event,) = found.events
    assert isinstance(event, WorkClaimed)
    assert len(event.subject) == SUBJECT_CHARACTERS
    assert len(found.messages[0].text) < SUBJECT_CHARACTERS + 100


@pytest.mark.parametrize("seconds", [0, -1, -(10**12), 2**31, 2**63, -(2**63), 10**30, 253_402_300_800])
def test_a_commit_may_claim_any_time(seconds: int) -> None:
    (event,) = matched(observation([commit(committed=seconds)]), loop(patterns=CLAIM)).events
    assert isinstance(event, WorkClaimed)
    try:
        expected = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        expected = datetime.fromtimestamp(0, UTC)
    assert event.committed == expected
    assert WorkClaimed.model_validate_json(event.model_dump_json()) == event
