"""That no commit is told twice, and that very many are told in one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.handoff.loops.commits import AT_MOST, SHOWN
from services.handoff.remotes.observation import Commit
from shared.contract.events.loops import CommitsSummedUp
from tests.unit.handoff.samples import commit, loop, matched, sha, sight

CLAIM = {"claim": {"to": "reviewer"}}
BOTH = {**CLAIM, "review": {"to": "builder"}}


def many(count: int, subject: str = "claim: part") -> list[Commit]:
    return [commit(number, f"{subject} {number}") for number in range(1, count + 1)]


# --- once ---


def test_what_was_told_is_not_told_again() -> None:
    old, new = commit(1), commit(2)
    found = matched(sight([old, new]), loop(patterns=CLAIM), old.key)
    assert ([ping.text for ping in found.pings], found.keys) == (
        [f"Ada committed {sha(2)[:10]}: {new.subject}"],
        [new.key],
    )
    assert found.carried == 1


def test_a_commit_that_was_rebased_is_the_same_one() -> None:
    before, after = commit(1, authored=5), commit(2, authored=5, committed=9_999)
    found = matched(sight([after], rewritten=True, dropped_keys=frozenset({before.key})), loop(patterns=CLAIM))
    assert (found.events, found.pings, found.keys, found.carried) == ([], [], [], 1)


@pytest.mark.parametrize("other", [{"author": "Bo"}, {"email": "b@b"}, {"authored": 6}, {"subject": "claim: x"}])
def test_a_commit_by_another_or_of_another_time_or_subject_is_another(other: dict[str, Any]) -> None:
    before, after = commit(1, authored=5), commit(**{"number": 2, "authored": 5, **other})
    assert before.key != after.key
    assert len(matched(sight([after], dropped_keys=frozenset({before.key})), loop(patterns=CLAIM)).events) == 1


def test_only_what_matches_is_carried() -> None:
    old = commit(1, "fix: typo")
    assert matched(sight([old]), loop(patterns=CLAIM), old.key).carried == 0


# --- many ---


def test_a_few_are_told_one_by_one() -> None:
    found = matched(sight(many(AT_MOST)), loop(patterns=CLAIM))
    assert [event.kind for event in found.events] == ["claim"] * AT_MOST
    assert len(found.pings) == AT_MOST


def test_more_are_one_event_and_one_message_to_each_agent() -> None:
    commits = [*many(AT_MOST), commit(50, "review: fine"), commit(51, "fix: typo")]
    found = matched(sight(commits, total=500), loop(patterns=BOTH))
    assert found.events == [
        CommitsSummedUp(
            loop="app",
            branch="main",
            commits=500,
            matched={"claim": AT_MOST, "review": 1},
            first=sha(1),
            last=sha(50),
            to=["rita", "bob"],
        )
    ]
    rita, bob = found.pings
    assert (rita.agent, bob.agent) == ("rita", "bob")
    head, *newest = rita.text.split("\n")
    assert (
        head == f"10 commits for you came to main at once (10 claim), from {sha(1)[:10]} to {sha(10)[:10]}. The newest:"
    )
    assert newest == [f"- {each.sha[:10]} Ada: {each.subject}" for each in commits[:AT_MOST][-SHOWN:]]
    assert bob.text.endswith(f"- {sha(50)[:10]} Ada: review: fine")
    assert found.keys == [each.key for each in commits[:-1]]


def test_a_commit_that_matches_twice_is_one_commit_in_the_summary() -> None:
    patterns = {**CLAIM, "part": {"subject": "part", "to": "reviewer"}}
    (ping,) = matched(sight(many(6)), loop(patterns=patterns)).pings
    assert ping.text.startswith("6 commits for you")
    assert len(ping.text.split("\n")) == 1 + SHOWN
    assert len(set(ping.text.split("\n"))) == 1 + SHOWN


def test_what_was_told_before_is_not_counted_among_many() -> None:
    commits = many(AT_MOST + 1)
    assert len(matched(sight(commits), loop(patterns=CLAIM), commits[0].key).events) == AT_MOST


@given(
    st.lists(st.tuples(st.sampled_from(["claim: a", "review: b", "fix: c"]), st.integers(0, 3)), max_size=25),
    st.sets(st.integers(0, 24)),
)
def test_whatever_comes_each_match_is_told_or_was(made: list[tuple[str, int]], before: set[int]) -> None:
    commits = [commit(number, subject, authored=when) for number, (subject, when) in enumerate(made)]
    told = {commits[place].key for place in before if place < len(commits)}
    found = matched(sight(commits), loop(patterns=BOTH), *told)
    fresh = [each for each in commits if "fix" not in each.subject and each.key not in told]
    assert set(found.keys) == {each.key for each in fresh}
    assert len(found.keys) == len(set(found.keys))
    again = matched(sight(commits), loop(patterns=BOTH), *told, *found.keys)
    assert (again.events, again.pings, again.keys) == ([], [], [])
    assert len(found.events) == (len(fresh) if len(fresh) <= AT_MOST else 1)
