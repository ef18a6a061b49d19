"""Every verb by `mosquitto_pub` and by the CLI, on a running fleet: the reply, what became of it, and what was told."""

import json
import sys
from pathlib import Path

import pytest

from tests.fixtures.broker import wait_until
from tests.fixtures.by_hand import run_tmux, wait_for_program
from tests.fixtures.fleet import RunningFleet


@pytest.fixture
def fleet(renewed_fleet: RunningFleet) -> RunningFleet:
    return renewed_fleet


def heard(fleet: RunningFleet, text: str) -> bool:
    return f"> heard: {text}" in fleet.screen("builder")


def conversation(fleet: RunningFleet) -> str:
    found = fleet.records()["builder"].conversation
    assert found is not None
    return found


# --- sessions ---


def test_spawning_what_runs_says_so(fleet: RunningFleet) -> None:
    before = fleet.spawn_of("builder")
    reply = fleet.ask("spawn", agent="builder")
    assert (reply["ok"], reply["said"]) == (True, "builder runs already")
    assert "runs already" in fleet.cli("spawn", "builder").stdout
    assert fleet.spawn_of("builder") == before


def test_the_same_id_acts_once_and_is_answered_again(fleet: RunningFleet) -> None:
    first = fleet.ask("restart", agent="builder", id="once")
    spawn = fleet.spawn_of("builder")
    assert fleet.ask("restart", agent="builder", id="once")["result"] == first["result"]
    assert fleet.spawn_of("builder") == spawn


def test_an_agent_is_stopped_resumed_restarted_and_deleted(fleet: RunningFleet) -> None:
    watcher = fleet.watch()
    assert fleet.ask("send", agent="builder", text="begin")["ok"]
    begun = conversation(fleet)
    assert fleet.ask("stop", agent="builder")["said"] == "builder was stopped"
    assert fleet.ask("stop", agent="builder")["said"] == "builder was not running, and stays down"
    assert fleet.ask("resume", agent="builder")["said"] == "builder took up its conversation"
    assert f"taking up the conversation {begun}" in fleet.screen("builder")
    assert fleet.ask("resume", agent="builder")["said"].startswith("builder runs already")
    assert fleet.ask("restart", agent="builder")["said"] == "builder was restarted; it takes up its conversation"
    assert conversation(fleet) == begun
    assert fleet.ask("restart", agent="builder", fresh=True)["said"] == "builder was restarted"
    wait_until(lambda: conversation(fleet) != begun, "a new conversation")
    assert fleet.ask("delete", agent="builder")["said"] == "builder was deleted"
    wait_until(lambda: "builder" not in fleet.records(), "its record is gone")
    assert fleet.pane("builder") is None
    kept = fleet.fleet.home / "demo" / f"{begun}.jsonl"
    assert kept.exists(), "a conversation was removed, and nobody had said so"
    kinds = ["spawned", "sent", "stopped", "resumed", "restarted", "restarted", "deleted"]
    wait_until(lambda: watcher.kinds("agent/builder/lifecycle")[-6:] == kinds[1:], "everything told")


def test_the_same_by_the_cli(fleet: RunningFleet) -> None:
    fleet.cli("send", "builder", "begin")
    assert fleet.cli("stop", "builder").stdout == "builder was stopped\n"
    assert fleet.cli("resume", "builder").stdout == "builder took up its conversation\n"
    assert fleet.cli("restart", "builder").stdout == "builder was restarted; it takes up its conversation\n"
    assert fleet.cli("delete", "builder", "reviewer").stdout == "builder was deleted\nreviewer was deleted\n"
    assert json.loads(fleet.cli("spawn", "builder", "--json").stdout)["said"] == "builder was started"
    assert fleet.cli("spawn", code=1).stderr.endswith("needs the name of an agent, or --all\n")


def test_a_refused_resume_falls_back_and_says_so(fleet: RunningFleet) -> None:
    watcher = fleet.watch()
    fleet.ask("stop", agent="builder")
    reply = fleet.ask("resume", agent="builder", conversation="no-such-thing")
    assert (reply["ok"], reply["said"]) == (True, "builder refused to take up its conversation and began a new one")
    assert reply["result"]["fresh"] is True
    assert fleet.pane("builder") is not None
    told = [doc["data"] for doc in watcher.documents("agent/builder/lifecycle")]
    assert told[-1]["reason"] == "the agent refused to take up its conversation; it began a new one"
    (exited,) = [data for data in told if data["kind"] == "exited"]
    assert exited["last_words"] == "demo agent: there is no conversation no-such-thing"


