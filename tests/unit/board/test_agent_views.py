"""What the page shows of one agent when it is asked: bounded, and a sentence where there is nothing."""

import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest

from registry import AgentRecord
from services.board import agent_views, page_commands
from services.board.agent_views import MOST_ENTRIES, TRANSCRIPT_CHARACTERS, TRANSCRIPT_ENTRIES, AgentViews
from shared.agents.transcript import READERS
from shared.contract.commands import Explain
from shared.contract.envelope import Event
from shared.contract.events.activity import AgentStalled, StatusChanged
from shared.contract.events.board import CardCommented
from shared.contract.events.drift import SessionMissing
from shared.contract.events.lifecycle import AgentGaveUp
from shared.contract.events.loops import KickoffFailed, RemoteReachable
from shared.contract.states import Activity, Status
from tests.fakes.records import START, make_record
from tests.unit.board.samples import AGENTS, doing
from tests.unit.board.test_page_commands import eventually
from tests.unit.board.world import BoardWorld

RUNS = doing(Activity.WORKING, session="builder", conversation="c1")


class Asked:
    """The views of a world, with the records that a test gives."""

    def __init__(self, world: BoardWorld) -> None:
        self.world = world
        self.records: dict[str, AgentRecord] = {}
        self.views = AgentViews(
            lambda: world.written.opened().fleet, lambda: self.records, world.commands, world.feed.comments_of
        )

    def about(self, what: str, agent: str = "builder") -> dict[str, Any]:
        found = self.views.about(agent, what)
        assert found is not None
        json.dumps(found)
        return found


@pytest.fixture
def asked(world: BoardWorld) -> Asked:
    return Asked(world)


def test_who_or_what_is_not_known(asked: Asked) -> None:
    assert asked.views.about("nobody", "record") is None
    assert asked.views.about("builder", "secrets") is None
    asked.records["stranger"] = RUNS
    assert asked.views.about("stranger", "record") is not None


# --- comments ---


def test_the_comments_on_its_card(asked: Asked) -> None:
    assert asked.about("comments") == {"comments": []}
    asked.world.turn(events=[SessionMissing(agent="builder", spawn="s1", session="builder")])
    asked.world.says("hello")
    asked.world.says("stop")
    first, second, third = asked.about("comments")["comments"]
    assert (first["card"], first["number"], first["kind"], first["by"]) == ("builder", 1, "observed", "muster")
    assert (first["about"], first["recorded"]) == ("drift.missing", "running in session builder")
    assert (first["tone"], first["urgency"], first["times"]) == ("bad", "news", 1)
    assert first["time"] == START.isoformat()
    assert (second["kind"], second["by"], second["text"]) == ("said", "ada", "hello")
    assert third["kind"] == "stopped"
    assert asked.about("comments", "reviewer") == {"comments": []}


