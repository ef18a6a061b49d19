"""The demo's fleet, and what people are told first; the whole of it runs in tests/e2e/test_demo.py."""

import subprocess
from pathlib import Path

import pytest

from services.cli import demo
from services.cli.demo import NAME, demo_fleet, ways_to_watch
from services.cli.demo_story import CHAPTERS
from shared.fleet import Fleet, load_fleet


def test_each_demo_has_a_tmux_server_of_its_own_and_clones_of_its_own_remote(tmp_path: Path) -> None:
    fleets: list[Fleet] = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        fleets.append(demo_fleet(tmp_path / name))
    sockets = {fleet.declared.tmux.socket for fleet in fleets}
    assert len(sockets) == 2
    assert all(socket.startswith("muster-demo-") for socket in sockets)
    for clone in ("builder", "reviewer", "shop"):
        asked = ["git", "-C", str(tmp_path / "one" / NAME / "work" / clone), "remote", "get-url", "origin"]
        assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip() == str(
            tmp_path / "one" / NAME / "remote.git"
        )


def test_every_agent_of_the_story_is_in_the_fleet(tmp_path: Path) -> None:
    fleet = demo_fleet(tmp_path)
    assert {chapter.agent for chapter in CHAPTERS if chapter.agent} <= set(fleet.agents)
    assert all(agent.role for agent in fleet.agents.values())


def test_without_git_only_the_loop_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    fleet = demo_fleet(tmp_path)
    assert fleet.declared.loops == {}
    assert all(fleet.resolve(agent.dir).is_dir() for agent in fleet.agents.values())
    assert "git is missing: builder and reviewer" in capsys.readouterr().err


@pytest.mark.parametrize("link", ["http://127.0.0.1:8080/#key", None])
def test_the_board_comes_first_if_there_is_one(
    link: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "connection", lambda _fleet, role: f"-u {role}")
    (tmp_path / "fleet.yaml").write_text("tmux: {socket: mine}\n")
    path = tmp_path / "fleet.yaml"
    lines = list(ways_to_watch(load_fleet(path), link))
    board = [
        "the board shows every agent, and lets you answer it. Open it in a browser; the link works once:",
        f"  {link}",
        f"  (another link: export MUSTER_FLEET={path}; muster board --act)",
    ]
    assert lines == [
        *(board if link else []),
        "broker and services are up; watch and steer them from another terminal:",
        "  mosquitto_sub -u viewer -t 'muster/#' -v",
        "  tmux -L mine attach -t tester",
        f"  export MUSTER_FLEET={path}; muster status --watch",
        "Ctrl-C ends the demo, and leaves nothing behind",
    ]
