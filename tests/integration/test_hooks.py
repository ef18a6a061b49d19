"""The hook program as agents run it: through a shell, as a process. It never fails, never speaks, and loses nothing."""

import json
import os
import resource
import runpy
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from shared.agents.hooks.command import GIVEN, PROGRAM, installed, interpreter, spawned
from shared.agents.hooks.program import KEPT, LONGEST_S
from shared.agents.hooks.spool import HookEvent, Spool
from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import RunningFleet

NASTY = """it's "here" $HOME `x` \\ ü"""
ENV = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "LANG": "C.UTF-8"}
SHELLS = [shell for shell in ("/bin/sh", "/bin/bash", "/bin/zsh", "/usr/bin/fish") if Path(shell).exists()]


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    spool = Spool(tmp_path / NASTY / ".muster" / "hooks")
    spool.prepare()
    return spool


def run(
    command: str, payload: bytes = b"{}", shell: str = "/bin/sh", **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """Run a command as an agent does; it must take the whole payload, be silent and end well."""
    env = {**ENV, **options.pop("env", {})}
    return piped([shell, "-c", command], payload, env=env, **options)


def piped(words: Sequence[str], payload: bytes, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """The same, without a shell. Unlike `subprocess.run` it minds when nobody reads what it writes."""
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(payload)
        process.stdin.close()
        said = process.stdout.read(), process.stderr.read()
    assert (process.returncode, *said) == (0, b"", b"")
    return subprocess.CompletedProcess(words, 0, *said)


def only(spool: Spool) -> HookEvent:
    (event,) = spool.read()
    spool.drop([event.file.name])
    return event


@pytest.mark.parametrize("shell", SHELLS)
def test_a_payload_arrives_with_who_sent_it(spool: Spool, shell: str) -> None:
    env = {"MUSTER_STAMP_SPAWN": "s1", "TMUX_PANE": "%7", "TMUX": "/tmp/a,b/sock,123,4"}  # noqa: S108
    payload = {"hook_event_name": "Stop", "text": "ü\n\t\0\\"}
    before = time.time()
    run(spawned(spool.directory), json.dumps(payload).encode(), shell, env=env)
    event = only(spool)
    assert (event.spawn, event.pane, event.socket) == ("s1", "%7", "/tmp/a,b/sock")  # noqa: S108
    assert event.payload == payload
    assert before <= event.at <= time.time()
    if not shell.endswith("fish"):
        assert event.pid == os.getpid(), "who started the shell"


def test_outside_of_tmux_and_of_muster_nothing_is_made_up(spool: Spool) -> None:
    run(spawned(spool.directory))
    event = only(spool)
    assert (event.spawn, event.pane, event.socket) == (None, None, None)


def test_names_cannot_break_the_first_line(spool: Spool) -> None:
    run(spawned(spool.directory), env={"TMUX_PANE": "a\tb\nc", "MUSTER_STAMP_SPAWN": "\n{"})
    assert (event := only(spool)).pane == "abc"
    assert event.spawn == "{"


def test_installed_hooks_keep_silent_where_hooks_were_given(spool: Spool) -> None:
    run(installed(spool.directory), b"x" * 1_000_000, env={GIVEN: "given"})
    assert spool.read() == []
    run(installed(spool.directory))
    assert only(spool)


def test_fifty_at_once_lose_nothing(spool: Spool) -> None:
    command = spawned(spool.directory)
    started = [
        subprocess.Popen(["/bin/sh", "-c", command], stdin=subprocess.PIPE, env=ENV, stderr=subprocess.PIPE)
        for _ in range(50)
    ]
    for number, process in enumerate(started):
        _, said = process.communicate(json.dumps({"n": number}).encode(), timeout=60)
        assert (process.returncode, said) == (0, b"")
    events = spool.read()
    assert sorted(event.payload["n"] for event in events) == list(range(50))
    assert [event.at for event in events] == sorted(event.at for event in events)
    for number in range(5):
        run(command, json.dumps({"n": 50 + number}).encode())
    assert [event.payload["n"] for event in spool.read()[50:]] == [50, 51, 52, 53, 54]


def test_a_long_payload_arrives_whole(spool: Spool) -> None:
    text = "ü🙂 " * 100_000
    run(spawned(spool.directory), json.dumps({"text": text}, ensure_ascii=False).encode())
    assert only(spool).payload["text"] == text


def test_of_ten_megabytes_the_beginning_is_kept_and_what_stands_whole_in_it(spool: Spool) -> None:
    told = {"session_id": "c1", "hook_event_name": "PostToolUse", "tool_input": {"path": "x"}}
    run(spawned(spool.directory), json.dumps({**told, "text": "ü🙂 " * 1_200_000, "n": 1}).encode())
    (file,) = (each for each in (spool.directory / "spool").iterdir() if each.is_file())
    assert KEPT <= file.stat().st_size < KEPT + 1000
    assert only(spool).payload == told


def test_stored_events_are_readable_by_their_owner_only(spool: Spool) -> None:
    run(spawned(spool.directory), umask=0)
    (event,) = spool.read()
    assert stat.S_IMODE(event.file.stat().st_mode) == 0o600


def test_the_program_itself_says_nothing(spool: Spool) -> None:
    """The command line would hide it."""
    piped([interpreter(), "-I", "-S", str(PROGRAM), str(spool.directory)], b"{}")
    assert only(spool)


def test_what_anything_else_says_is_hidden(spool: Spool, tmp_path: Path) -> None:
    noisy = tmp_path / "noisy"
    noisy.write_text("#!/bin/sh\necho something; echo worse >&2; exit 3\n")
    noisy.chmod(0o755)
    run(spawned(spool.directory, python=str(noisy)))
    run(installed(spool.directory, python=str(noisy)))


@pytest.mark.parametrize("gone", ["hooks", "spool"])
def test_a_missing_directory_is_no_error_for_the_agent(spool: Spool, gone: str) -> None:
    (spool.directory / "wake").unlink()
    (spool.directory / "spool").rmdir()
    if gone == "hooks":
        spool.directory.rmdir()
    else:
        (spool.directory / "spool").write_text("a file")
    big = b"{" * 1_000_000  # more than a pipe holds: somebody must read it
    run(spawned(spool.directory), big)
    piped([interpreter(), "-I", "-S", str(PROGRAM), str(spool.directory)], big)


def test_the_monitor_need_not_run(spool: Spool) -> None:
    run(spawned(spool.directory))
    (spool.directory / "wake").unlink()
    run(spawned(spool.directory))
    (spool.directory / "wake").mkdir()
    run(spawned(spool.directory))
    assert len(spool.read()) == 3


@pytest.mark.parametrize("is_link", [False, True])
def test_what_is_no_pipe_is_not_written_to(spool: Spool, tmp_path: Path, is_link: bool) -> None:
    wake, file = spool.directory / "wake", tmp_path / "file"
    wake.unlink()
    if is_link:
        wake.symlink_to(file)
    else:
        file = wake
    file.write_text("mine")
    run(spawned(spool.directory))
    assert file.read_text() == "mine"
    assert only(spool)


def test_a_link_to_a_pipe_is_not_followed(spool: Spool, tmp_path: Path) -> None:
    (spool.directory / "wake").rename(tmp_path / "pipe")
    (spool.directory / "wake").symlink_to(tmp_path / "pipe")
    pipe = os.open(tmp_path / "pipe", os.O_RDWR | os.O_NONBLOCK)
    try:
        run(spawned(spool.directory))
        with pytest.raises(BlockingIOError):
            os.read(pipe, 1)
    finally:
        os.close(pipe)


def test_without_the_interpreter_or_the_program_nothing_happens(spool: Spool) -> None:
    big = b"x" * 1_000_000  # more than a pipe holds: somebody must read it
    run(spawned(spool.directory, python="/no/such python"), big)
    run(spawned(spool.directory).replace(str(PROGRAM), f"{PROGRAM}.gone"), big)
    assert spool.read() == []


def limited(kind: int, size: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(kind, (size, size))


def test_a_full_disk_leaves_nothing_half(spool: Spool) -> None:
    run(spawned(spool.directory), b"x" * 200_000, preexec_fn=limited(resource.RLIMIT_FSIZE, 100_000))
    assert list((spool.directory / "spool").iterdir()) == []


def test_standard_streams_may_be_closed(spool: Spool) -> None:
    command = [sys.executable, "-I", "-S", str(PROGRAM), str(spool.directory)]
    for closed in ("<&-", "<&- >&- 2>&-"):
        done = subprocess.run(
            ["/bin/sh", "-c", f'"$@" {closed}', "sh", *command], capture_output=True, timeout=60, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert spool.read() == []


def test_an_agent_that_never_ends_its_payload_is_not_waited_for(spool: Spool) -> None:
    process = subprocess.Popen(
        ["/bin/sh", "-c", spawned(spool.directory)], stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV
    )
    assert process.stdin is not None
    process.stdin.write(b'{"all": "said"}')
    process.stdin.flush()
    assert process.wait(timeout=30) == 0
    assert only(spool).payload == {"all": "said"}
    process.stdin.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()


def sooner(tmp_path: Path, longest_s: float) -> list[str]:
    """The program, with less time to wait."""
    was = PROGRAM.read_text()
    text = was.replace(f"LONGEST_S = {LONGEST_S}", f"LONGEST_S = {longest_s}")
    assert text != was
    (tmp_path / "sooner.py").write_text(text)
    return [interpreter(), "-I", "-S", str(tmp_path / "sooner.py")]


def test_an_agent_that_never_says_anything_is_not_waited_for(spool: Spool, tmp_path: Path) -> None:
    words = [*sooner(tmp_path, 0.1), str(spool.directory)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV) as process:
        try:
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()
    assert list((spool.directory / "spool").iterdir()) == []


def test_an_endless_payload_is_not_read_to_its_end(spool: Spool, tmp_path: Path) -> None:
    words = [*sooner(tmp_path, 0.5), str(spool.directory)]
    with subprocess.Popen(["/usr/bin/env", "yes"], stdout=subprocess.PIPE) as talker:
        try:
            assert subprocess.run(words, stdin=talker.stdout, env=ENV, timeout=30, check=False).returncode == 0
        finally:
            talker.kill()
    (file,) = (spool.directory / "spool").iterdir()
    assert file.stat().st_size < KEPT + 1000


def test_nothing_said_is_nothing_laid_down(spool: Spool) -> None:
    run(spawned(spool.directory), b"")
    assert list((spool.directory / "spool").iterdir()) == []


def test_no_arguments_are_no_trouble_either() -> None:
    for words in ([], [""], ["/", "x"]):
        done = subprocess.run(
            [sys.executable, "-I", "-S", PROGRAM, *words],
            input=b"{}",
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def laid(spool: Spool, ages_s: Iterable[float], data: bytes = b"") -> list[str]:
    """The names of files that hooks laid down so long ago."""
    names = [f"{time.time_ns() - int(age * 1e9)}-{number}" for number, age in enumerate(ages_s)]
    for name in names:
        (spool.directory / "spool" / name).write_bytes(data)
    return names


def pruned(spool: Spool, **limits: int) -> list[str]:
    """What is left when the program, which looks after that now and then, is asked to do it."""
    program = runpy.run_path(str(PROGRAM))
    program["prune"].__globals__.update(limits)
    program["prune"](str(spool.directory / "spool"))
    return sorted(file.name for file in (spool.directory / "spool").iterdir() if file.is_file())


def test_too_many_waiting_cost_the_oldest(spool: Spool) -> None:
    names = laid(spool, range(30))
    assert pruned(spool) == sorted(names)
    assert pruned(spool, MOST_FILES=10) == sorted(names)[-10:]


def test_too_many_bytes_cost_the_oldest(spool: Spool) -> None:
    names = laid(spool, range(30), b"x" * 1000)
    assert pruned(spool, MOST_BYTES=10_500) == sorted(names)[-10:]


def test_unread_events_are_removed_after_a_day(spool: Spool) -> None:
    """It holds what an agent saw and wrote."""
    young, _old = laid(spool, [86_000, 87_000])
    bad = spool.directory / "spool" / "bad"
    bad.mkdir()
    for name in (young, _old):
        (bad / name).write_bytes(b"bad")
    assert pruned(spool) == [young]
    assert [file.name for file in bad.iterdir()] == [young]


def test_what_a_killed_hook_left_goes_without_a_reader_too(spool: Spool) -> None:
    files = spool.directory / "spool"
    for name in (".1-1", ".2-2"):
        (files / name).write_bytes(b"half")
    os.utime(files / ".1-1", (1, 1))
    assert pruned(spool) == [".2-2"]


def test_pruning_goes_on_past_what_it_cannot_remove(spool: Spool) -> None:
    (spool.directory / "spool" / "1000-1").mkdir()
    laid(spool, [90_000, 95_000])
    assert pruned(spool) == []


def test_the_program_prunes_now_and_then(spool: Spool) -> None:
    """With a clock whose time is up for it."""
    (old,) = laid(spool, [90_000])
    asked = (
        "import runpy, sys, time; real = time.time_ns; time.time_ns = lambda: real() // 256_000 * 256_000; "
        f"sys.argv = ['hook', {str(spool.directory)!r}]; runpy.run_path({str(PROGRAM)!r}, run_name='__main__')"
    )
    piped([sys.executable, "-c", asked], b"{}")
    (left,) = (spool.directory / "spool").iterdir()
    assert left.name > old


def test_a_hook_wakes_the_reader(spool: Spool) -> None:
    found: list[HookEvent] = []

    def take() -> None:
        events = spool.read()
        found.extend(events)
        spool.drop(each.file.name for each in events)

    end = spool.listen(take)
    try:
        for number in range(10):
            run(spawned(spool.directory), json.dumps({"n": number}).encode())
        wait_until(lambda: len(found) == 10, "all of them")
    finally:
        end()
    assert [event.payload["n"] for event in found] == list(range(10))


LIKE_AN_AGENT = """#!/bin/sh
echo "$@" > args; env > env
while :; do sleep 1000; done
"""


def test_the_spawner_gives_hooks_and_says_when_it_does_not(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(LIKE_AN_AGENT)
    program.chmod(0o755)
    for name in ("with", "without"):
        (tmp_path / name).mkdir()
    hooked = {"like": "claude", "binary": str(program)}
    backends = {"hooked": hooked, "bare": {**hooked, "extra_args": ["--settings", "mine.json"]}}
    agents = {"one": {"backend": "hooked", "dir": "with"}, "two": {"backend": "bare", "dir": "without"}}
    fleet = RunningFleet(tmp_path, agents, backends=backends)
    try:
        fleet.up()
        for name in ("with", "without"):
            wait_until((tmp_path / name / "env").exists, "its environment")
        settings = tmp_path / ".muster" / "hooks" / "claude.json"
        assert f"--settings {settings} " in (tmp_path / "with" / "args").read_text()
        stop = json.loads(settings.read_text())["hooks"]["Stop"][0]["hooks"][0]["command"]
        assert stop == spawned(fleet.fleet.hooks)
        assert f"{GIVEN}=given" in (tmp_path / "with" / "env").read_text()
        assert GIVEN not in (tmp_path / "without" / "env").read_text()
        logs = "".join(file.read_text() for file in (tmp_path / ".muster" / "logs").glob("*spawner*"))
        assert "a --settings of its own" in logs
    finally:
        fleet.end()


@pytest.mark.parametrize("fault", ["hooks is a file", "wake is a directory"])
def test_an_agent_is_started_where_no_hooks_can_be_laid_out(tmp_path: Path, fault: str) -> None:
    program = tmp_path / "program"
    program.write_text(LIKE_AN_AGENT)
    program.chmod(0o755)
    hooks = tmp_path / ".muster" / "hooks"
    hooks.parent.mkdir(mode=0o700)
    if fault == "hooks is a file":
        hooks.write_text("")
    else:
        (hooks / "wake").mkdir(parents=True)
    backends = {"hooked": {"like": "claude", "binary": str(program)}}
    fleet = RunningFleet(tmp_path, {"one": {"backend": "hooked"}}, backends=backends)
    try:
        fleet.up()
        wait_until((tmp_path / "env").exists, "its environment")
        assert "--settings" not in (tmp_path / "args").read_text()
        assert GIVEN not in (tmp_path / "env").read_text()
        logs = "".join(file.read_text() for file in (tmp_path / ".muster" / "logs").glob("*spawner*"))
        assert "started an agent without hooks" in logs
        assert str(hooks) in logs
    finally:
        fleet.end()
