"""Git that fails for a moment, fetches that are refused or hang, odd environments and files: nothing is lost."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.handoff.remotes import watcher
from services.handoff.remotes.git import Git, GitFailed
from services.handoff.remotes.mirror import Mirror, ask_tips
from services.handoff.remotes.push_hints import PushHints, WatchedRefs
from shared.contract.events.loops import BranchRewritten, RemoteUnreachable, WorkClaimed
from tests.fixtures.broker import wait_until
from tests.fixtures.repositories import ENV, Clone, bare
from tests.integration.handoff.station import PAIR, Station

Make = Callable[..., Station]
PATTERNS = {"claim": {"to": "review"}}


def test_a_passing_failure_of_git_is_not_a_rewritten_branch(
    station: Make, clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = station(patterns=PATTERNS)
    world.settled()
    real, failed = Git.__call__, list[str]()

    def odd(git: Git, *arguments: str, **more: Any) -> str:
        for command in {"cat-file", "merge-base"}.intersection(arguments) - {*failed}:
            failed.append(command)
            raise GitFailed("can't fork: resource temporarily unavailable")
        return real(git, *arguments, **more)

    monkeypatch.setattr(Git, "__call__", odd)
    clone.commit("claim: x")
    clone.push()
    world.until(lambda: world.of(WorkClaimed), "the claim", 40.0)
    assert (sorted(failed), world.of(BranchRewritten)) == (["cat-file", "merge-base"], [])


def test_a_fetch_that_the_remote_refuses_keeps_the_mirror(
    station: Make, clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = station(patterns=PATTERNS)
    world.settled()
    clone.commit("claim: one", one="x\n")
    clone.push()
    world.until(lambda: world.of(WorkClaimed), "the first")
    (mirror,) = (world.fleet_file.fleet.home / "mirrors").glob("*.git")
    real, tries = Mirror.fetch, list[str]()

    def refused(self: Mirror, *arguments: Any) -> None:
        tries.append(self.path.suffix)
        if len(tries) < 6:
            raise GitFailed("the remote end hung up unexpectedly", 128)
        real(self, *arguments)

    monkeypatch.setattr(Mirror, "fetch", refused)
    clone.commit("claim: two", two="x\n")
    clone.push()
    world.until(lambda: len(tries) >= 5, "it is tried again and again", 40.0)
    assert (mirror / "HEAD").is_file()
    (unreachable,) = world.of(RemoteUnreachable)
    assert unreachable.reason.startswith("it answers, but what is new could not be had: the remote end hung up")
    world.until(lambda: len(world.of(WorkClaimed)) == 2, "the second", 60.0)
    assert ".new" in tries, "a new mirror was tried beside it"


def test_fetches_that_hang_delay_no_other_remote(
    station: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "QUICK_FETCH_S", 0.5)
    clones = []
    for number in range(5):
        clones.append(Clone(bare(tmp_path / f"r{number}.git"), tmp_path / f"c{number}"))
        clones[-1].commit("begin")
        clones[-1].push()
    loops = {
        f"l{n}": {"remote": f"r{n}.git", "roles": {"build": "builder"}, "patterns": {"claim": {"to": "build"}}}
        for n in range(5)
    }
    world = station(loops=loops)
    world.settled()
    over, real = threading.Event(), Mirror.fetch

    def hangs(self: Mirror, branches: Any, size: int, within_s: float) -> None:
        if self.path.name.startswith("r4-"):
            real(self, branches, size, within_s)
        elif over.wait(within_s):
            raise GitFailed("ended")
        else:
            raise GitFailed(f"it did not answer within {within_s:g} s")

    monkeypatch.setattr(Mirror, "fetch", hangs)
    for clone in clones:
        clone.commit("claim: x")
        clone.push()
    world.until(lambda: world.of(WorkClaimed), "the one that does not hang")
    clones[4].commit("claim: y")
    clones[4].push()
    world.until(lambda: len(world.of(WorkClaimed)) == 2, "it again, while the others hang in their lane")
    over.set()


def test_a_remote_that_is_disabled_and_enabled_has_one_worker(
    station: Make, clone: Clone, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = {"remote": str(remote), "roles": {"build": "builder"}, "patterns": {"claim": {"to": "build"}}}
    world = station(loops={"main": loop})
    world.settled()
    go_on, at_work, real = threading.Event(), list[int](), Mirror.fetch

    def slow(self: Mirror, *arguments: Any) -> None:
        at_work.append(1)
        assert go_on.wait(20)
        real(self, *arguments)

    monkeypatch.setattr(Mirror, "fetch", slow)
    clone.commit("claim: x")
    clone.push()
    world.until(lambda: at_work, "a fetch")
    world.declare({"main": {**loop, "enabled": False}})
    world.turn()
    world.declare({"main": loop})
    for _ in range(20):
        world.turn()
        time.sleep(0.02)
    assert len(at_work) == 1
    go_on.set()
    world.until(lambda: world.of(WorkClaimed), "the claim")


@pytest.mark.parametrize(
    "odd",
    [{"GIT_DEFAULT_HASH": "sha256"}, {"GIT_LITERAL_PATHSPECS": "1"}, {"GIT_DIR": "/nowhere"}, {"GIT_INDEX_FILE": "x"}],
)
def test_gits_variables_in_our_environment_do_not_count(
    tmp_path: Path, clone: Clone, remote: Path, odd: dict[str, str]
) -> None:
    git = Git(tmp_path / "mirrors", {**ENV, **odd})
    clone.commit("status", STATUS_md="STATUS: OPEN\n")
    tips = ask_tips(git, str(remote), ["main"]) if clone.push() else {}
    mirror = Mirror(git, tmp_path / "mirrors", str(remote))
    mirror.fetch(["main"], len(tips["main"]))
    assert "STATUS.md" in mirror.differences(None, tips["main"], [":(top,glob)*.md"])


def test_a_long_status_file_is_read_at_both_ends(station: Make, clone: Clone) -> None:
    world = station(PAIR, status_file="STATUS.md", phases=[{"name": "one"}, {"name": "two"}])
    world.until(lambda: "phase_advanced" in world.kinds(), "the first phase")
    log = "".join(f"line {number}\n" for number in range(40_000))
    clone.commit("log", STATUS_md=f"{log}STATUS: DONE\n")
    clone.push()
    world.until(lambda: world.kinds().count("phase_advanced") == 2, "the second phase")


def test_an_odd_path_does_not_stop_hints_for_other_remotes(clone: Clone, remote: Path, tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / ".git").write_text("gitdir: a\0b")
    moved: list[str] = []
    hints = PushHints(moved.append, every_s=0.02)
    hints.watch(
        {
            "odd": WatchedRefs(("main",), (tmp_path / "odd",)),
            "long": WatchedRefs(("main",), (), Path("/x" * 300)),
            "good": WatchedRefs(("main",), (), remote),
        }
    )
    hints.begin()

    def pushed_and_noticed() -> bool:
        clone.commit("x")  # more than once, for nothing tells when it was first looked at
        clone.push()
        return "good" in moved

    wait_until(pushed_and_noticed, "the hint")
    hints.close()