def test_one_spawn_may_differ_from_the_file(fleet: RunningFleet) -> None:
    before = fleet.path.read_text()
    (fleet.path.parent / "elsewhere").mkdir()
    fleet.ask("stop", agent="builder")
    reply = fleet.ask("spawn", agent="builder", prompt="just this", model="small", dir="elsewhere")
    assert reply["ok"], reply
    assert wait_until(lambda: heard(fleet, "just this"), "its own prompt")
    assert "demo agent builder on small" in fleet.screen("builder")
    assert wait_until(lambda: fleet.records()["builder"].workspace.endswith("/elsewhere"), "its own directory")
    assert fleet.path.read_text() == before
    refused = fleet.ask("spawn", agent="reviewer", dir="/")
    assert refused["ok"]  # it runs: nothing is changed
    fleet.ask("stop", agent="reviewer")
    refused = fleet.ask("spawn", agent="reviewer", dir="/")
    assert refused["code"] == "refused"
    assert "is outside the allowed workspaces" in refused["said"]
    assert "there is none on the PATH" in fleet.ask("spawn", agent="reviewer", backend="aider")["said"]


def test_a_session_is_adopted_and_forgotten(fleet: RunningFleet) -> None:
    run_tmux(fleet.socket, "new-session", "-d", "-s", "by hand", "sleep 1000")
    wait_for_program(fleet.tmux, "sleep", session="by hand")
    refused = fleet.ask("adopt", agent="helper", session="by hand")
    assert "no backend runs the program 'sleep'" in refused["said"]
    assert "did you mean 'by hand'?" in fleet.ask("adopt", agent="helper", session="by hands")["said"]
    reply = fleet.ask("adopt", agent="helper", session="by hand", backend="demo")
    assert reply["ok"], reply
    record = fleet.wait_for_status("helper", "running")
    assert (record.session, record.backend) == ("by hand", "demo")
    assert "is the agent helper already" in fleet.ask("adopt", agent="other", session="by hand")["said"]
    assert fleet.cli("forget", "helper").stdout.endswith("goes on without Muster\n")
    wait_until(lambda: "helper" not in fleet.records(), "its record is gone")
    assert [pane.session for pane in fleet.tmux.look() if not pane.agent] == ["by hand"]
    assert fleet.cli("adopt", "helper", "by hand", "--backend", "demo").returncode == 0
    assert fleet.ask("stop", agent="helper")["said"] == "helper was stopped"


def test_one_pane_among_others_is_adopted_and_stopped(fleet: RunningFleet) -> None:
    run_tmux(fleet.socket, "new-session", "-d", "-s", "mine", "sleep 1000")
    run_tmux(fleet.socket, "split-window", "-t", "=mine:", "cat")
    (first, beside) = [pane for pane in fleet.tmux.look() if pane.session == "mine"]
    reply = fleet.ask("adopt", agent="helper", session="mine", pane=beside.pane_id, backend="demo", found=True)
    assert reply["said"] == f"helper is the pane {beside.pane_id} of the session 'mine' from now on", reply
    record = fleet.wait_for_status("helper", "running")
    assert (record.session, record.pane) == ("mine", beside.pane_id)
    stopped = fleet.ask("stop_all")
    assert stopped["said"].endswith("; helper, which was only found, was left alone: name it to stop it")
    assert {pane.pane_id for pane in fleet.tmux.look()} == {first.pane_id, beside.pane_id}
    assert fleet.cli("stop", "helper").stdout == "helper was stopped\n"
    assert [pane.pane_id for pane in fleet.tmux.look()] == [first.pane_id]


# --- typing ---


TEXTS = (
    "plain words",
    "two\nlines\n\n  and an indented one",
    "quotes ' \" ` and $(touch pwned) ${HOME} \\n \\x1b[31m #{pid} %d ;",
    "-- leading dashes",
    "漢字 🦀 é ✳ עברית",
    "x" * 10_000,
    "\n".join(f"line {number}: $(date) 'and' \"so\" on" for number in range(300)),
)


def test_texts_arrive_whole_and_once(fleet: RunningFleet) -> None:
    for text in TEXTS:
        reply = fleet.ask("send", agent="builder", text=text)
        assert reply["ok"], reply
    path = fleet.fleet.home / "demo" / f"{conversation(fleet)}.jsonl"
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    assert [entry["text"] for entry in entries if entry["who"] == "user"] == ["build", *TEXTS]
    assert list(fleet.path.parent.glob("pwned")) == []


def test_a_text_that_no_terminal_carries_is_laid_into_the_workspace(fleet: RunningFleet) -> None:
    text = "an escape \x1b[31m and its end \x1b[201~ and\x07 a bell\r\n"
    assert fleet.ask("send", agent="builder", text=text)["ok"]
    (path,) = (fleet.path.parent / ".muster-messages").glob("*.txt")
    assert path.read_bytes() == text.strip().encode()
    assert wait_until(lambda: heard(fleet, f"Read the file .muster-messages/{path.name[:10]}"), "the way to it")


