"""A branch that is watched before it exists: what is new when it appears, and what is not."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.handoff.remotes.mirror import Mirror
from shared.contract.events.loops import BranchGone, BranchRewritten, InboxChanged, StatusSeen
from tests.fixtures.repositories import Clone, git
from tests.integration.handoff.station import PAIR, Station
from tests.integration.handoff.test_commits import PATTERNS, subjects

Make = Callable[..., Station]
INBOX = {"inbox/*": {"to": "review"}}


def waits_for_it(station: Make, agents: dict[str, Any] | None = None, **loop: Any) -> Station:
    world = station(agents, **{"patterns": PATTERNS, "branch": "later", **loop})
    world.until(lambda: world.of(BranchGone), "that it is not there")
    world.settled()
    return world


def comes(world: Station, clone: Clone) -> None:
    """The branch is pushed as the clone is, and taken up."""
    git(clone.path, "push", "--quiet", "origin", "HEAD:refs/heads/later")
    world.until(lambda: world.tip() == clone.head, "it is there")
    world.settled()


def test_every_commit_is_new_on_a_remote_that_was_empty(station: Make, tmp_path: Path, remote: Path) -> None:
    world = waits_for_it(station)
    assert world.of(BranchGone)[0].was is None
    clone = Clone(remote, tmp_path / "first")
    clone.commit("claim: the first")
    clone.commit("claim: the second")
    comes(world, clone)
    assert world.kinds() == ["branch_gone", "claim", "claim"]


@pytest.mark.parametrize("restarts", [False, True], ids=["", "restarted"])
def test_commits_of_before_the_branch_are_not_new(station: Make, clone: Clone, restarts: bool) -> None:
    """Not of before the loop was declared, nor of what came on main while it was waited for."""
    clone.commit("claim: long ago")
    clone.push()
    world = waits_for_it(station)
    clone.commit("claim: on main")
    clone.push()
    world.settled()
    if restarts:
        world.restarts()
    git(clone.path, "checkout", "--quiet", "HEAD~1")  # behind main by now
    clone.commit("claim: for this loop")
    clone.commit("claim: another")
    comes(world, clone)
    assert subjects(world) == ["claim: for this loop", "claim: another"]
    assert world.kinds() == ["branch_gone", "claim", "claim"]


def test_a_branch_without_commits_of_its_own_brings_nothing(station: Make, clone: Clone) -> None:
    clone.commit("claim: long ago")
    clone.push()
    world = waits_for_it(station)
    comes(world, clone)
    assert world.kinds() == ["branch_gone"]


def test_commits_that_were_merged_at_once_are_reported_too(station: Make, clone: Clone) -> None:
    world = waits_for_it(station)
    clone.commit("claim: the first")
    git(clone.path, "push", "--quiet", "--atomic", "origin", "HEAD:refs/heads/later", "HEAD:refs/heads/main")
    world.until(lambda: subjects(world), "the commit")
    world.settled()
    assert (subjects(world), world.of(BranchRewritten)) == (["claim: the first"], [])


def test_an_unrelated_history_is_new_from_its_first_commit(station: Make, clone: Clone) -> None:
    clone.commit("claim: long ago")
    clone.push()
    world = waits_for_it(station)
    git(clone.path, "checkout", "--quiet", "--orphan", "own")
    clone.commit("claim: the first")
    comes(world, clone)
    assert subjects(world) == ["claim: the first"]


def test_commits_of_histories_that_were_merged_into_head_are_not_new(station: Make, clone: Clone) -> None:
    """They have more than one commit at which they part."""

    def on(branch: str, *words: str) -> None:
        git(clone.path, "checkout", "--quiet", branch)
        git(clone.path, *words)

    on("main", "branch", "develop")
    on("develop", "commit", "--quiet", "--allow-empty", "-m", "claim: on develop")
    on("main", "commit", "--quiet", "--allow-empty", "-m", "claim: on main")
    main, develop = git(clone.path, "rev-parse", "main", "develop").split()
    on("main", "merge", "--quiet", "-m", "one way", develop)
    on("develop", "merge", "--quiet", "-m", "the other way", main)
    on("main", "push", "--quiet", "origin", "main")
    world = waits_for_it(station)
    git(clone.path, "checkout", "--quiet", "develop")
    comes(world, clone)
    assert subjects(world) == []


def test_a_rewritten_head_counts_as_it_is_now(station: Make, clone: Clone) -> None:
    clone.commit("claim: long ago")
    clone.commit("tip")
    clone.push()
    world = waits_for_it(station)
    git(clone.path, "commit", "--quiet", "--amend", "--allow-empty", "-m", "amended")
    main = clone.head
    clone.commit("claim: new")
    git(clone.path, "push", "--quiet", "--force", "--atomic", "origin", f"{main}:main", "HEAD:refs/heads/later")
    world.until(lambda: subjects(world), "the commit")
    world.settled()
    assert subjects(world) == ["claim: new"]


def test_a_head_that_points_nowhere_for_a_while_changes_nothing(station: Make, clone: Clone, remote: Path) -> None:
    clone.commit("claim: long ago")
    clone.push()
    world = waits_for_it(station)
    git(remote, "symbolic-ref", "HEAD", "refs/heads/not-there")
    world.settled()
    clone.commit("claim: new")
    comes(world, clone)
    assert subjects(world) == ["claim: new"]


def test_a_head_that_can_not_be_fetched_delays_nothing(station: Make, clone: Clone, remote: Path) -> None:
    base = clone.commit("base")
    clone.push()
    world = waits_for_it(station)
    clone.commit("broken", B="only here")
    clone.push()
    world.settled()
    blob = git(clone.path, "rev-parse", "HEAD:B")
    (remote / "objects" / blob[:2] / blob[2:]).unlink()
    git(clone.path, "checkout", "--quiet", base)
    clone.commit("claim: new")
    comes(world, clone)
    assert "claim: new" in subjects(world)


def test_a_branch_named_head_is_not_the_remotes_head(station: Make, clone: Clone, remote: Path) -> None:
    git(remote, "update-ref", "refs/heads/HEAD", clone.head)
    clone.commit("claim: long ago")
    clone.push()
    world = waits_for_it(station)
    clone.commit("claim: new")
    comes(world, clone)
    assert subjects(world) == ["claim: new"]


# --- files ---


@pytest.mark.parametrize(
    ("on_the_branch", "told"),
    [({}, ["changed"]), ({"inbox__x_md": "new"}, ["changed"]), ({"inbox__x_md": None}, [])],
    ids=["left", "written anew", "taken away"],
)
def test_inbox_files_of_a_branch_that_appeared_are_reported_once(
    station: Make, clone: Clone, on_the_branch: dict[str, str | None], told: list[str]
) -> None:
    clone.commit("mail", inbox__x_md="old")
    clone.push()
    world = waits_for_it(station, inbox=INBOX)
    clone.commit("begin", **on_the_branch)
    comes(world, clone)
    assert [each.change for each in world.of(InboxChanged)] == told


@pytest.mark.parametrize(
    ("on_the_branch", "done"),
    [
        ({}, False),
        ({"STATUS_md": None}, False),
        ({"STATUS_md": "STATUS: OPEN\n"}, False),
        ({"STATUS_md": "STATUS: DONE\nand more\n"}, False),
        ({"STATUS_md": "STATUS: DONE, truly\n"}, True),
    ],
    ids=["left", "taken away", "open", "the same line", "another line"],
)
def test_a_done_line_from_before_the_branch_ends_no_phase(
    station: Make, clone: Clone, on_the_branch: dict[str, str | None], done: bool
) -> None:
    clone.commit("main is done", STATUS_md="STATUS: DONE\n")
    clone.push()
    loop = {"phases": [{"name": "one"}, {"name": "two"}], "status_file": "STATUS.md"}
    world = waits_for_it(station, PAIR, **loop)
    clone.commit("begin", **on_the_branch)
    comes(world, clone)
    assert any(each.done for each in world.of(StatusSeen)) is done
    assert world.phase_number() == (2 if done else 1)


def test_a_done_line_that_was_removed_and_comes_again_counts(station: Make, clone: Clone) -> None:
    clone.commit("main is done", STATUS_md="STATUS: DONE\n")
    clone.push()
    world = waits_for_it(station, PAIR, phases=[{"name": "one"}, {"name": "two"}], status_file="STATUS.md")
    clone.commit("begin", STATUS_md="STATUS: OPEN\n")
    clone.commit("end", STATUS_md="STATUS: DONE\n")
    comes(world, clone)
    assert world.phase_number() == 2


def test_the_status_file_of_a_phase_counts_as_it_is_on_the_branch(station: Make, clone: Clone) -> None:
    """Such a line counts also where it was there before; but not one that the branch never had."""
    clone.commit("main is done", status__one_md="STATUS: DONE\n", status__two_md="STATUS: DONE\n")
    clone.push()
    phases = [{"name": "one"}, {"name": "two"}]
    world = waits_for_it(station, PAIR, phases=phases, status_file="status/{phase}.md")
    clone.commit("begin anew", status__one_md=None)
    comes(world, clone)
    assert world.phase_number() == 1


# --- when it is looked at ---


def test_a_branch_that_is_declared_during_garbage_collection_is_observed_right_after_it(
    station: Make, clone: Clone, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(Mirror, "collect_garbage", lambda _: go_on.wait(20))
    loop = {"remote": str(remote), "roles": {"build": "builder"}, "poll_s": 600}
    world = station(loops={"main": loop})
    world.until(world.branch, "the first look")
    world.declare({"main": loop, "other": {**loop, "branch": "later"}})
    world.turn()
    world.turn()
    go_on.set()
    world.until(lambda: world.branch("other"), "the first look for the other")
