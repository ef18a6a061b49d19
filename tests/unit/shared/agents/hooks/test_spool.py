"""Reading the spool: in order, nothing twice that is done, and no file can do harm."""

import os
import stat
import threading
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.agents.hooks.program import KEPT
from shared.agents.hooks.spool import BAD_KEPT, HookEvent, Spool
from tests.fixtures.broker import wait_until

HEAD = b"1\t1700000000123456789\ts1\t%7\t/run/tmux/default\t4711\n"


class Laid:
    """A spool, with files laid into it as hooks would."""

    def __init__(self, directory: Path) -> None:
        self.said: list[str] = []
        self.spool = Spool(directory, self.said.append)
        self.files = directory / "spool"
        self.spool.prepare()

    def lay(self, name: str, data: bytes) -> Path:
        file = self.files / name
        file.write_bytes(data)
        return file


@pytest.fixture
def laid(tmp_path: Path) -> Laid:
    return Laid(tmp_path / "hooks")


def test_everything_is_private(laid: Laid) -> None:
    directory = laid.spool.directory
    assert [stat.S_IMODE(path.stat().st_mode) for path in (directory, laid.files)] == [0o700, 0o700]
    pipe = (directory / "wake").stat().st_mode
    assert (stat.S_ISFIFO(pipe), stat.S_IMODE(pipe)) == (True, 0o600)
    (directory / "wake").unlink()
    (directory / "wake").write_text("no pipe")
    laid.spool.prepare()
    assert stat.S_ISFIFO((directory / "wake").stat().st_mode)


def test_an_event_has_all_that_the_hook_knew(laid: Laid) -> None:
    file = laid.lay("1700000000123456789-12", HEAD + b'{"hook_event_name": "Stop", "agent_id": "a1", "n": [1]}')
    (event,) = laid.spool.read()
    assert event == HookEvent(
        1700000000.123456789,
        "s1",
        "%7",
        "/run/tmux/default",
        4711,
        event.payload,
        file,
    )
    assert (event.name, event.payload["agent_id"], event.payload["n"]) == ("Stop", "a1", [1])


def test_what_was_not_known_is_none(laid: Laid) -> None:
    laid.lay("1-1", b"1\t5\t\t\t\t9\n{}")
    (event,) = laid.spool.read()
    assert (event.spawn, event.pane, event.socket, event.name) == (None, None, None, "")


def test_events_come_in_the_order_of_their_times_until_they_are_done(laid: Laid) -> None:
    for n in (3, 1, 2):
        laid.lay(f"170000000000000000{n}-1", b"1\t170000000000000000%d\t\t\t\t9\n{}" % n)
    laid.lay(".1700000000000000000-9", b"half written")
    first, second = laid.spool.read(at_most=2)
    assert first.file.name < second.file.name < "1700000000000000003-1"
    assert [event.file for event in laid.spool.read(at_most=2)] == [first.file, second.file]
    laid.spool.drop(each.file.name for each in (first, second))
    (third,) = laid.spool.read()
    laid.spool.drop(each.file.name for each in (third, third, first))
    assert laid.spool.read() == []
    assert laid.said == []