def test_a_text_waits_for_a_dialog_and_says_why(fleet: RunningFleet) -> None:
    fleet.ask("send", agent="builder", text="ask about it")
    wait_until(lambda: "Do you allow this?" in fleet.screen("builder"), "a dialog")
    waits = fleet.ask("send", agent="builder", text="and then this", id="later", final=False)
    assert (waits["code"], waits["ok"]) == ("waiting", False)
    assert waits["said"] == "the text waits: a permission dialog is on the screen: answer it first"
    hasty = fleet.ask("send", agent="builder", text="now or never", wait_s=0)
    assert hasty["final"]
    assert fleet.ask("approve", agent="builder")["said"] == "builder was told yes"
    assert fleet.ask("send", agent="builder", text="and then this", id="later")["ok"]
    assert wait_until(lambda: heard(fleet, "and then this"), "the text")
    assert "* allowed" in fleet.screen("builder")
    assert fleet.screen("builder").count("> heard: and then this") == 1
    assert "there is no dialog" in fleet.ask("approve", agent="builder")["said"]


def test_dialogs_are_refused_and_allowed_by_the_cli(fleet: RunningFleet) -> None:
    fleet.cli("send", "builder", "ask about it")
    wait_until(lambda: "Do you allow this?" in fleet.screen("builder"), "a dialog")
    under_way = fleet.cli("send", "builder", "later", "--wait", "3", code=75)
    assert "a permission dialog is on the screen" in under_way.stderr
    assert fleet.cli("deny", "builder").stdout == "builder was told no\n"
    assert wait_until(lambda: heard(fleet, "later"), "the text")
    assert "* refused" in fleet.screen("builder")
    fleet.cli("send", "builder", "ask again")
    wait_until(lambda: "Do you allow this?" in fleet.screen("builder"), "another dialog")
    assert fleet.cli("approve", "builder").stdout == "builder was told yes\n"
    assert "* allowed" in fleet.screen("builder")


def test_what_an_input_box_still_holds_is_cleared_first(fleet: RunningFleet) -> None:
    fleet.ask("send", agent="builder", keys=["l", "e", "f", "t"])
    wait_until(lambda: "› left" in fleet.screen("builder"), "something in the box")
    assert fleet.ask("send", agent="builder", text="right")["ok"]
    assert wait_until(lambda: heard(fleet, "right"), "the text alone")


def test_work_is_interrupted(fleet: RunningFleet) -> None:
    fleet.ask("send", agent="builder", text="work 60")
    waits = fleet.ask("send", agent="builder", text="when you are done", when="idle", final=False)
    assert waits["said"] == "the text waits: the agent is working"
    assert fleet.ask("interrupt", agent="builder")["said"] == "builder was interrupted"
    assert wait_until(lambda: heard(fleet, "when you are done"), "the text that waited for it")
    assert "nothing to interrupt" in fleet.cli("interrupt", "builder", code=1).stdout
    fleet.cli("send", "builder", "work 60")
    assert fleet.cli("interrupt", "builder").stdout == "builder was interrupted\n"


REFUSED = (
    ({"agent": "builder"}, "it needs either `text` or `keys`"),
    ({"agent": "builder", "text": "a", "keys": ["b"]}, "it needs either `text` or `keys`"),
    ({"agent": "builder", "text": " \n"}, "the text is blank"),
    ({"agent": "builder", "keys": ["Entr"]}, "'Entr' is not the name of a key"),
    ({"agent": "bilder", "text": "a"}, "there is no agent 'bilder'"),
    ({"agent": "web", "text": "a"}, "is a side service: nobody types into it"),
    ({"agent": "builder", "text": "exit"}, "would take this text as an order to itself"),
)


def test_what_can_not_be_typed_is_refused(tmp_path: Path) -> None:
    web = {"argv": [sys.executable, "-c", "import time; time.sleep(1000)"]}
    fleet = RunningFleet(tmp_path, {"builder": {}}, services={"web": web})
    try:
        fleet.up()
        fleet.wait_for_status("web", "running")
        fleet.wait_for_status("builder", "running")
        for arguments, said in REFUSED:
            assert said in fleet.ask("send", **arguments)["said"]
    finally:
        fleet.end()


# --- many ---


@pytest.mark.long
def test_fifty_agents_are_started_with_one_command(tmp_path: Path) -> None:
    names = {f"agent-{number}" for number in range(50)}
    sleeper = {"sleeper": {"binary": "sleep", "argv": ["{binary}", "100000"], "deliver": "arg"}}
    agents = {name: {"backend": "sleeper"} for name in names}
    fleet = RunningFleet(tmp_path, agents, backends=sleeper, start={"at_once": 8, "gap_s": 0.05})
    try:
        fleet.up()
        wait_until(lambda: {pane.agent for pane in fleet.tmux.look()} == names, "fifty sessions", 60)
        wait_until(lambda: [r.status for r in fleet.records().values()] == ["running"] * 50, "fifty records", 60)
    finally:
        fleet.end()


def test_all_are_stopped_and_started_with_one_command(fleet: RunningFleet) -> None:
    assert fleet.ask("stop_all")["ok"]
    assert not fleet.tmux.look()
    assert fleet.cli("spawn", "--all").stdout == "2 are being started\n"
    wait_until(lambda: {pane.agent for pane in fleet.tmux.look()} == {"builder", "reviewer"}, "both")
    assert fleet.cli("stop", "--all").stdout.endswith(": stopped\n")
