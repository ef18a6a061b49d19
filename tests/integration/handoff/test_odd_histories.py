"""Histories as people and agents make them: amended, forced away and back, merged from the side, moved to elsewhere."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from shared.contract.commands import PhaseSet
from shared.contract.events.loops import InboxChanged, PhaseAdvanced, WorkClaimed
from tests.fixtures.repositories import Clone, bare, git
from tests.integration.handoff.station import PAIR, Station

Make = Callable[..., Station]
PATTERNS = {"claim": {"to": "review"}}


def subjects(world: Station) -> list[str]:
    return [each.subject for each in world.of(WorkClaimed)]


def phases(world: Station) -> list[str]:
    return [each.phase for each in world.of(PhaseAdvanced)]


def test_an_amended_claim_is_a_new_claim(station: Make, clone: Clone) -> None:
    world = station(patterns=PATTERNS)
    world.settled()
    clone.commit("claim: x", work="bad\n")
    clone.push()
    world.until(lambda: subjects(world), "the claim")
    (clone.path / "work").write_text("good\n")
    git(clone.path, "commit", "--quiet", "--all", "--amend", "--no-edit")
    clone.push("--force")
    world.until(lambda: len(subjects(world)) == 2, "the amended one")
    git(clone.path, "commit", "--quiet", "--amend", "--no-edit", "--reset-author", "--date", "2001-01-01T00:00:00Z")
    git(clone.path, "commit", "--quiet", "--amend", "--no-edit")
    clone.push("--force")
    world.until(lambda: len(subjects(world)) == 3, "one of another time")
    was = clone.head
    git(clone.path, "reset", "--quiet", "--hard", "HEAD~1")
    clone.commit("before it", other="x\n")
    git(clone.path, "cherry-pick", was)
    clone.push("--force")
    world.until(lambda: world.kinds().count("rewritten") == 3, "the rebased branch")
    world.settled()
    assert len(subjects(world)) == 3


def test_old_commits_that_are_forced_away_and_back_are_not_new(station: Make, clone: Clone) -> None:
    before = clone.head
    was = clone.commit("claim: long ago", old="x\n")
    clone.push()
    world = station(patterns=PATTERNS)
    world.settled()
    git(clone.path, "push", "--quiet", "--force", "origin", f"{before}:refs/heads/main")
    world.until(lambda: "rewritten" in world.kinds(), "it is away")
    git(clone.path, "push", "--quiet", "origin", f"{was}:refs/heads/main")
    world.until(lambda: world.tip() == was, "it is back")
    assert subjects(world) == []


def test_a_line_that_was_removed_only_on_a_side_branch_stays_stale(station: Make, clone: Clone) -> None:
    clone.commit("old", STATUS_md="STATUS: DONE\n")
    clone.push()
    world = station(PAIR, status_file="STATUS.md", phases=[{"name": "one"}, {"name": "two"}])
    world.until(lambda: phases(world), "the first phase")
    git(clone.path, "checkout", "--quiet", "-b", "side")
    clone.commit("open", STATUS_md="STATUS: OPEN\n")
    clone.commit("done", STATUS_md="STATUS: DONE\n")
    git(clone.path, "checkout", "--quiet", "main")
    clone.commit("meanwhile", other="x\n")
    git(clone.path, "merge", "--quiet", "--no-ff", "--message", "merge", "side")
    clone.push()
    world.until(lambda: world.tip() == clone.head, "the merge")
    world.settled()
    assert phases(world) == ["one"]


def test_an_inbox_file_that_was_deleted_only_on_a_side_branch_is_still_there(station: Make, clone: Clone) -> None:
    clone.commit("a note", inbox_md="x\n")
    clone.push()
    world = station(inbox={"inbox.md": "build"})
    world.settled()
    git(clone.path, "checkout", "--quiet", "-b", "side")
    clone.commit("read", inbox_md=None)
    git(clone.path, "checkout", "--quiet", "main")
    clone.commit("meanwhile", other="x\n")
    git(clone.path, "merge", "--quiet", "--no-ff", "--strategy", "ours", "--message", "merge", "side")
    clone.push()
    world.until(lambda: world.tip() == clone.head, "the merge")
    assert "consumed" not in [each.change for each in world.of(InboxChanged)]


def test_an_inbox_that_is_declared_later_reports_the_files_that_are_there(
    station: Make, clone: Clone, remote: Path
) -> None:
    clone.commit("notes", a_md="x\n", b_md="x\n")
    clone.push()
    loop = {"remote": str(remote), "roles": {"build": "builder"}, "inbox": {"a.md": "build"}}
    world = station(loops={"main": loop})
    world.settled()
    world.declare({"main": {**loop, "inbox": {"a.md": "build", "b.md": "build"}}})
    world.until(lambda: len(world.of(InboxChanged)) == 2, "the other one")
    world.settled()
    assert [each.path for each in world.of(InboxChanged)] == ["a.md", "b.md"]


def test_lines_of_another_branch_or_of_before_the_first_observation_end_no_phase(
    station: Make, clone: Clone, remote: Path
) -> None:
    git(clone.path, "checkout", "--quiet", "-b", "other")
    clone.commit("done long ago", STATUS_md="STATUS: DONE\n")
    git(clone.path, "push", "--quiet", "origin", "other")
    loop: dict[str, Any] = {"remote": str(remote), "roles": {"build": "builder"}, "status_file": "STATUS.md"}
    loop["phases"] = [{"name": "one"}, {"name": "two"}]
    world = station(PAIR, loops={"main": loop})
    world.until(lambda: phases(world), "the first phase")
    world.declare({"main": {**loop, "branch": "other"}})
    world.until(lambda: (seen := world.branch()) and seen.branch == "other", "the other branch")
    world.settled()
    assert phases(world) == ["one"]
    away = remote.rename(remote.with_suffix(".away"))
    world.turns.remember(**dict.fromkeys(world.turns.memory))
    world.restarts()
    world.turn(PhaseSet(phase="one"))
    away.rename(remote)
    world.until(world.branch, "the first look")
    world.settled()
    assert phases(world) == ["one", "one"]


def test_a_done_line_in_the_first_push_counts(station: Make, tmp_path: Path) -> None:
    empty = bare(tmp_path / "empty.git")
    world = station(PAIR, remote=str(empty), status_file="STATUS.md", phases=[{"name": "one"}, {"name": "two"}])
    world.until(lambda: phases(world), "the first phase")
    first = Clone(empty, tmp_path / "first")
    first.commit("all of it", STATUS_md="STATUS: DONE\n")
    first.push()
    world.until(lambda: phases(world) == ["one", "two"], "the second phase")


def test_an_observation_of_one_remote_is_not_taken_for_another(
    station: Make, clone: Clone, remote: Path, tmp_path: Path
) -> None:
    other = bare(tmp_path / "other.git")
    second = Clone(other, tmp_path / "second")
    second.commit("begin", b_md="x\n")
    second.push()
    clone.commit("mail", a_md="x\n")
    clone.push()
    loop = {"remote": str(remote), "roles": {"build": "builder"}, "inbox": {"*.md": "build"}}
    world = station(loops={"main": loop})
    world.turn()
    world.until_news()
    world.declare({"main": {**loop, "remote": str(other)}})
    world.until(world.branch, "the first look")
    world.settled()
    assert {each.path for each in world.of(InboxChanged)} == {"b.md"}
    assert world.tip() == second.head
