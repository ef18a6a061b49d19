"""opencode: the log of two processes, as it was recorded, and where each of them was in it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from shared.agents.identity import IDENTITY_READERS, ConversationIdentity
from shared.system.processes import OpenFile
from tests.fakes.processes import FakeProcesses
from tests.unit.shared.agents.process_samples import SAMPLES, moment

SAMPLE = "opencode-1.18.33"
FIRST, SECOND = 4000, 5189


def session(number: int) -> str:
    return f"ses_{number:026d}"


def log(room: Path) -> Path:
    return room / "home" / ".local" / "share" / "opencode" / "log" / "opencode.log"


def database(room: Path) -> Path:
    return room / "home" / ".local" / "share" / "opencode" / "opencode.db"


def at(name: str, room: Path, before: bytes = b"") -> FakeProcesses:
    """A recorded moment: the log is as long as it was then."""
    lines = (SAMPLES / SAMPLE / "opencode.log").read_text().replace("/srv/app", str(room)).splitlines(keepends=True)
    processes = moment(SAMPLE, name, room)
    longest = 0
    for process in list(processes):
        written = [lines_before or 0 for _, lines_before in processes.open_files(process)]
        longest = max(longest, *written)
        held = [OpenFile(log(room), len(before + "".join(lines[:count]).encode()) if count else 0) for count in written]
        processes = processes.but(process.pid, open_files=held)
    log(room).parent.mkdir(parents=True)
    log(room).write_bytes(before + "".join(lines[:longest]).encode())
    sql = (SAMPLES / SAMPLE / "sessions.sql").read_text().replace("/srv/app", str(room))
    with closing(sqlite3.connect(database(room))) as connection:
        connection.executescript(sql)
    return processes


def identify(processes: FakeProcesses, pid: int = FIRST) -> ConversationIdentity | None:
    return IDENTITY_READERS["opencode"](processes, processes.process(pid), Path("/nowhere"))


def conversation(processes: FakeProcesses, pid: int = FIRST) -> str | None:
    found = identify(processes, pid)
    return found.conversation if found is not None else None


def test_before_the_first_prompt_there_is_none(tmp_path: Path) -> None:
    assert identify(at("ready", tmp_path)) is None


def test_the_command_line_counts_until_there_is_a_prompt(tmp_path: Path) -> None:
    processes = at("ready", tmp_path).but(FIRST, arguments=["opencode", "--session", session(3)])
    assert conversation(processes) == session(3)
    unknown = processes.but(FIRST, arguments=["opencode", "--session", session(9)])
    assert conversation(unknown) is None


def test_the_conversation_of_the_last_prompt(tmp_path: Path) -> None:
    assert identify(at("prompted", tmp_path)) == ConversationIdentity(session(1), database(tmp_path), tmp_path / "ws")


def test_two_in_a_directory_are_told_apart(tmp_path: Path) -> None:
    processes = at("two", tmp_path)
    assert [conversation(processes, pid) for pid in (FIRST, SECOND)] == [session(1), session(3)]


def test_the_first_has_moved_on(tmp_path: Path) -> None:
    processes = at("moved-on", tmp_path)
    assert [conversation(processes, pid) for pid in (FIRST, SECOND)] == [session(5), session(3)]


def test_what_its_own_agents_talk_about_is_not_it(tmp_path: Path) -> None:
    processes = at("moved-on", tmp_path)
    with closing(sqlite3.connect(database(tmp_path))) as connection, connection:
        connection.execute("UPDATE session SET parent_id = ? WHERE id = ?", (session(1), session(5)))
    assert conversation(processes) == session(1)


@pytest.mark.parametrize("length", [1, 100, 65_535, 65_536, 65_537, 300_000])
def test_a_long_log_is_read_from_its_end(length: int, tmp_path: Path) -> None:
    others = b"timestamp=2026-11-16T13:00:00.000Z level=INFO run=ffffffff message=loop session.id=ses_x step=0\n"
    before = (others * (length // len(others) + 1))[-length:]
    processes = at("moved-on", tmp_path, b"\n" if length == 1 else before)
    assert [conversation(processes, pid) for pid in (FIRST, SECOND)] == [session(5), session(3)]


@pytest.mark.parametrize("position", [None, 0, 10, 10**9])
def test_a_position_that_is_no_lines_end_tells_nothing(position: int | None, tmp_path: Path) -> None:
    processes = at("prompted", tmp_path).but(FIRST, open_files=[OpenFile(log(tmp_path), position)])
    assert identify(processes) is None


def test_lines_far_between_those_of_others_are_found(tmp_path: Path) -> None:
    processes = at("prompted", tmp_path)
    others = b"timestamp=2026-11-16T13:00:00.000Z level=INFO run=ffffffff message=loop session.id=ses_x step=0\n" * 5000
    last = b'timestamp=2026-11-16T13:20:00.000Z level=INFO run=38a8cf33 message="something"\n'
    whole = log(tmp_path).read_bytes() + others + last
    log(tmp_path).write_bytes(whole + others)
    assert conversation(processes.but(FIRST, open_files=[OpenFile(log(tmp_path), len(whole))])) == session(1)


@pytest.mark.parametrize("word", ["serve", "web", "acp", "attach"])
def test_one_that_serves_others_is_in_no_conversation(word: str, tmp_path: Path) -> None:
    assert identify(at("prompted", tmp_path).but(FIRST, arguments=["opencode", word])) is None


def test_broken_files_say_nothing(tmp_path: Path) -> None:
    processes = at("prompted", tmp_path)
    database(tmp_path).write_bytes(b"no database" * 1000)
    assert identify(processes) is None
    database(tmp_path).unlink()
    assert identify(processes) is None
    log(tmp_path).write_bytes(b"\n" * log(tmp_path).stat().st_size)
    assert identify(processes) is None
    log(tmp_path).unlink()
    assert identify(processes) is None
