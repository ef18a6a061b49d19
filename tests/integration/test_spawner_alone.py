"""What one agent, one command or one odd file may not do: spoil it for the others, or act twice."""

import json
import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from shared.contract.ids import new_id
from shared.messaging.journal import Request
from tests.fixtures.broker import wait_until
from tests.fixtures.by_hand import run_tmux, wait_for_program
from tests.fixtures.lives import Lives

Make = Callable[..., Lives]
BUSY = {"busy": {"binary": "sh", "argv": ["{binary}", "-c", "while :; do :; done"], "deliver": "arg"}}
"""It never gives its place in the line of starts back."""
SLEEPER = {"sleeper": {"binary": "sleep", "argv": ["{binary}", "1000"], "deliver": "arg"}}


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Lives] = []

    def make(agents: dict[str, Any], **settings: Any) -> Lives:
        made.append(Lives(tmp_path, agents, **settings))
        return made[-1]

    yield make
    for lives in made:
        lives.end()


def running(lives: Lives) -> set[str]:
    return {pane.agent or "" for pane in lives.sessions() if not pane.dead}


def edit(lives: Lives, **changes: Any) -> None:
    path = lives.fleet.path
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


# --- the others ---


def test_a_prompt_file_that_is_a_pipe_holds_up_nobody(make: Make, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    lives = make({"odd": {"prompt_file": "pipe"}, "other": {}})
    with lives.life("services.spawner"):
        wait_until(lambda: running(lives) == {"other"}, "the other one")


def test_a_prompt_that_can_not_be_written_holds_up_nobody(make: Make) -> None:
    runs_files = {"files": {"binary": "cat", "argv": ["{binary}", "{prompt_file}"], "deliver": "exec"}}
    lives = make({"odd": {"backend": "files", "prompt": "x"}, "other": {}}, backends=runs_files)
    (lives.fleet.home / "prompts").write_text("in the way")
    with lives.life("services.spawner"):
        wait_until(lambda: running(lives) == {"other"}, "the other one")


def test_a_directory_whose_name_is_no_text_holds_up_nobody(make: Make, tmp_path: Path) -> None:
    (tmp_path / "w\udcff").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "w\udcff")
    lives = make({"odd": {"dir": "link"}, "other": {}})
    with lives.life("services.spawner"):
        wait_until(lambda: running(lives) == {"other"}, "the other one")


def test_a_stamp_that_somebody_changed_holds_up_nobody(make: Make) -> None:
    lives = make({"odd": {}, "other": {}})
    with lives.life("services.spawner"):
        wait_until(lambda: running(lives) == {"odd", "other"}, "both")
        lives.tmux.ask(("set-option", "-t", "=odd:", "@muster_spawn", "Not An Id"))
        (other,) = [pane for pane in lives.sessions() if pane.agent == "other"]
        lives.tmux.kill(other.session_id)
        again = lambda: any(p.agent == "other" and p.spawn != other.spawn for p in lives.sessions())  # noqa: E731
        wait_until(again, "the other one again")


def test_an_agent_that_is_taken_out_of_the_file_with_its_prompt_still_to_come(make: Make) -> None:
    waits = {
        "waits": {
            "binary": "sleep",
            "argv": ["{binary}", "1000"],
            "deliver": "paste",
            "screen": {"box": "(?P<text>never)"},
        }
    }
    lives = make({"odd": {"backend": "waits", "prompt": "x"}, "other": {}}, backends=waits)
    with lives.life("services.spawner"):
        wait_until(lambda: running(lives) == {"odd", "other"}, "both")
        edit(lives, agents={"other": {}})
        lives.settle()
        lives.settle()
        assert lives.answer(lives.ask("stop", agent="odd"))["said"] == "odd was stopped"


# --- in order, and once ---


def test_a_stop_overtakes_a_resume_that_waits(make: Make) -> None:
    never_ready = {"slow": {"like": "demo", "screen": {"box": "(?P<text>never)"}, "ready_within_s": 300}}
    lives = make({"builder": {"backend": "slow", "enabled": False}}, backends=never_ready)
    with lives.life("services.spawner"):
        lives.answer(lives.ask("spawn"))
        lives.answer(lives.ask("stop"))
        resumed = lives.ask("resume", conversation=_conversation_of(lives))
        wait_until(lambda: lives.journal.requests.waits_for(resumed, "spawner"), "it waits")
        stopped = lives.ask("stop")
        assert lives.answer(stopped)["said"] == "builder was stopped"
        assert "does not show yet" in lives.answer(resumed)["said"]
        assert running(lives) == set()


def _conversation_of(lives: Lives) -> str:
    (spawned,) = [data for data in lives.told() if data["kind"] == "spawned"]
    path = lives.fleet.home / "demo" / f"{spawned['conversation']}.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.touch()
    return str(spawned["conversation"])


