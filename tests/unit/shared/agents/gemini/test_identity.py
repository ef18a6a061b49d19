"""Gemini CLI: openings and commands, as they were recorded with one and with two in a directory."""

import json
import shutil
from pathlib import Path

import pytest

from shared.agents.identity import IDENTITY_READERS, ConversationIdentity
from shared.system.processes import Process
from tests.fakes.processes import FakeProcesses
from tests.unit.shared.agents.process_samples import SAMPLES, ident, moment, put

SAMPLE = "gemini-0.61.0"
FIRST, SECOND = 4000, 4229
"""The processes that people started; each has a child that does the work."""


def at(name: str, room: Path) -> FakeProcesses:
    project = room / "home" / ".gemini" / "tmp" / "ws"
    shutil.copytree(SAMPLES / SAMPLE / name, project)
    put(room / "home" / ".gemini" / "projects.json", json.dumps({"projects": {str(room / "ws"): "ws"}}))
    return moment(SAMPLE, name, room)


def identify(processes: FakeProcesses, pid: int = FIRST) -> str | None:
    found = IDENTITY_READERS["gemini"](processes, processes.process(pid), Path("/nowhere"))
    return found.conversation if found is not None else None


def chat(room: Path, number: int) -> Path:
    return next((room / "home").rglob(f"session-*-{ident(number)[:8]}.jsonl"))


def log(room: Path) -> Path:
    return room / "home" / ".gemini" / "tmp" / "ws" / "logs.json"


@pytest.mark.parametrize(("name", "conversation"), [("prompted", 1), ("cleared", 4), ("resumed", 7)])
def test_one_in_a_directory(name: str, conversation: int, tmp_path: Path) -> None:
    processes = at(name, tmp_path)
    found = IDENTITY_READERS["gemini"](processes, processes.process(FIRST), Path("/nowhere"))
    assert found == ConversationIdentity(ident(conversation), chat(tmp_path, conversation), tmp_path / "ws")


def test_two_in_a_directory_are_not_told_apart(tmp_path: Path) -> None:
    processes = at("two", tmp_path)
    assert [identify(processes, pid) for pid in (FIRST, SECOND)] == [None, None]


def test_two_with_conversations_on_their_command_lines_are_told_apart(tmp_path: Path) -> None:
    processes = at("two", tmp_path)
    for top, number in ((FIRST, 1), (SECOND, 7)):
        for process in processes.below(top):
            processes = processes.but(process.pid, arguments=["node", "gemini", "--session-id", ident(number)])
    assert identify(processes, SECOND) == ident(7)
    assert identify(processes, FIRST) == ident(4)  # where its `/clear` led


def test_two_with_the_same_conversation_on_their_command_lines_are_not_told_apart(tmp_path: Path) -> None:
    processes = at("two", tmp_path)
    for process in processes:
        processes = processes.but(process.pid, arguments=["node", "gemini", "--resume", ident(1)])
    assert [identify(processes, pid) for pid in (FIRST, SECOND)] == [None, None]


def test_what_one_that_has_ended_left_behind_is_not_taken_for_its_own(tmp_path: Path) -> None:
    """The second came and went while the first was there."""
    processes = at("two", tmp_path).without(SECOND, 4265)
    assert identify(processes, FIRST) is None


def test_one_in_another_directory_is_no_rival(tmp_path: Path) -> None:
    processes = at("prompted", tmp_path)
    rival = Process(9000, 1, "node", 1794834000.0, 1)
    env = {"HOME": str(tmp_path / "home")}
    here = processes.and_also(rival, arguments=["node", "gemini"], environment=env, cwd=tmp_path / "ws")
    there = processes.and_also(rival, arguments=["node", "gemini"], environment=env, cwd=tmp_path / "other")
    other = processes.and_also(rival, arguments=["node", "server.js"], environment=env, cwd=tmp_path / "ws")
    hidden = processes.and_also(rival, arguments=["node", "gemini"])
    assert [identify(each) for each in (here, there, other, hidden)] == [None, ident(1), ident(1), None]


def test_one_that_starts_later_does_not_matter_before_it_opens_anything(tmp_path: Path) -> None:
    rival = Process(9000, 1, "node", 1794834900.0, 1)
    env = {"HOME": str(tmp_path / "home")}
    processes = at("prompted", tmp_path)
    processes = processes.and_also(rival, arguments=["node", "gemini"], environment=env, cwd=tmp_path / "ws")
    assert identify(processes) == ident(1)


def test_another_conversation_that_nothing_led_to_leaves_no_answer(tmp_path: Path) -> None:
    processes = at("cleared", tmp_path)
    log(tmp_path).write_text("[]")
    assert identify(processes) is None


def test_one_command_leads_to_one_conversation(tmp_path: Path) -> None:
    processes = at("cleared", tmp_path)
    copy = chat(tmp_path, 4).read_text().replace(ident(4), ident(8))
    put(chat(tmp_path, 4).with_name("session-2026-11-16T13-11-00000008.jsonl"), copy)
    assert identify(processes) is None


def test_two_that_are_cleared_at_once_are_not_told_apart(tmp_path: Path) -> None:
    processes = at("cleared", tmp_path)
    entries = json.loads(log(tmp_path).read_text())
    other = {**entries[1], "sessionId": ident(8), "timestamp": "2026-11-16T13:11:21.500Z"}
    put(log(tmp_path), json.dumps([*entries, other]))
    assert identify(processes) is None


def test_a_conversation_that_began_long_after_the_process_may_be_anybodys(tmp_path: Path) -> None:
    processes = at("prompted", tmp_path)
    text = chat(tmp_path, 1).read_text().replace("T13:11:19", "T13:21:19")
    put(chat(tmp_path, 1), text)
    assert identify(processes) is None
    for pid in (FIRST, 4036):
        processes = processes.but(pid, arguments=["node", "gemini", "--session-id", ident(1)])
    assert identify(processes) == ident(1)


def test_a_command_line_that_names_another_leaves_no_answer(tmp_path: Path) -> None:
    processes = at("prompted", tmp_path)
    for pid in (FIRST, 4036):
        processes = processes.but(pid, arguments=["node", "gemini", "--session-id", ident(9)])
    assert identify(processes) is None


def test_older_conversations_are_not_its_own(tmp_path: Path) -> None:
    processes = at("resumed", tmp_path)
    for pid in (FIRST, 4028):
        processes = processes.but(pid, arguments=["node", "gemini", "--resume", "latest"])
    assert identify(processes) == ident(7)


@pytest.mark.parametrize("text", ["", "[", "{}", "[1, {}, null]", '[{"message": "/clear"}]', "\0" * 100])
def test_a_broken_log_leads_nowhere(text: str, tmp_path: Path) -> None:
    processes = at("cleared", tmp_path)
    put(log(tmp_path), text)
    assert identify(processes) is None


def test_broken_files_say_nothing(tmp_path: Path) -> None:
    processes = at("prompted", tmp_path)
    file = chat(tmp_path, 1)
    whole = file.read_bytes()
    for broken in (b"", whole[:60], b'{"sessionId":' + b"[" * 3000, b'{"sessionId":1,"startTime":[]}\n', b"\xff" * 50):
        file.write_bytes(broken)
        assert identify(processes) is None
    file.unlink()
    assert identify(processes) is None
    shutil.rmtree(tmp_path / "home")
    assert identify(processes) is None
