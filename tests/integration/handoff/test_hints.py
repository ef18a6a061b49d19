"""A push on this host is noticed at once, however seldom the remote is asked."""

from collections.abc import Callable
from pathlib import Path

from services.handoff.remotes.push_hints import WatchedRefs, files_of
from shared.contract.commands import Poll
from shared.contract.events.loops import WorkClaimed
from tests.fixtures.repositories import Clone, git
from tests.integration.handoff.station import Station

Make = Callable[..., Station]
SELDOM = {"poll_s": 3600, "patterns": {"claim": {"to": "build"}}}


def begun(world: Station) -> Station:
    """Asked once, and not again for an hour; and refs were looked at."""
    world.until(world.branch, "the first look")
    world.hints.begin()
    world.until(lambda: world.hints.has_looked, "a look at refs")
    return world


def test_a_push_into_a_remote_on_this_disk_is_noticed_at_once(station: Make, clone: Clone) -> None:
    world = begun(station(**SELDOM))
    clone.commit("claim: x")
    clone.push()
    world.until(lambda: world.of(WorkClaimed), "the commit")


def test_a_push_from_an_agents_clone_is_noticed_whatever_the_remote_is(
    station: Make, clone: Clone, remote: Path
) -> None:
    world = begun(station({"builder": {"dir": "clone"}, "reviewer": {}}, **{**SELDOM, "remote": f"file://{remote}"}))
    git(remote, "pack-refs", "--all")
    clone.commit("claim: x")
    clone.push()
    world.until(lambda: world.of(WorkClaimed), "the commit")


def test_a_remote_is_asked_at_once_on_a_poll_command(station: Make, clone: Clone) -> None:
    world = station(**SELDOM)
    world.until(world.branch, "the first look")
    clone.commit("claim: x")
    clone.push()
    assert world.reply(Poll(loop="main")).said == "1 remotes are asked now"
    world.until(lambda: world.of(WorkClaimed), "the commit")
    assert world.reply(Poll(loop="other")).code == "unknown_loop"


def test_a_linked_work_tree_has_its_refs_in_its_repository(clone: Clone, tmp_path: Path) -> None:
    git(clone.path, "worktree", "add", "--quiet", str(tmp_path / "further"))
    git(clone.path, "fetch", "--quiet", "origin")
    refs = WatchedRefs(("main",), (tmp_path / "further", tmp_path / "none", Path("/proc/1/root")))
    assert [path.resolve() for path in files_of(refs)] == [clone.path / ".git" / "refs" / "remotes" / "origin" / "main"]
