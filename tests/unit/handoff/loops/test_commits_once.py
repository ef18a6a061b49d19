"""That no commit is reported twice, and that very many are reported in one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.handoff.loops.commits import REPORTED_SINGLY_AT_MOST, SHOWN_IN_SUMMARY
from services.handoff.remotes.observation import Commit
from shared.contract.events.loops import CommitsSummedUp
from tests.unit.handoff.samples import commit, loop, matched, observation, sha

CLAIM = {"claim": {"to": "reviewer"}}
BOTH = {**CLAIM, "review": {"to": "builder"}}


def many(count: int, subject: str = "claim: part") -> list[Commit]:
    return [commit(number, f"{subject} {number}") for number in range(1, count + 1)]


# --- once ---


def test_a_reported_commit_is_not_reported_again() -> None:
    old, new = commit(1), commit(2)
    found = matched(observation([old, new]), loop(patterns=CLAIM), old.key)
    assert ([message.text for message in found.messages], found.keys) == (
        [f"Ada committed {sha(2)[:10]}: {new.subject}"],
        [new.key],
    )
    assert found.carried == 1


def test_a_commit_that_was_rebased_is_the_same_one() -> None:
    before, after = commit(1, authored=5), commit(2, authored=5, committed=9_999)
    found = matched(observation([after], rewritten=True, dropped_keys=frozenset({before.key})), loop(patterns=CLAIM))
    assert (found.events, found.messages, found.keys, found.carried) == ([], [], [], 1)


@pytest.mark.parametrize("other", [{"author": "Bo"}, {"email": "b@b"}, {"authored": 6}, {"subject": "claim: x"}])
def test_a_commit_with_another_author_time_or_subject_is_another_commit(other: dict[str, Any]) -> None:
    before, after = commit(1, authored=5), commit(**{"number": 2, "authored": 5, **other})
    assert before.key != after.key
    assert len(matched(observation([after], dropped_keys=frozenset({before.key})), loop(patterns=CLAIM)).events) == 1


def test_only_commits_that_match_are_carried() -> None:
    old = commit(1, "fix: typo")
    assert matched(observation([old]), loop(patterns=CLAIM), old.key).carried == 0


# --- many ---


def test_a_few_commits_are_reported_one_by_one() -> None:
    found = matched(observation(many(REPORTED_SINGLY_AT_MOST)), loop(patterns=CLAIM))
    assert [event.kind for event in found.events] == ["claim"] * REPORTED_SINGLY_AT_MOST
    assert len(found.messages) == REPORTED_SINGLY_AT_MOST


def test_more_commits_are_one_event_and_one_message_to_each_agent() -> None:
    commits = [*many(REPORTED_SINGLY_AT_MOST), commit(50, "review: fine"), commit(51, "fix: typo")]
    found = matched(observation(commits, total=500), loop(patterns=BOTH))
    assert found.events == [
        CommitsSummedUp(
            loop="app",
            branch="main",
            commits=500,
            matched={"claim": REPORTED_SINGLY_AT_MOST, "review": 1},
            first=sha(1),
            last=sha(50),
            to=["rita", "bob"],
        )
    ]
    rita, bob = found.messages
    assert (rita.agent, bob.agent) == ("rita", "bob")
    head, *newest = rita.text.split("\n")
    assert (
        head == f"10 commits for you came to main at once (10 claim), from {sha(1)[:10]} to {sha(10)[:10]}. The newest:"
    )
    assert newest == [
        f"- {each.sha[:10]} Ada: {each.subject}" for each in commits[:REPORTED_SINGLY_AT_MOST][-SHOWN_IN_SUMMARY:]
    ]
    assert bob.text.endswith(f"- {sha(50)[:10]} Ada: review: fine")
    assert found.keys == [each.key for each in commits[:-1]]


def test_a_commit_that_matches_twice_is_one_commit_in_the_summary() -> None:
    patterns = {**CLAIM, "part": {"subject": "part", "to": "reviewer"}}
    (message,) = matched(observation(many(6)), loop(patterns=patterns)).messages
    assert message.text.startswith("6 commits for you")
    assert len(message.text.split("\n")) == 1 + SHOWN_IN_SUMMARY
    assert len(set(message.text.split("\n"))) == 1 + SHOWN_IN_SUMMARY


def test_commits_that_were_reported_before_are_not_counted_among_many() -> None:
    commits = many(REPORTED_SINGLY_AT_MOST + 1)
    assert len(matched(observation(commits), loop(patterns=CLAIM), commits[0].key).events) == REPORTED_SINGLY_AT_MOST


@given(
    st.lists(st.tuples(st.sampled_from(["claim: a", "review: b", "fix: c"]), st.integers(0, 3)), max_size=25),
    st.sets(st.integers(0, 24)),
)
def test_each_match_is_reported_now_or_was_before(made: list[tuple[str, int]], before: set[int]) -> None:
    commits = [commit(number, subject, authored=when) for number, (subject, when) in enumerate(made)]
    reported = {commits[place].key for place in before if place < len(commits)}
    found = matched(observation(commits), loop(patterns=BOTH), *reported)
    fresh = [each for each in commits if "fix" not in each.subject and each.key not in reported]
    assert set(found.keys) == {each.key for each in fresh}
    assert len(found.keys) == len(set(found.keys))
    again = matched(observation(commits), loop(patterns=BOTH), *reported, *found.keys)
    assert (again.events, again.messages, again.keys) == ([], [], [])
    assert len(found.events) == (len(fresh) if len(fresh) <= REPORTED_SINGLY_AT_MOST else 1)