def test_what_a_killed_hook_left_goes_after_a_while(laid: Laid) -> None:
    fresh, old = laid.lay(".1-1", b"now"), laid.lay(".2-2", b"then")
    os.utime(old, (1, 1))
    laid.spool.read()
    assert (fresh.exists(), old.exists()) == (True, False)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not of format 1"),
        (b"2\t5\t\t\t\t9\n{}", "not of format 1"),
        (b"1\tx\t\t\t\t9\n{}", "no time"),
        (b"1\t5\t\t\t\t\n{}", "no process"),
        (b"1\t5\t\t\t\t9\n", "not JSON"),
        (b"1\t5\t\t\t\t9\n{", "not JSON"),
        (b"1\t5\t\t\t\t9\n[]", "not an object"),
        (b"1\t5\t\t\t\t9\n" + b"[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_event_is_set_aside_with_a_sentence(laid: Laid, data: bytes, said: str) -> None:
    laid.lay("1-1", data)
    good = laid.lay("2-2", HEAD + b"{}")
    assert [event.file for event in laid.spool.read()] == [good]
    assert (laid.files / "bad" / "1-1").read_bytes() == data
    (sentence,) = laid.said
    assert "1-1 was set aside" in sentence
    assert said in sentence


CUT = b'{"session_id": "c1", "n": [1, {"a": "\\ud83d"}], "hook_event_name": "Stop", "left": '


@pytest.mark.parametrize("left", [b'"', b'{"b": "', b'[["', b"1", b"tru", b""])
def test_the_complete_members_of_a_truncated_payload_are_read(laid: Laid, left: bytes) -> None:
    body = CUT + left
    laid.lay("1-1", HEAD + body + (b"x" if left.endswith(b'"') else b"1") * (KEPT - len(body)))
    (event,) = laid.spool.read()
    assert event.payload == {"session_id": "c1", "n": [1, {"a": "?"}], "hook_event_name": "Stop"}


@pytest.mark.parametrize("body", [b"x", b"[", b"", b'{"a" "b", '])
def test_of_what_was_never_a_payload_nothing_counts(laid: Laid, body: bytes) -> None:
    laid.lay("1-1", HEAD + body + b" " * (KEPT - len(body)))
    assert laid.spool.read() == []
    assert "not JSON" in laid.said[0]


def test_events_of_agents_that_muster_did_not_start_can_be_removed(laid: Laid) -> None:
    spawned = laid.lay("1-1", HEAD + b"{}")
    laid.lay("2-2", b"1\t5\t\t%1\t\t9\n{}")
    laid.lay("3-3", b"1\t5\t\t\t\t9\nnot JSON")
    assert laid.spool.remove_foreign() == 2
    assert [file for file in laid.files.iterdir() if file.is_file()] == [spawned]
    assert laid.spool.remove_foreign() == 0
    assert Spool(laid.files / "none").remove_foreign() == 0
    assert not (laid.files / "none").exists()


def test_two_may_prepare_at_once(laid: Laid, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = laid.spool.directory / "wake"
    pipe.unlink()
    make = os.mkfifo

    def made_by_two(path: Path, mode: int) -> None:
        make(path, mode)
        make(path, mode)

    monkeypatch.setattr(os, "mkfifo", made_by_two)
    laid.spool.prepare()
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_links_pipes_and_directories_are_no_events(laid: Laid, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(HEAD + b"{}")
    (laid.files / "1-1").symlink_to(tmp_path / "secret")
    os.mkfifo(laid.files / "2-2")
    (laid.files / "3-3").mkdir()
    assert laid.spool.read() == []
    assert len(laid.said) == 3


def test_only_the_last_bad_ones_are_kept(laid: Laid) -> None:
    for n in range(BAD_KEPT + 5):
        laid.lay(f"{100 + n}-1", b"bad")
    assert laid.spool.read() == []
    kept = sorted(file.name for file in (laid.files / "bad").iterdir())
    assert (len(kept), kept[-1]) == (BAD_KEPT, f"{100 + BAD_KEPT + 4}-1")


def test_half_a_character_does_no_harm_later(laid: Laid) -> None:
    laid.lay("1-1", HEAD + b'{"a": "\\ud83d", "b": "\\ud83d\\ude42", "\\uDC00": 1, "c": "\xff"}')
    (event,) = laid.spool.read()
    assert event.payload == {"a": "?", "b": "🙂", "?": 1, "c": "\ufffd"}


@given(st.binary(max_size=60), st.binary(max_size=40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_no_bytes_make_it_raise(laid: Laid, head: bytes, body: bytes) -> None:
    laid.lay("1-1", head + b"\n" + body)
    laid.lay("2-2", HEAD + body)
    laid.spool.drop(each.file.name for each in laid.spool.read())
    assert laid.spool.read() == []


def test_a_removed_directory_is_created_again(laid: Laid) -> None:
    laid.files.rmdir()
    assert laid.spool.read() == []
    assert laid.files.is_dir()


def wake(directory: Path) -> bool:
    """As a hook does; False when nobody listens."""
    try:
        pipe = os.open(directory / "wake", os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return False
    os.write(pipe, b"!")
    os.close(pipe)
    return True


def test_hooks_wake_the_listener_even_after_its_pipe_was_removed(laid: Laid) -> None:
    woken = threading.Semaphore(0)
    directory = laid.spool.directory
    end = laid.spool.listen(woken.release)
    try:
        assert woken.acquire(timeout=10), "once, for what came before"
        assert wake(directory)
        assert woken.acquire(timeout=10)
        (directory / "wake").unlink()
        laid.files.rmdir()
        assert woken.acquire(timeout=10), "for what may have been missed"
        wait_until(lambda: wake(directory), "the pipe is back")
        assert woken.acquire(timeout=10)
    finally:
        end()
    assert not wake(directory)


def test_many_wakes_are_few_calls(laid: Laid) -> None:
    calls: list[float] = []
    slow = threading.Event()

    def on_wake() -> None:
        calls.append(time.monotonic())
        slow.wait(10)

    end = laid.spool.listen(on_wake)
    try:
        wait_until(lambda: calls, "the first call")
        assert all(wake(laid.spool.directory) for _ in range(100))
        slow.set()
        wait_until(lambda: len(calls) == 2, "one call for all of them")
    finally:
        end()
    assert len(calls) == 2
