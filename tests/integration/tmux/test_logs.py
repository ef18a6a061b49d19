"""What a program writes goes to a log, from its first word on, whatever the log is called."""

import subprocess
from pathlib import Path

import pytest

from shared.system.tmux import LogPipe
from tests.integration.tmux.server import SLEEPER, Server, eventually, log_to

SPEAKER = ["sh", "-c", "printf 'first word'; exec sleep 1000"]
ENDER = ["sh", "-c", "printf 'first word'; sleep 0.2"]
"""tmux 3.3a may lose what a program writes right before it ends."""
ODD = [
    *("with spaces", "'", '"', 'it\'s "so"', "%d %H%M %%", "#{pid}", "#[fg=red]", "#S ## #", "$(cd; touch pwned)"),
    *("`cd; touch pwned`", "; cd; touch pwned;", "a\nb\ncd; touch pwned\n", "\\", "\\n", "$HOME", "~", "-a", "*"),
    *("é ✳ 🦀", "\udcff", "a\tb", "|& x", "%", "#", "!x", "--", "#{l:[}", "##[x", "{a,b}"),
]


@pytest.mark.parametrize("running", [False, True], ids=["first", "second"])
def test_the_log_has_the_first_output(server: Server, *, running: bool) -> None:
    if running:
        server.start("other")
    log = server.home / "log"
    for name, argv in (("lasts", SPEAKER), ("ends", ENDER)):
        log.unlink(missing_ok=True)
        server.start(name, argv, log=log_to(log))
        eventually(lambda: has(log, "first word"))


@pytest.mark.parametrize("later", [False, True], ids=["start", "pipe"])
def test_a_log_may_have_any_name_and_runs_nothing(server: Server, *, later: bool) -> None:
    expected = set()
    for place, name in enumerate(ODD):
        log = server.home / f"{place} {name}" / f"{name}.log"
        log.parent.mkdir()
        expected |= {log.parent, log}
        if later:
            pane = server.start(f"s{place}", ["cat"])
            assert server.tmux.pipe(pane.pane_id, log_to(log))
            server.run("send-keys", "-t", pane.pane_id, "-l", "first word")
        else:
            server.start(f"s{place}", SPEAKER, log=log_to(log))
        eventually(lambda log=log: has(log, "first word"))  # type: ignore[misc]
    assert set(server.home.rglob("*")) == expected


def test_another_log_takes_over_and_what_was_in_it_stays(server: Server) -> None:
    first, second = server.home / "first", server.home / "second"
    second.write_text("before ")
    pane = server.start("one", ["cat"], log=log_to(first))
    server.run("send-keys", "-t", pane.pane_id, "-l", "one")
    eventually(lambda: has(first, "one"))
    assert server.tmux.pipe(pane.pane_id, log_to(second)) is True
    server.run("send-keys", "-t", pane.pane_id, "-l", "two")
    eventually(lambda: has(second, "before two"))
    assert first.read_text() == "one"
    assert server.tmux.pipe(pane.pane_id, log_to(first)) is True
    server.run("send-keys", "-t", pane.pane_id, "-l", "three")
    eventually(lambda: has(first, "onethree"))


@pytest.mark.parametrize("size", [0, 1, 63])
def test_a_log_that_may_hold_next_to_nothing_is_written(tmp_path: Path, size: int) -> None:
    log = tmp_path / "log"
    command = LogPipe(log, size, 1).command()
    subprocess.run(["sh", "-c", command], input=b"first word", check=True, timeout=20)
    assert log.read_bytes() == b"first word"


def test_a_pane_tells_whether_it_has_a_log(server: Server) -> None:
    assert not server.start("without").piped
    assert server.start("with", log=log_to(server.home / "log")).piped
    assert (server.pane("without").piped, server.pane("with").piped) == (False, True)
    server.tmux.pipe(server.pane("without").pane_id, log_to(server.home / "late"))
    server.run("pipe-pane", "-t", "=with:")
    assert (server.pane("without").piped, server.pane("with").piped) == (True, False)


def test_the_pane_shows_that_its_log_can_not_be_written(server: Server) -> None:
    server.start("one", ["cat"], log=log_to(server.home / "no such directory" / "log"))

    def is_told() -> bool:
        server.run("send-keys", "-t", "=one:", "-l", "x")  # tmux finds out when there is something to write
        return not server.pane("one").piped

    eventually(is_told)
    assert server.pane("one").spawn == "one-1"


def test_a_relative_log_is_where_we_are_and_not_where_tmux_is(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    server.start("one", SPEAKER, cwd=Path("/"), log=log_to(Path("log")))
    eventually(lambda: has(tmp_path / "log", "first word"))


def test_a_gone_pane_has_no_log(server: Server) -> None:
    server.start("one")
    assert server.tmux.pipe("%99", log_to(server.home / "log")) is False
    assert not (server.home / "log").exists()


def test_without_a_server_there_is_nothing_to_log(server: Server) -> None:
    assert server.tmux.pipe("%0", log_to(server.home / "log")) is False


def test_a_program_that_has_ended_has_nothing_to_log(server: Server) -> None:
    server.start("one", SLEEPER)
    pane = server.start("two", ["true"])
    eventually(lambda: server.pane("two").dead)
    assert server.tmux.pipe(pane.pane_id, log_to(server.home / "log")) is False


def has(log: Path, text: str) -> bool:
    return log.exists() and log.read_text() == text
