"""The hook program as agents run it: through a shell, as a process. It never fails, never speaks, and loses nothing."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shared.hooks.command import GIVEN, PROGRAM, installed, spawned
from shared.hooks.spool import HookEvent, Spool
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
    """Run a command as an agent does; it must be silent and end well."""
    env = {**ENV, **options.pop("env", {})}
    done = subprocess.run(
        [shell, "-c", command], input=payload, capture_output=True, env=env, timeout=60, check=False, **options
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    return done


def only(spool: Spool) -> HookEvent:
    (event,) = spool.read()
    spool.done([event])
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


def test_ten_megabytes_arrive_whole(spool: Spool) -> None:
    text = "ü🙂 " * 1_200_000
    run(spawned(spool.directory), json.dumps({"text": text}).encode())
    assert only(spool).payload["text"] == text


@pytest.mark.parametrize("gone", ["hooks", "spool"])
def test_a_directory_that_is_gone_is_nobodys_trouble(spool: Spool, gone: str) -> None:
    (spool.directory / "wake").unlink()
    (spool.directory / "spool").rmdir()
    if gone == "hooks":
        spool.directory.rmdir()
    else:
        (spool.directory / "spool").write_text("a file")
    run(spawned(spool.directory), b"{" * 100_000)


def test_nobody_need_listen(spool: Spool) -> None:
    run(spawned(spool.directory))
    (spool.directory / "wake").unlink()
    run(spawned(spool.directory))
    (spool.directory / "wake").mkdir()
    run(spawned(spool.directory))
    assert len(spool.read()) == 3


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


def test_too_many_waiting_cost_the_oldest(spool: Spool) -> None:
    """The program looks after that now and then; here it is asked to."""
    files = spool.directory / "spool"
    for number in range(30):
        (files / f"{1000 + number}-1").write_bytes(b"")
    (files / ".hidden").write_bytes(b"")
    asked = (
        f"import runpy; prune = runpy.run_path({str(PROGRAM)!r})['prune']; "
        f"prune.__globals__['AT_MOST'] = 10; prune({str(files)!r})"
    )
    subprocess.run([sys.executable, "-c", asked], check=True, timeout=60)
    assert sorted(file.name for file in files.iterdir()) == [".hidden", *(f"{1020 + number}-1" for number in range(10))]


def test_a_hook_wakes_the_reader(spool: Spool) -> None:
    found: list[HookEvent] = []

    def take() -> None:
        events = spool.read()
        found.extend(events)
        spool.done(events)

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