@pytest.mark.parametrize("verb", ["stop", "stop_all"])
def test_a_stop_overtakes_starts_that_wait_for_their_turn(make: Make, verb: str) -> None:
    names = [f"agent-{number}" for number in range(4)]
    agents = {name: {"enabled": False, "backend": "busy"} for name in names}
    lives = make(agents, backends=BUSY, start={"at_once": 1, "gap_s": 100})
    with lives.life("services.spawner"):
        asked = [lives.ask("spawn", agent=name) for name in names]
        lives.answer(asked[0])
        wait_until(lambda: lives.journal.requests.waits_for(asked[3], "spawner"), "they wait")
        if verb == "stop":
            assert lives.answer(lives.ask("stop", agent=names[3]))["ok"]
            assert "something else was asked" in lives.answer(asked[3])["said"]
        else:
            assert lives.answer(lives.ask_all("stop_all"))["ok"]
            assert ["something else was asked" in lives.answer(each)["said"] for each in asked[1:]] == [True] * 3
            assert running(lives) == set()


@pytest.mark.parametrize("point", range(1, 14, 2))
def test_a_task_is_run_once(make: Make, tmp_path: Path, point: int) -> None:
    notes = {"notes": {"binary": "sh", "argv": ["{binary}", "-c", "echo run >> ran"], "deliver": "arg"}}
    lives = make({"builder": {"kind": "task", "backend": "notes", "enabled": False}}, backends=notes)
    reply = lives.carried_out_over_a_death(point, "spawn")
    assert reply["ok"], reply
    with lives.life("services.spawner"):
        wait_until(lambda: [data["kind"] for data in lives.told()] == ["spawned", "exited"], "its whole life")
    assert (tmp_path / "ran").read_text() == "run\n"


@pytest.mark.parametrize("point", range(2, 14, 2))
def test_a_session_is_adopted_once(make: Make, point: int) -> None:
    lives = make({}, backends=SLEEPER)
    run_tmux(lives.socket, "new-session", "-d", "-s", "theirs", "sleep 1000")
    wait_for_program(lives.tmux, "sleep", session="theirs")
    lives.tmux.close()
    reply = lives.carried_out_over_a_death(point, "adopt", session="theirs")
    assert reply["ok"], reply
    (session,) = lives.sessions()
    assert (session.session, session.agent) == ("theirs", "builder")
    assert [data["kind"] for data in lives.told()] == ["adopted"]


def test_what_one_spawn_was_to_be_ends_with_a_stop(make: Make) -> None:
    lives = make({"builder": {"prompt": "build"}})
    with lives.life("services.spawner"):
        wait_until(lambda: running(lives) == {"builder"}, "it runs")
        lives.answer(lives.ask("stop"))
        assert lives.answer(lives.ask("spawn", model="small"))["ok"]
        lives.answer(lives.ask("stop"))
        assert lives.answer(lives.ask_all("spawn_all"))["said"] == "1 are being started"
        wait_until(lambda: running(lives) == {"builder"}, "it runs again")
        screen = wait_until(lambda: _screen(lives), "its screen")
        assert "on small" not in screen


def _screen(lives: Lives) -> str:
    (pane,) = lives.sessions()
    screen = lives.tmux.screens([pane.pane_id]).get(pane.pane_id, "")
    return screen if "demo agent" in screen else ""


def test_a_crash_loop_is_given_up_once(make: Make) -> None:
    dies = {"dies": {"binary": "false", "deliver": "arg"}}
    restart = {"first_wait_s": 0, "longest_wait_s": 0, "burst": 2}
    lives = make({"builder": {"backend": "dies", "restart": restart}}, backends=dies)
    with lives.life("services.spawner"):
        wait_until(lambda: "gave_up" in [data["kind"] for data in lives.told()], "given up")
        lives.settle()
        lives.settle()
    kinds = [data["kind"] for data in lives.told()]
    assert kinds.count("gave_up") == 1
    assert kinds.count("restarted") == 2
    assert lives.remembered().gave_up


# --- what is seen ---


def test_an_agent_sees_what_is_allowed_from_the_first_one_on(make: Make) -> None:
    """The first one is started with the tmux server, which has all that we have."""
    sees = {"allow": ["PATH", "HOME", "SEEN_*"]}
    lives = make({"first": {"backend": "sleeper"}}, backends=SLEEPER, environment=sees)
    with lives.life("services.spawner", HIDDEN_CANARY="hidden", SEEN_CANARY="shown"):
        wait_until(lambda: running(lives) == {"first"}, "the first one")
        edit(lives, agents={name: {"backend": "sleeper"} for name in ("first", "second")})
        wait_until(lambda: running(lives) == {"first", "second"}, "the second one")
        for pane in lives.sessions():
            env = wait_until(lambda pid=pane.pid: _environment_of(pid), "its program")  # type: ignore[misc]
            assert "HIDDEN_CANARY" not in env
            assert env["SEEN_CANARY"] == "shown"


def _environment_of(pid: int) -> dict[str, str] | None:
    process = psutil.Process(pid)
    return process.environ() if process.name() == "sleep" else None


# --- what is typed where ---


