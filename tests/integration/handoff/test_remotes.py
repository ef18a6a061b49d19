"""Remotes that are broken, hang, ask for passwords or come back; damaged mirrors; no other remote waits."""

import http.server
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from services.handoff.remotes import watcher
from services.handoff.remotes.git import MARK, Git, GitFailed
from services.handoff.remotes.mirror import ask_tips
from shared.contract.commands import PhaseShow, Poll
from shared.contract.events.loops import RemoteReachable, RemoteUnreachable, WorkClaimed
from tests.fixtures.repositories import Clone, bare
from tests.integration.handoff.station import Station

Make = Callable[..., Station]
ASK_TIMEOUT_S = 2.0
ROLES = {"roles": {"build": "builder"}, "patterns": {"claim": {"to": "build"}}}


@contextmanager
def silent_server() -> Iterator[str]:
    """Takes connections, and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as server:
        yield f"git://127.0.0.1:{server.getsockname()[1]}/x.git"


@contextmanager
def locked_server() -> Iterator[str]:
    """Wants a password for everything."""

    class Locked(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Locked) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/x.git"
        server.shutdown()
        thread.join()


def of_git(directory: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == str(directory):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def test_an_unreachable_remote_is_reported_once_and_again_when_it_answers(
    station: Make, clone: Clone, remote: Path
) -> None:
    world = station(patterns={"claim": {"to": "build"}})
    world.settled()
    remote.rename(remote.with_suffix(".away"))
    world.until(lambda: world.of(RemoteUnreachable), "that it is away")
    (event,) = world.of(RemoteUnreachable)
    assert (event.remote, "does not appear to be a git repository" in event.reason) == (str(remote), True)
    assert "does not answer" in world.turn().trouble
    assert "does not appear" in world.reply(PhaseShow()).result["loops"]["main"]["failure"]
    world.restarts()
    world.until(lambda: "does not answer" in world.trouble, "it is seen again")
    assert len(world.of(RemoteUnreachable)) == 1
    remote.with_suffix(".away").rename(remote)
    clone.commit("claim: meanwhile")
    clone.push()
    world.turn(Poll())
    world.until(lambda: world.of(WorkClaimed) and world.of(RemoteReachable), "it is there again")
    world.settled()
    assert world.kinds() == ["remote_unreachable", "remote_reachable", "claim"]


def test_broken_remotes_delay_no_other_remote(station: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "ASK_TIMEOUT_S", ASK_TIMEOUT_S)
    well = bare(tmp_path / "well.git")
    clone = Clone(well, tmp_path / "work")
    clone.commit("begin")
    clone.push()
    with silent_server() as silent:
        broken = {f"bad-{number}": {**ROLES, "remote": f"{silent}{number}"} for number in range(12)}
        world = station(loops={**broken, "well": {**ROLES, "remote": str(well)}})
        world.until(lambda: len(world.of(RemoteUnreachable)) >= 4, "some are known to be broken", 40.0)
        waits = []
        for number in range(5):
            clone.commit(f"claim: {number}")
            clone.push()
            pushed = time.monotonic()
            world.until(lambda count=number: len(world.of(WorkClaimed)) > count, "the commit")  # type: ignore[misc]
            waits.append(time.monotonic() - pushed)
        assert min(waits) < ASK_TIMEOUT_S, "it was asked while others hang"


def test_git_never_asks_for_a_password(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    helper = tmp_path / "askpass"
    helper.write_text(f"#!/bin/sh\ntouch {asked}\nsleep 60\n")
    helper.chmod(0o755)
    own = {**os.environ, "GIT_ASKPASS": str(helper), "SSH_ASKPASS": str(helper), "DISPLAY": ":7", "HOME": str(tmp_path)}
    (tmp_path / ".gitconfig").write_text(f"[core]\n\taskPass = {helper}\n")
    with (
        locked_server() as address,
        pytest.raises(GitFailed, match=r"could not read Username|terminal prompts disabled"),
    ):
        ask_tips(Git(tmp_path, own), address, ["main"])
    assert not asked.exists()


def test_credentials_come_from_gits_own_helper(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    (tmp_path / ".gitconfig").write_text(f'[credential]\n\thelper = "!f() {{ echo $1 >> {asked}; }}; f"\n')
    with locked_server() as address, pytest.raises(GitFailed):
        ask_tips(Git(tmp_path, {**os.environ, "HOME": str(tmp_path)}), address, ["main"])
    assert asked.read_text().startswith("get")


def test_a_git_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    with silent_server() as address, pytest.raises(GitFailed, match=r"it did not answer within 0\.5 s"):
        Git(tmp_path, os.environ)("ls-remote", "--", address, within_s=0.5)
    assert of_git(tmp_path) == []


def test_closing_ends_a_git_that_hangs_and_a_new_watcher_ends_leftovers(
    station: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    with silent_server() as address:
        world = station(loops={"main": {**ROLES, "remote": address}})
        mirrors = world.fleet_file.fleet.home / "mirrors"
        mirrors.mkdir()
        world.until(lambda: of_git(mirrors), "git hangs")
        with monkeypatch.context() as patch:
            patch.setattr(Git, "close", lambda _: None)  # it does not reach what runs, as after a kill
            world.watcher.close()
        left = {process.pid for process in of_git(mirrors)}
        assert left
        world.restarts()
        world.until(lambda: of_git(mirrors), "it is asked anew")
        assert left.isdisjoint(process.pid for process in of_git(mirrors))
        world.watcher.close()
        assert of_git(mirrors) == []


def test_a_damaged_mirror_is_made_anew_and_nothing_is_lost(station: Make, clone: Clone) -> None:
    world = station(patterns={"claim": {"to": "build"}})
    world.settled()
    clone.commit("claim: first")
    clone.push()
    world.until(lambda: len(world.of(WorkClaimed)) == 1, "the first")
    (found,) = (world.fleet_file.fleet.home / "mirrors").iterdir()
    for each in (found / "objects").iterdir():
        shutil.rmtree(each)
    clone.commit("claim: second")
    clone.push()
    world.until(lambda: len(world.of(WorkClaimed)) == 2, "the second", 40.0)
    shutil.rmtree(found)
    clone.commit("claim: third")
    clone.push()
    world.until(lambda: len(world.of(WorkClaimed)) == 3, "the third")


def test_loops_on_one_remote_share_a_mirror_and_remember_their_own_tips(
    station: Make, clone: Clone, remote: Path, tmp_path: Path
) -> None:
    loops = {name: {**ROLES, "remote": str(remote), "branch": branch} for name, branch in (("a", "main"), ("b", "dev"))}
    world = station(loops=loops)
    world.settled()
    clone.commit("claim: on main")
    clone.push()
    other = Clone(remote, tmp_path / "other", branch="dev")
    other.commit("claim: on dev", dev="x\n")
    other.push()
    world.until(lambda: len(world.of(WorkClaimed)) == 2, "both")
    assert {(each.loop, each.subject) for each in world.of(WorkClaimed)} == {
        ("a", "claim: on main"),
        ("b", "claim: on dev"),
    }
    assert len(list((world.fleet_file.fleet.home / "mirrors").iterdir())) == 1


def test_a_loop_that_is_enabled_again_reports_what_came_meanwhile(station: Make, clone: Clone, remote: Path) -> None:
    loop = {**ROLES, "remote": str(remote)}
    world = station(loops={"main": loop})
    world.settled()
    world.declare({"main": {**loop, "enabled": False}})
    world.turn()
    clone.commit("claim: meanwhile")
    clone.push()
    world.turn()
    assert world.reply(PhaseShow()).result["loops"]["main"]["enabled"] is False
    world.declare({"main": loop})
    world.until(lambda: world.of(WorkClaimed), "what came meanwhile")


def test_remotes_and_clones_are_never_changed(station: Make, clone: Clone, remote: Path) -> None:
    world = station(patterns={"claim": {"to": "build"}}, status_file="STATUS.md", inbox={"*.md": "build"})
    clone.commit("claim: x", STATUS_md="STATUS: OPEN\n")
    clone.push()
    before = {path: path.stat().st_mtime_ns for place in (remote, clone.path) for path in place.rglob("*")}
    world.settled()
    after = {path: path.stat().st_mtime_ns for place in (remote, clone.path) for path in place.rglob("*")}
    assert after == before
