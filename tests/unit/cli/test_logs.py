"""`muster logs`: which log, which lines, and every byte once however the file is rotated."""

import argparse
import json
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.cli import logs
from services.cli.fleet_option import open_fleet_leniently
from services.cli.logs import LogTail, numbered, raw, readable
from shared.errors import MusterError


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "POLL_INTERVAL_S", 0.0)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Where the logs of a fleet with two agents are."""
    (tmp_path / "fleet.yaml").write_text("host: box\nagents:\n  builder:\n  tester:\n")
    found = tmp_path / ".muster" / "logs" / "agents"
    found.mkdir(parents=True)
    return found


def run(directory: Path, *words: str) -> int:
    parser = argparse.ArgumentParser()
    logs.arguments(parser)
    options = parser.parse_args(words)
    options.fleet = str(directory.parents[2] / "fleet.yaml")
    return logs.run(options)


def test_the_last_lines_are_shown(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "builder.log").write_bytes(b"".join(f"line {number}\r\n".encode() for number in range(200)))
    assert run(directory, "builder") == 0
    assert capsys.readouterr().out.split("\n") == [*(f"line {number}" for number in range(150, 200)), ""]
    assert run(directory, "builder", "-n", "2") == 0
    assert capsys.readouterr().out == "line 198\nline 199\n"
    assert run(directory, "builder", "--lines", "0") == 0
    assert capsys.readouterr().out == ""


def test_the_older_part_is_read_when_the_newer_is_short(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "builder.log.1").write_bytes(b"one\r\ntwo\r\n")
    (directory / "builder.log").write_bytes(b"three\r\n")
    run(directory, "builder")
    assert capsys.readouterr().out == "one\ntwo\nthree\n"


def test_control_characters_in_a_log_do_not_reach_the_terminal(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / "builder.log").write_bytes(
        b"\x1b[31mred\x1b[0m\x1b]0;title\x07 \x9b2J\xc2\x9b2J \xe2\x80\xaetfel\x08\r\n"
    )
    run(directory, "builder")
    shown = capsys.readouterr().out
    assert "red" in shown
    assert [letter for letter in shown if not letter.isprintable() and letter != "\n"] == []


def test_raw_is_byte_for_byte(directory: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    data = b"  \x1b[31mone\r\n\xff\x00two\r\nth\rree\t\r"
    (directory / "builder.log").write_bytes(data)
    run(directory, "builder", "--raw")
    assert capfdbinary.readouterr().out == data
    run(directory, "builder", "--raw", "-n", "1")
    assert capfdbinary.readouterr().out == b"th\rree\t\r"
    (directory / "builder.log").write_bytes(data + b"\n")
    run(directory, "builder", "--raw", "-n", "1")
    assert capfdbinary.readouterr().out == b"th\rree\t\r\n"


def test_json_is_one_object_a_line(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "builder.log").write_text("a \u00e9\r\n")
    run(directory, "builder", "--json")
    assert json.loads(capsys.readouterr().out) == {"agent": "builder", "line": "a \u00e9"}


def test_an_agent_that_left_the_fleet_can_be_read(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "former.log").write_text("last words\r\n")
    assert run(directory, "former") == 0
    assert capsys.readouterr().out == "last words\n"


def test_a_fault_in_the_fleet_file_does_not_matter(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "builder.log").write_text("here\r\n")
    (directory.parents[2] / "fleet.yaml").write_text("agents: [")
    assert run(directory, "builder") == 0
    assert capsys.readouterr().out == "here\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["bulider"], "there is no agent and no log 'bulider'; did you mean 'builder'? there are logs of: builder"),
        (["../../journal"], "there is no agent and no log '../../journal'; there are logs of: builder"),
        (["a\x1b[2Jb"], "there is no agent and no log 'a\\\\x1b[2Jb';"),
        (["tester"], "tester has no log yet: "),
        ([], "whose log? there are logs of: builder"),
    ],
)
def test_what_does_not_exist_is_reported_in_a_sentence(directory: Path, words: list[str], says: str) -> None:
    (directory / "builder.log").touch()
    (directory.parents[1] / "journal.log").touch()
    with pytest.raises(MusterError) as told:
        run(directory, *words)
    assert says in str(told.value)
    assert str(told.value).isprintable()


def test_a_missing_name_is_a_usage_error(directory: Path) -> None:
    with pytest.raises(MusterError) as told:
        run(directory)
    assert told.value.exit_code == 2
    assert "there are no logs yet" in str(told.value)


def test_the_logs_are_listed(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(directory, "--list")
    assert "there are no logs in" in capsys.readouterr().out
    for name in ("builder.log", "builder.log.1", "builder.log.2", "former.log"):
        (directory / name).write_text("x" * 1234)
    run(directory, "--list")
    _, builder, former = capsys.readouterr().out.splitlines()
    assert builder.split()[:3] == ["builder", "1,234", "2"]
    assert former.split()[:3] == ["former", "1,234", "0"]
    run(directory, "--list", "--json")
    assert [log["agent"] for log in json.loads(capsys.readouterr().out)] == ["builder", "former"]


# --- following ---


def follow(lines: Iterator[Any], count: int) -> list[Any]:
    return list(islice(lines, count))


def test_following_shows_what_comes(directory: Path) -> None:
    path = directory / "builder.log"
    path.write_text("one\r\ntwo\r\n")
    lines = readable(path, 1, follow=True)
    assert next(lines) == "two"
    with path.open("a") as file:
        file.write("three\r\n\r\n\r\nfour\r\n")
    assert follow(lines, 3) == ["three", "", "four"]


def test_following_waits_for_a_log(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = directory / "tester.log"
    pieces = raw(path, 10, follow=True)
    assert follow(pieces, 3) == [b"", b"", b""]
    path.write_text("here")
    assert next(pieces) == b"here"
    pieces.close()  # type: ignore[attr-defined]


def _fleet(directory: Path) -> Any:
    options = argparse.Namespace(fleet=str(directory.parents[2] / "fleet.yaml"))
    return open_fleet_leniently(options)[0]


class Log:
    """A log as its writer and its keeper treat it."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "rotated.log"
        for part in directory.glob("rotated.log*"):
            part.unlink()
        self.path.touch()
        self.count = 0
        self.written = b""

    def write(self, size: int) -> None:
        piece = b"".join(b"%06d " % number for number in range(self.count, self.count + size))
        self.count += size
        self.written += piece
        with self.path.open("ab") as file:
            file.write(piece)

    def rotate(self) -> None:
        for _ in self.rotating():
            pass

    def rotating(self) -> Iterator[None]:
        """Rotate, with a stop after each step that others may see."""
        for number in range(50, 0, -1):
            if numbered(self.path, number).exists():
                numbered(self.path, number).rename(numbered(self.path, number + 1))
                yield
        self.path.rename(numbered(self.path, 1))
        yield
        self.path.touch()