def test_a_text_goes_by_what_runs_and_not_by_what_is_declared_since(make: Make) -> None:
    blind = {"blind": {"binary": "sleep", "argv": ["{binary}", "1000"], "deliver": "arg"}}
    lives = make({"builder": {}}, backends=blind)
    with lives.life("services.spawner"):
        wait_until(lambda: running(lives) == {"builder"}, "it runs")
        assert lives.answer(lives.ask("send", text="ask first"))["ok"]
        edit(lives, agents={"builder": {"backend": "blind"}})
        waits = lives.ask("send", text="1")
        wait_until(lambda: lives.journal.requests.waits_for(waits, "spawner"), "it waits for the dialog")
        assert "* allowed" not in _screen(lives)


def test_how_to_speak_to_what_is_not_described_any_more_is_not_guessed(make: Make) -> None:
    lives = make({"builder": {"backend": "gone"}}, backends={"gone": {"like": "demo"}})
    with lives.life("services.spawner"):
        wait_until(lambda: running(lives) == {"builder"}, "it runs")
        edit(lives, agents={"builder": {}}, backends={})
        wait_until(lambda: "no longer has" in lives.answer(lives.ask("send", text="hello"))["said"], "a refusal")


def test_a_shell_that_a_person_opened_beside_an_agent_is_not_typed_into(make: Make) -> None:
    lives = make({"builder": {"backend": "sleeper"}}, backends=SLEEPER)
    with lives.life("services.spawner"):
        wait_until(lambda: running(lives) == {"builder"}, "it runs")
        (agent,) = lives.sessions()
        lives.tmux.ask(("split-window", "-t", agent.pane_id, "cat"), ("kill-pane", "-t", agent.pane_id))
        again = wait_until(lambda: [p for p in lives.sessions() if p.spawn != agent.spawn], "a session of its own")
        (theirs,) = [pane for pane in lives.tmux.look() if not pane.agent]
        assert theirs.session == f"builder-left-{(agent.spawn or '')[:6]}"
        assert lives.answer(lives.ask("send", text="touch pwned"))["ok"]
        assert "pwned" not in lives.tmux.screens([theirs.pane_id])[theirs.pane_id]
        assert again[0].session == "builder"


# --- accounts that are parked, and sessions that are ended as if they had died ---


def _park(lives: Lives, seconds: float) -> None:
    request_id, now = new_id(), time.time()
    until = datetime.fromtimestamp(now + seconds, UTC).isoformat()
    payload = json.dumps({"id": request_id, "account": "acme", "until": until}).encode()
    request = Request(request_id, "park", payload, f"muster/box/reply/{request_id}", now, now + 60)
    lives.journal.requests.accept([request], "spawner")
    assert lives.answer(request_id)["ok"]


def test_who_waits_for_an_account_holds_up_nothing_else_and_may_insist(make: Make) -> None:
    lives = make({"builder": {"account": "acme"}, "late": {"account": "acme", "enabled": False}})
    with lives.life("services.spawner"):
        wait_until(lambda: running(lives) == {"builder"}, "it runs")
        _park(lives, 3_600)
        waits = lives.ask("spawn", agent="late")
        wait_until(lambda: lives.journal.requests.waits_for(waits, "spawner"), "it waits")
        refused = lives.answer(lives.ask("restart"))
        assert (refused["ok"], "to restart it now, say --anyway" in refused["said"]) == (False, True)
        assert lives.answer(lives.ask("send", text="hello"))["ok"], "a text is typed all the same"
        assert lives.answer(lives.ask("restart", anyway=True))["ok"]
        assert lives.answer(lives.ask("stop", agent="late"))["ok"]
        assert "something else was asked of it meanwhile" in lives.answer(waits)["said"]
        assert running(lives) == {"builder"}


def test_a_session_is_ended_as_if_it_had_died_only_where_it_is_started_again(make: Make) -> None:
    lives = make({"builder": {"restart": {"first_wait_s": 0}}, "once": {"kind": "task"}})
    with lives.life("services.spawner"):
        wait_until(lambda: running(lives) == {"builder", "once"}, "both")
        (pane,) = [each for each in lives.sessions() if each.agent == "builder"]
        other = lives.answer(lives.ask("restart", counts=True, spawn="another"))
        assert (other["ok"], "has another session since" in other["said"]) == (False, True)
        assert "not started again by itself" in lives.answer(lives.ask("restart", agent="once", counts=True))["said"]
        assert lives.answer(lives.ask("restart", counts=True, spawn=pane.spawn))["ok"]
        again = lambda: any(p.agent == "builder" and p.spawn != pane.spawn for p in lives.sessions())  # noqa: E731
        wait_until(again, "it is started again")
        (restarted,) = [each for each in lives.told() if each["kind"] == "restarted"]
        assert (restarted["attempt"], restarted["replaces"]) == (1, pane.spawn)
        assert lives.answer(lives.ask("stop", for_now=True))["ok"]
        late = lives.answer(lives.ask("restart", counts=True))
        assert (late["ok"], late["said"]) == (False, "builder has ended already")
        lives.settle()
        assert running(lives) == {"once"}, "who is to rest is not started"
