"""Codex: the locks that its processes held at recorded moments."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from shared.agents.identity import IDENTITY_READERS, ConversationIdentity
from shared.system.processes import OpenFile, Process
from tests.fakes.processes import Details, FakeProcesses
from tests.unit.shared.agents.process_samples import SAMPLES, ident, moment, put

SAMPLE = "codex-0.166.0"
WRAPPER, PROGRAM, SERVER = 4000, 4020, 4464


@pytest.fixture
def room(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path


def at(name: str, room: Path) -> FakeProcesses:
    """A recorded moment, with the files as they were."""
    for row in json.loads((SAMPLES / SAMPLE / "states.json").read_text())[name]:
        for path, _, written in row["open_files"]:
            recorded = SAMPLES / SAMPLE / Path(path).name
            text = recorded.read_text().replace("/srv/app", str(room)) if recorded.exists() else ""
            put(Path(path.replace("/srv/app", str(room))), text, written)
    return moment(SAMPLE, name, room)


def identify(processes: FakeProcesses, pid: int = WRAPPER) -> ConversationIdentity | None:
    return IDENTITY_READERS["codex"](processes, processes.process(pid), Path("/nowhere"))


def rollout(room: Path, number: int) -> Path | None:
    return next((room / "home" / ".codex" / "sessions").rglob(f"*{ident(number)}.jsonl"), None)


@pytest.mark.parametrize(
    ("name", "conversation", "is_kept"),
    [("ready", 1, False), ("prompted", 1, True), ("new", 2, False), ("new-prompted", 2, True), ("resumed", 1, True)],
)
@pytest.mark.parametrize("pid", [WRAPPER, PROGRAM])
def test_it_is_the_one_that_was_taken_up_last(
    name: str, conversation: int, is_kept: bool, pid: int, room: Path
) -> None:
    found = identify(at(name, room), pid)
    assert found is not None
    assert found.conversation == ident(conversation)
    assert found.transcript == (rollout(room, conversation) if is_kept else None)
    assert found.workspace == (room / "ws" if is_kept else None)


def lock(room: Path, number: int, written: float | None = None) -> OpenFile:
    path = room / "home" / ".codex" / "thread-writer-locks" / f"{ident(number)}.lock"
    return OpenFile(put(path, "", written), 0)


def head(room: Path, number: int, **about: Any) -> OpenFile:
    path = (
        room
        / "home"
        / ".codex"
        / "sessions"
        / "2026"
        / "11"
        / "16"
        / f"rollout-2026-11-16T13-10-43-{ident(number)}.jsonl"
    )
    said = {"type": "session_meta", "payload": {"cwd": str(room / "ws"), "source": "cli", **about}}
    return OpenFile(put(path, json.dumps(said) + "\n"), 1)


def test_locks_of_the_same_moment_tell_nothing(room: Path) -> None:
    processes = at("ready", room)
    assert identify(processes.but(PROGRAM, open_files=[lock(room, 1, 1000.0), lock(room, 2, 1000.0)])) is None


def test_what_its_own_agents_talk_about_is_not_it(room: Path) -> None:
    processes = at("ready", room)
    held = [lock(room, 1, 1000.0), head(room, 1), lock(room, 2, 2000.0), head(room, 2)]
    found = identify(processes.but(PROGRAM, open_files=held))
    assert found is not None
    assert found.conversation == ident(2)
    held[3] = head(room, 2, source={"subagent": "review"})
    found = identify(processes.but(PROGRAM, open_files=held))
    assert found is not None
    assert found.conversation == ident(1)


def test_a_lock_without_a_file_is_given_a_moment_to_say_what_it_is(room: Path) -> None:
    processes = at("ready", room)
    held = [lock(room, 1, 1000.0), head(room, 1), lock(room, 2, time.time())]
    assert identify(processes.but(PROGRAM, open_files=held)) is None
    held[2] = lock(room, 2, time.time() - 10)
    found = identify(processes.but(PROGRAM, open_files=held))
    assert found is not None
    assert found.conversation == ident(2)


def test_an_older_version_without_locks(room: Path) -> None:
    processes = at("ready", room)
    alone = identify(processes.but(PROGRAM, open_files=[head(room, 1)]))
    assert alone is not None
    assert alone.conversation == ident(1)
    assert identify(processes.but(PROGRAM, open_files=[head(room, 1), head(room, 2)])) is None


def test_files_that_went_away_or_are_garbage(room: Path) -> None:
    processes = at("new-prompted", room)
    for path in (room / "home").rglob("*.jsonl"):
        path.write_bytes(b"\xff{[" * 1000)
    found = identify(processes)
    assert found is not None
    assert (found.conversation, found.workspace) == (ident(2), None)
    shutil.rmtree(room / "home")
    assert identify(processes) is None


def test_nothing_is_held(room: Path) -> None:
    assert identify(at("ready", room).but(PROGRAM, open_files=[])) is None


# --- with a server of its own ---


def test_alone_with_its_server(room: Path) -> None:
    found = identify(at("daemon", room))
    assert found == ConversationIdentity(ident(5), rollout(room, 5), room / "ws")


def test_two_with_one_server_are_not_told_apart(room: Path) -> None:
    processes = at("daemon-two", room)
    tops = [process.pid for process in processes if process.name == "node"]
    assert len(tops) == 2
    assert [identify(processes, pid) for pid in tops] == [None, None]


def test_two_with_one_server_in_two_directories(room: Path) -> None:
    processes = at("daemon-two", room)
    elsewhere = room / "elsewhere"
    first, second = (process.pid for process in processes if process.name == "node")
    file = rollout(room, 7)
    assert file is not None
    file.write_text(file.read_text().replace(str(room / "ws"), str(elsewhere)))
    for process in processes.below(second):
        processes = processes.but(process.pid, cwd=elsewhere)
    found = [identify(processes, pid) for pid in (first, second)]
    assert [identity and identity.conversation for identity in found] == [ident(5), ident(7)]


def test_a_server_that_somebody_else_has_left_says_nothing(room: Path) -> None:
    """Its conversation was taken up before this Codex was there."""
    later = Process(6000, 1, "codex", 1794834700.0, 1)
    processes = at("daemon", room).without(WRAPPER, 4018)
    processes = processes.and_also(
        later, arguments=["codex"], environment={"HOME": str(room / "home")}, cwd=room / "ws"
    )
    assert identify(processes, later.pid) is None


def test_an_unprompted_conversation_of_the_server_may_be_anybodys(room: Path) -> None:
    processes = at("daemon", room)
    held = processes.open_files(processes.process(SERVER))
    assert identify(processes.but(SERVER, open_files=[*held, lock(room, 9)])) is None


def test_a_codex_that_was_sent_elsewhere_is_not_looked_for(room: Path) -> None:
    processes = at("daemon", room)
    assert identify(processes.but(4018, arguments=["codex", "--cd", "/elsewhere"])) is None


def test_a_hidden_codex_may_be_here(room: Path) -> None:
    hidden = Process(6000, 1, "codex", 1794834700.0, 1)
    assert identify(at("daemon", room).and_also(hidden, arguments=["codex"])) is None


def test_a_process_without_variables(room: Path) -> None:
    alone = FakeProcesses({Process(7, 1, "codex", 1.0, 1): Details(["codex"])})
    assert identify(alone, 7) is None