def test_comments_that_a_page_has_heard_of_are_waited_for(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    drift = SessionMissing(agent="builder", spawn="s1", session="builder")
    asked.world.turn()
    turn = asked.world.turn(events=[drift], commits=False)
    assert asked.world.feed.comments_of("builder") == 1
    monkeypatch.setattr(time, "sleep", lambda _: asked.world.turns.commit(turn))
    assert len(asked.about("comments")["comments"]) == 1


# --- timeline ---


def emit(world: BoardWorld, service: str, event: Event, at: float) -> None:
    world.peers[service].emit(event, time=START + timedelta(seconds=at))


def changed(agent: str = "builder") -> StatusChanged:
    return StatusChanged(
        agent=agent, spawn="s1", status=Activity.WAITING, since=START, reason="its turn ended", decided_by="hooks"
    )


def test_the_timeline_is_newest_first_from_all_services(asked: Asked) -> None:
    world = asked.world
    emit(world, "spawner", AgentGaveUp(agent="builder", reason="it died"), 1)
    emit(world, "monitor", changed(), 3)
    emit(world, "monitor", changed("reviewer"), 4)
    emit(world, "reconciler", SessionMissing(agent="builder", spawn="s1", session="builder"), 2)
    emit(world, "handoff", RemoteReachable(loop="main", remote="x.git", away_s=3), 5)
    world.turns.now = START + timedelta(seconds=10)
    world.says("hello")
    entries = asked.about("timeline")["entries"]
    assert [entry["family"] for entry in entries] == ["comment", "loop", "activity", "drift", "lifecycle"]
    assert [entry["kind"] for entry in entries] == ["said", "remote_reachable", "waiting", "missing", "gave_up"]
    assert [entry["tone"] for entry in entries] == ["neutral", "good", "neutral", "bad", "bad"]
    assert entries[0]["text"] == "ada: hello"
    assert entries[2]["time"] == (START + timedelta(seconds=3)).isoformat()


def test_the_timeline_is_bounded(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    stalled = AgentStalled(agent="builder", spawn="s1", idle_s=1, then="tell", reason="idle")
    asked.world.peers["monitor"].emit(*[stalled] * (MOST_ENTRIES + 5), time=START)
    assert len(asked.about("timeline")["entries"]) == MOST_ENTRIES
    monkeypatch.setattr(agent_views, "SCANNED_PER_SERVICE", 7)
    assert len(asked.about("timeline")["entries"]) == 7


def test_what_can_not_be_read_is_left_out(asked: Asked) -> None:
    def write(payload: bytes) -> Callable[[int], tuple[str, bytes]]:
        return lambda _: ("muster/box/agent/builder/drift", payload)

    with asked.world.peers["reconciler"].journal.transaction() as transaction:
        transaction.append([write(b"nonsense"), write(b'{"data": {"kind": "of tomorrow"}}')], 1.0)
    emit(asked.world, "spawner", AgentGaveUp(agent="builder", reason="it died"), 1)
    assert [entry["kind"] for entry in asked.about("timeline")["entries"]] == ["gave_up"]


def test_a_comment_has_the_tone_of_what_it_is_about(asked: Asked) -> None:
    told = {"loop": "main", "role": "build", "agent": "mover", "phase": "design", "number": 1, "reason": "it is gone"}
    asked.world.turn(events=[KickoffFailed.model_validate(told)])
    (comment,) = [entry for entry in asked.about("timeline", "mover")["entries"] if entry["family"] == "comment"]
    assert comment["tone"] == "bad"
    assert CardCommented.tone.value == "neutral"


def test_a_comment_on_what_is_in_the_timeline_is_not_told_again(asked: Asked) -> None:
    asked.world.turn(events=[SessionMissing(agent="builder", spawn="s1", session="builder")])
    assert len(asked.about("comments")["comments"]) == 1
    assert [entry for entry in asked.about("timeline")["entries"] if entry["family"] == "comment"] == []


# --- evidence ---


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("ok", {"said": "", "found": {"status": "working"}}),
        ("refused", {"said": "it does not run", "found": None}),
    ],
)
def test_the_evidence_is_what_the_monitor_answers(asked: Asked, code: str, shown: dict[str, Any]) -> None:
    world, found = asked.world, []
    world.turns.now = world.now.now(START.tzinfo)
    asking = threading.Thread(target=lambda: found.append(asked.about("evidence")))
    asking.start()
    eventually(lambda: world.nudges, "it is asked for")
    (command,) = world.turn().outgoing
    assert isinstance(command, Explain)
    said = "" if code == "ok" else "it does not run"
    world.peers["monitor"].answer(command, code, said, time=world.now, **({"status": "working"} if not said else {}))
    asking.join(10)
    assert found == [shown]


def test_without_a_monitor_there_is_a_sentence(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_views, "EXPLAINED_WITHIN_S", 0.05)
    monkeypatch.setattr(page_commands, "COMMAND_EXPIRES_AFTER_S", 0.0)
    monkeypatch.setattr(page_commands, "LATE_S", 0.0)
    shown = asked.about("evidence")
    assert shown["found"] is None
    assert "the monitor gives no answer" in shown["said"]


# --- transcript ---


@pytest.fixture
def transcript(world: BoardWorld, tmp_path: Path) -> Path:
    """Where the conversation c1 of the builder is kept."""
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}
    world.declare({**AGENTS, "builder": {"backend": "claude", "env": env}})
    folder = tmp_path / "claude" / "projects" / "-work"
    folder.mkdir(parents=True)
    return folder / "c1.jsonl"


def line(text: str, kind: str = "user") -> str:
    message = {"role": kind, "content": text if kind == "user" else [{"type": "text", "text": text}]}
    return json.dumps({"type": kind, "timestamp": "2030-01-01T00:00:00Z", "message": message}) + "\n"


