"""Commits on a real remote become events and messages, once each: over restarts, merges, rewrites and huge pushes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from services.handoff import branch_events
from shared.contract.events.loops import (
    BranchGone,
    BranchRewritten,
    CommitMatched,
    CommitsSummedUp,
    WorkClaimed,
    WorkReviewed,
)
from tests.fixtures.repositories import Clone, git
from tests.integration.handoff.station import Station

PATTERNS = {"claim": {"to": "review"}, "review": {"to": "build"}, "stuck": {"subject": "(?i)help", "to": "reviewer"}}
Make = Callable[..., Station]


def subjects(station: Station) -> list[str]:
    matched = (WorkClaimed, WorkReviewed, CommitMatched)
    return [each.subject for each in station.told if isinstance(each, matched)]


def test_new_commits_are_reported_and_sent_to_their_agents(station: Make, clone: Clone) -> None:
    world = station(patterns=PATTERNS)
    world.runs("builder", "reviewer")
    world.settled()
    clone.commit("wip")
    claim = clone.commit("claim: it works")
    clone.commit("Please HELP me")
    clone.push()
    world.until(lambda: world.texts("reviewer"), "a message")
    assert subjects(world) == ["claim: it works", "Please HELP me"]
    (event,) = world.of(WorkClaimed)
    assert (event.commit, event.author, event.to, event.branch) == (claim, "ada", ["reviewer"], "main")
    assert world.texts("reviewer") == [
        f"ada committed {claim[:10]}: claim: it works\n\nada committed {clone.head[:10]}: Please HELP me"
    ]
    assert world.texts("builder") == []


def test_commits_of_before_the_first_observation_are_not_reported(station: Make, clone: Clone) -> None:
    clone.commit("claim: long ago")
    clone.push()
    world = station(patterns=PATTERNS)
    world.settled()
    assert subjects(world) == []
    clone.commit("claim: now")
    clone.push()
    world.until(lambda: subjects(world), "the commit")
    assert subjects(world) == ["claim: now"]


def test_no_commit_is_reported_twice_or_missed_over_restarts(station: Make, clone: Clone) -> None:
    world = station(patterns=PATTERNS)
    world.settled()
    expected = []
    for number in range(4):
        world.watcher.close()  # as if it were down while somebody pushes
        expected.append(f"claim: {number}")
        clone.commit(expected[-1])
        clone.push()
        world.restarts()
        world.until(lambda: len(subjects(world)) == len(expected), "the commit")
        world.restarts()
        world.settled()
    assert subjects(world) == expected


def test_a_turn_that_was_not_committed_is_repeated(station: Make, clone: Clone) -> None:
    world = station(patterns=PATTERNS)
    world.settled()
    clone.commit("claim: x")
    clone.push()
    lost: list[object] = []
    while not lost:
        lost = [*world.turn(commits=False).emitted]
    assert subjects(world) == []
    world.until(lambda: subjects(world), "it is told after all")
    world.settled()
    assert subjects(world) == ["claim: x"]


def test_a_merge_brings_its_commits_once(station: Make, clone: Clone) -> None:
    world = station(patterns=PATTERNS)
    world.settled()
    git(clone.path, "checkout", "--quiet", "-b", "side")
    clone.commit("claim: on the side", side="x\n")
    git(clone.path, "checkout", "--quiet", "main")
    clone.commit("claim: on main", main="x\n")
    clone.push()
    world.until(lambda: len(subjects(world)) == 1, "the first")
    git(clone.path, "merge", "--quiet", "--no-ff", "--message", "Merge side", "side")
    clone.push()
    world.until(lambda: len(subjects(world)) == 2, "the second")
    world.settled()
    assert subjects(world) == ["claim: on main", "claim: on the side"]
    assert world.of(BranchRewritten) == []


def test_a_forced_push_is_reported_and_repeats_no_event(station: Make, clone: Clone) -> None:
    world = station(patterns=PATTERNS)
    world.settled()
    base = clone.head
    clone.commit("claim: kept", kept="x\n")
    clone.commit("claim: lost", lost="x\n")
    was = clone.push()
    world.until(lambda: len(subjects(world)) == 2, "both")
    git(clone.path, "reset", "--quiet", "--hard", base)
    clone.commit("before all", other="x\n")
    git(clone.path, "cherry-pick", f"{was}~1")
    clone.commit("review: new", new="x\n")
    now = clone.push("--force")
    world.until(lambda: world.of(BranchRewritten), "that it was rewritten")
    world.settled()
    (event,) = world.of(BranchRewritten)
    assert (event.was, event.now, event.dropped, event.carried) == (was, now, 2, 1)
    assert subjects(world) == ["claim: kept", "claim: lost", "review: new"]
    git(clone.path, "push", "--quiet", "--force", "origin", f"{was}:refs/heads/main")
    world.until(lambda: len(world.of(BranchRewritten)) == 2, "that it was rewritten back")
    world.settled()
    assert subjects(world) == ["claim: kept", "claim: lost", "review: new"]


def test_a_branch_that_is_deleted_and_pushed_again_is_reported_once(station: Make, clone: Clone, remote: Path) -> None:
    world = station(patterns=PATTERNS)
    world.settled()
    was = clone.head
    git(remote, "update-ref", "-d", "refs/heads/main")
    world.until(lambda: world.of(BranchGone), "that it is gone")
    world.settled()
    assert [each.was for each in world.of(BranchGone)] == [was]
    clone.commit("claim: back")
    clone.push()
    world.until(lambda: subjects(world), "what is new on it")
    assert (subjects(world), world.kinds()) == (["claim: back"], ["branch_gone", "claim"])


def test_hundreds_of_commits_at_once_are_one_message_to_each_agent(station: Make, clone: Clone) -> None:
    world = station(patterns=PATTERNS)
    world.runs("builder", "reviewer")
    world.settled()
    clone.commit_many(f"{'review' if number % 2 else 'claim'}: number {number}" for number in range(500))
    clone.push()
    world.until(lambda: world.texts("reviewer") and world.texts("builder"), "messages")
    world.settled()
    (event,) = world.of(CommitsSummedUp)
    assert (event.commits, event.matched) == (500, {"claim": 250, "review": 250})
    assert (len(world.texts("reviewer")), len(world.texts("builder")), subjects(world)) == (1, 1, [])
    assert world.texts("reviewer")[0].startswith("250 commits for you came to main at once (250 claim), from ")
    assert "claim: number 498" in world.texts("reviewer")[0]


def test_two_commits_that_look_alike_are_two(station: Make, clone: Clone) -> None:
    world = station(patterns=PATTERNS)
    world.settled()
    at = "2030-01-01T00:00:00Z"
    for number in range(2):
        git(clone.path, "commit", "--quiet", "--allow-empty", "--date", at, "--message", "claim: again")
        clone.push()
        world.until(lambda count=number: len(subjects(world)) > count, "the commit")  # type: ignore[misc]
    assert subjects(world) == ["claim: again", "claim: again"]


def test_a_loop_that_fails_reports_nothing_by_halves(
    station: Make, clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = station(patterns=PATTERNS)
    world.settled()

    def odd(*_: object) -> None:
        raise RuntimeError("odd")

    monkeypatch.setattr(branch_events, "inbox_news", odd)
    clone.commit("claim: x")
    clone.push()
    world.until(lambda: "loop main: RuntimeError: odd" in world.trouble, "it goes wrong")
    assert subjects(world) == []
    monkeypatch.undo()
    world.until(lambda: subjects(world), "it comes again")
    world.settled()
    assert subjects(world) == ["claim: x"]