STEPS = st.lists(st.sampled_from(["write", "write", "write more", "read", "read", "rotate"]), max_size=25)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(steps=STEPS)
def test_every_byte_is_read_once_over_rotations(steps: list[str], directory: Path) -> None:
    log = Log(directory)
    found = b""
    with closing(LogTail(log.path)) as tail:
        tail.read()
        for step in steps:
            match step:
                case "read":
                    found += tail.read()
                case "rotate":
                    log.rotate()
                case _:
                    log.write(1 if step == "write" else 40)
        found += tail.read()
    assert found == log.written


def test_a_reader_in_the_midst_of_a_rotation_reads_nothing_twice(directory: Path) -> None:
    log = Log(directory)
    found = b""
    with closing(LogTail(log.path)) as tail:
        for _ in range(3):
            log.write(5)
            found += tail.read()
            log.write(5)
            for _ in log.rotating():
                found += tail.read()
            log.write(1)
            found += tail.read() + tail.read()
    assert found == log.written


def test_a_log_that_was_renamed_is_read_to_its_end(directory: Path) -> None:
    log = Log(directory)
    with closing(LogTail(log.path)) as tail:
        log.write(5)
        found = tail.read()
        log.write(5)
        log.rotate()
        log.write(5)
        assert found + tail.read() == log.written


def test_a_file_with_an_odd_number_is_no_part(directory: Path) -> None:
    log = Log(directory)
    log.path.with_name(f"{log.path.name}.\N{SUPERSCRIPT TWO}").write_text("")
    with closing(LogTail(log.path)) as tail:
        log.write(5)
        found = tail.read()
        log.rotate()
        log.write(5)
        assert found + tail.read() == log.written


def test_parts_that_were_removed_before_they_were_read_are_left_out(directory: Path) -> None:
    log = Log(directory)
    with closing(LogTail(log.path)) as tail:
        for _ in range(4):
            log.write(5)
            tail.read()
            for _ in range(3):
                log.rotate()
                log.written = b""
                log.write(5)
            numbered(log.path, 3).unlink()
            numbered(log.path, 2).unlink()
            last, log.written = log.written, b""
            assert tail.read().endswith(last)
            assert tail.read() == b""


def test_a_log_that_was_emptied_is_read_from_its_beginning(directory: Path) -> None:
    log = Log(directory)
    with closing(LogTail(log.path)) as tail:
        log.write(5)
        tail.read()
        log.path.write_bytes(b"anew")
        assert tail.read() == b"anew"


def test_a_log_that_was_removed_is_waited_for(directory: Path) -> None:
    log = Log(directory)
    with closing(LogTail(log.path)) as tail:
        log.write(5)
        tail.read()
        log.path.unlink()
        assert tail.read() == b""
        log.path.write_bytes(b"anew")
        assert tail.read() == b"anew"