def test_the_end_of_its_conversation(asked: Asked, transcript: Path) -> None:
    transcript.write_text(line("do it") + line("it is done", "assistant"))
    asked.records["builder"] = RUNS
    shown = asked.about("transcript")
    assert (shown["said"], shown["conversation"], shown["path"]) == ("", "c1", str(transcript))
    assert [(entry["who"], entry["text"]) for entry in shown["entries"]] == [("user", "do it"), ("agent", "it is done")]
    assert shown["entries"][0]["time"] == START.isoformat()
    assert (shown["entries"][0]["tool"], shown["entries"][0]["failed"]) == ("", False)


def test_a_transcript_is_bounded(asked: Asked, transcript: Path) -> None:
    asked.records["builder"] = RUNS
    transcript.write_text("".join(line(f"{place}") for place in range(TRANSCRIPT_ENTRIES + 9)) + line("x" * 5000))
    entries = asked.about("transcript")["entries"]
    assert len(entries) == TRANSCRIPT_ENTRIES
    assert entries[-2]["text"] == str(TRANSCRIPT_ENTRIES + 8)
    assert entries[-1]["text"] == "x" * TRANSCRIPT_CHARACTERS + "… (1000 more characters)"


def test_a_huge_transcript_is_not_read(asked: Asked, transcript: Path) -> None:
    asked.records["builder"] = RUNS
    transcript.write_text(line("do it"))
    os.truncate(transcript, 5 << 30)
    shown = asked.about("transcript")
    assert shown["entries"] == []
    assert shown["said"] == (
        "its transcript has 5120 MB, too much for this page; run: muster transcript builder --last 5"
    )


def test_a_pipe_in_its_place_is_not_read(asked: Asked, transcript: Path) -> None:
    asked.records["builder"] = RUNS
    os.mkfifo(transcript)
    found: list[dict[str, Any]] = []
    reading = threading.Thread(target=lambda: found.append(asked.about("transcript")), daemon=True)
    reading.start()
    reading.join(5)
    assert [(shown["entries"], shown["said"]) for shown in found] == [([], f"{transcript} is no file")]


def test_a_transcript_that_goes_away_is_no_fault(
    asked: Asked, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked.records["builder"] = RUNS
    transcript.write_text(line("do it"))

    def gone(*_: object) -> NoReturn:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(agent_views, "READERS", {"claude": replace(READERS["claude"], entries=gone)})
    assert "can't be read: No such file or directory" in asked.about("transcript")["said"]


@pytest.mark.parametrize(
    ("agent", "record", "said"),
    [
        ("builder", RUNS, "claude has no conversation in /work for builder"),
        ("builder", None, "claude has no conversation in"),
        ("mover", None, "demo has no conversation in"),
        ("stranger", RUNS.model_copy(update={"backend": "gone"}), "stranger runs gone, which the fleet file does not"),
        ("builder", RUNS.model_copy(update={"backend": "gone"}), "no conversation in /work for builder"),
    ],
)
@pytest.mark.usefixtures("transcript")
def test_without_a_transcript_there_is_a_sentence(
    asked: Asked, agent: str, record: AgentRecord | None, said: str
) -> None:
    if record is not None:
        asked.records[agent] = record
    shown = asked.about("transcript", agent)
    assert shown["entries"] == []
    assert said in shown["said"]


# --- record ---


def test_the_record_and_how_to_see_its_terminal(asked: Asked) -> None:
    assert asked.about("record") == {"record": None, "attach": ""}
    asked.records["builder"] = RUNS
    shown = asked.about("record")
    assert shown["record"]["conversation"] == "c1"
    assert shown["attach"] == "tmux attach -t '=builder'" or shown["attach"].startswith("tmux -L ")
    asked.records["builder"] = make_record(Status.STOPPED, session="builder")
    assert asked.about("record")["attach"] == ""


@pytest.mark.parametrize(
    ("socket", "session", "attach"),
    [
        ("default", "builder", "tmux attach -t '=builder'"),
        ("fleet", "builder", "tmux -L fleet attach -t '=builder'"),
        ("/run/a b/sock", "builder", "tmux -S '/run/a b/sock' attach -t '=builder'"),
        ("default", "it's; rm -rf ~ #", """tmux attach -t '=it'"'"'s; rm -rf ~ #'"""),
    ],
)
def test_the_command_can_be_pasted(asked: Asked, socket: str, session: str, attach: str) -> None:
    asked.world.declare(AGENTS, tmux={"socket": socket})
    asked.records["builder"] = RUNS.model_copy(update={"session": session})
    assert asked.about("record")["attach"] == attach
