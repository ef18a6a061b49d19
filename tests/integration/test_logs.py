"""The agents' logs with a real tmux: from the first byte on, over rotations, and when the pipe fails."""

import contextlib
import re
import secrets
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from services.cli.logs import LogTail
from services.spawner.sessions.output_logs import LogKeeper
from shared.system.tmux import Pane, Tmux
from shared.system.tmux.server import end_server

WITHIN_S = 20.0
ECHO = "import sys\nfor line in sys.stdin: print('said', line.strip(), flush=True)"
COUNT = """
import itertools, pathlib, sys, time
least, enough = int(sys.argv[1]), pathlib.Path(sys.argv[2])
for number in itertools.count():
    sys.stdout.write(f"L{number:07d}\\n")
    if number % 50 == 0:
        sys.stdout.flush()
        time.sleep(0.0005)
    if number >= least and number % 1000 == 0 and enough.exists():
        break
print("the end")
"""


class World:
    """A private tmux server with one agent in it, and the keeper of its log."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.socket = f"muster-test-{secrets.token_hex(6)}"
        self.tmux = Tmux(self.socket)
        self.keeper = self.new_keeper()
        self.said: list[str] = []

    def new_keeper(self, max_bytes: int = 10_000_000, keep: int = 3) -> LogKeeper:
        return LogKeeper(self.tmux, self.home / "logs", max_bytes=max_bytes, keep=keep)

    @property
    def log(self) -> Path:
        return self.home / "logs" / "builder.log"

    def older(self) -> list[Path]:
        return sorted(self.log.parent.glob("builder.log.*"), key=lambda part: -int(part.suffix[1:]))

    def whole_log(self) -> bytes:
        """Whole when nothing more is written; empty when it is looked at in the midst of a rotation."""
        with contextlib.suppress(FileNotFoundError):
            return b"".join(part.read_bytes() for part in [*self.older(), self.log])
        return b""

    def size(self) -> int:
        total = 0
        for part in self.log.parent.iterdir():
            with contextlib.suppress(FileNotFoundError):
                total += part.stat().st_size
        return total

    def start(self, *argv: str, logged: bool = True) -> Pane:
        return self.tmux.start(
            session="builder",
            argv=[sys.executable, "-c", *argv],
            cwd=self.home,
            env={"PYTHONUNBUFFERED": "x"} if logged else {},
            agent="builder",
            spawn="spawn-1",
            fleet="fleet",
            log=self.keeper.pipe_for("builder") if logged else None,
        )

    def pane(self) -> Pane:
        (pane,) = self.tmux.look()
        return pane

    def tend(self) -> None:
        self.said += self.keeper.tend(self.tmux.look(), time.time())

    def type(self, text: str) -> None:
        self.tmux.paste("%0", f"{text}\n", spawn="spawn-1")

    def write_until_the_pipe_breaks(self) -> None:
        """tmux learns that a writer has ended only when it has something for it, and perhaps not at the first time."""

        def is_broken() -> bool:
            self.type("lost")
            return not self.pane().piped

        eventually(is_broken, "tmux knows that the pipe has ended")

    def writers(self) -> list[psutil.Process]:
        server = psutil.Process(int(self.tmux.ask(("display-message", "-p", "#{pid}"))[0].text))
        return [child for child in server.children(recursive=True) if child.name() in ("sh", "dd")]

    def end(self) -> None:
        for process in self.writers():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()
        self.tmux.close()
        end_server(self.socket)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("TMUX", "TMUX_PANE", "TMUX_TMPDIR"):
        monkeypatch.delenv(name, raising=False)
    world = World(tmp_path)
    yield world
    world.end()


def eventually(holds: Callable[[], object], what: str) -> None:
    end = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < end, f"not within {WITHIN_S:g} s: {what}"
        time.sleep(0.02)


def test_the_first_byte_is_in_the_log_and_nobody_elses_eyes_are(world: World) -> None:
    world.start("print('the very first word')")
    eventually(lambda: b"the very first word\r\n" in world.log.read_bytes(), "the first word is logged")
    assert world.log.read_bytes().startswith(b"the very first word")
    assert stat.S_IMODE(world.log.stat().st_mode) == 0o600
    world.tend()
    assert world.said == []


def numbers(data: bytes) -> list[int]:
    return [int(number) for number in re.findall(rb"L(\d{7})\r\n", data)]


def test_rotation_loses_nothing_and_a_follower_misses_nothing(world: World) -> None:
    enough = world.log.parent / "enough"
    world.keeper = world.new_keeper(max_bytes=20_000, keep=1000)
    followed = b""
    world.log.parent.mkdir(parents=True, exist_ok=True)
    world.log.touch(0o600)
    with closing(LogTail(world.log)) as tail:  # before the first rotation
        world.start(COUNT, "40000", str(enough))
        while not world.pane().dead:
            world.tend()
            followed += tail.read()
            if len(world.older()) >= 5:
                enough.touch()
        eventually(lambda: b"the end\r\n" in world.whole_log(), "the last word is logged")
        followed += tail.read()
    older = world.older()
    logged = numbers(world.whole_log())
    assert logged == list(range(len(logged)))
    assert len(logged) > 40_000
    assert numbers(followed) == logged
    assert {stat.S_IMODE(part.stat().st_mode) for part in older} == {0o600}
    assert world.said == []
    assert [writer.status() for writer in world.writers() if writer.status() == psutil.STATUS_STOPPED] == []


def test_only_so_many_parts_are_kept(world: World) -> None:
    """A loud program, and no service that looks after its log: the bound holds, also after the program's end."""
    world.keeper = world.new_keeper(max_bytes=100_000, keep=2)
    largest = 0

    def size() -> int:
        nonlocal largest
        largest = max(largest, world.size())
        return largest

    world.start("for number in range(200_000): print(f'L{number:07d}')\nprint('the end')")
    eventually(lambda: size() and b"the end\r\n" in world.whole_log(), "the last word is logged")
    assert 200_000 < largest <= 300_000
    assert sorted(part.name for part in world.log.parent.iterdir()) == ["builder.log", "builder.log.1", "builder.log.2"]
    logged = numbers(world.whole_log())
    assert logged == list(range(logged[0], 200_000)), "the newest, without a gap"
    world.tend()
    assert world.said == []


def test_a_killed_writer_is_noticed_and_replaced(world: World) -> None:
    world.start(ECHO)
    eventually(world.writers, "the writer runs")
    for process in world.writers():
        process.kill()
    world.write_until_the_pipe_breaks()
    world.tend()
    assert len(world.said) == 1
    assert "its output went to no log" in world.said[0]
    world.type("again")
    eventually(lambda: b"said again" in world.log.read_bytes(), "it is logged again")


def test_a_session_that_was_never_logged_is_from_now_on(world: World) -> None:
    world.start(ECHO, logged=False)
    world.tend()
    assert len(world.said) == 1
    assert stat.S_IMODE(world.log.stat().st_mode) == 0o600
    world.type("hello")
    eventually(lambda: b"said hello" in world.log.read_bytes(), "it is logged")


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe counts as quiet after a moment."""
    monkeypatch.setattr("services.spawner.sessions.output_logs.LOG_GROWS_WITHIN_S", 0.5)


@pytest.mark.usefixtures("soon")
def test_a_stopped_writer_is_woken_and_nothing_is_lost(world: World) -> None:
    """A writer that is stopped, by a debugger or a death of ours in the midst of a rotation, is a pipe gone quiet."""
    world.start(ECHO)
    world.type("before")
    eventually(lambda: b"said before" in world.log.read_bytes(), "it is logged")
    writers = world.writers()
    world.tend()
    for writer in writers:
        writer.send_signal(signal.SIGSTOP)

    def was_said() -> bool:
        world.type("meanwhile")
        world.tend()
        return bool(world.said)

    eventually(was_said, "the quiet pipe is noticed")
    assert "had been stopped, and was woken" in world.said[0]
    eventually(lambda: b"said meanwhile" in world.log.read_bytes(), "what waited is logged")
    assert world.pane().piped
    assert world.writers() == writers


@pytest.mark.usefixtures("soon")
def test_a_pipe_that_leads_elsewhere_is_made_anew(world: World) -> None:
    """Somebody moved the log away, or piped the pane to a file of their own: tmux still says that there is a pipe."""
    world.start(ECHO)
    world.type("before")
    eventually(lambda: b"said before" in world.log.read_bytes(), "it is logged")
    world.tend()
    world.log.rename(world.home / "taken away")
    world.log.write_text("a new one")
    world.tend()

    def was_said() -> bool:
        world.type("meanwhile")
        world.tend()
        return bool(world.said)

    eventually(was_said, "the quiet pipe is noticed")
    assert "did not grow while it wrote to its screen" in world.said[0]
    world.type("after")
    eventually(lambda: b"said after" in world.log.read_bytes(), "it is logged again")


@pytest.mark.usefixtures("soon")
def test_an_agent_that_is_silent_while_keys_are_pressed_is_left_in_peace(world: World) -> None:
    world.start("import os, time\nos.system('stty -echo')\nprint('ready', flush=True)\ntime.sleep(100)")
    eventually(lambda: b"ready" in world.log.read_bytes(), "it is ready")
    world.tend()
    end = time.monotonic() + 3.5
    while time.monotonic() < end:
        world.type("keys")
        world.tend()
        time.sleep(0.1)
    assert world.said == []


def test_a_removed_log_is_made_again(world: World) -> None:
    world.start(ECHO)
    eventually(world.writers, "the writer runs")
    world.log.unlink()
    world.tend()
    assert len(world.said) == 1
    world.type("again")
    eventually(lambda: b"said again" in world.log.read_bytes(), "it is logged again")


def test_a_full_disk_is_told_and_passes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.spawner.sessions.output_logs.FIRST_RETRY_AFTER_S", 0.2)
    world.log.parent.mkdir()
    world.log.symlink_to("/dev/full")  # each write fails as on a full disk
    world.start(ECHO)
    world.write_until_the_pipe_breaks()
    world.tend()
    assert len(world.said) == 1
    world.log.unlink()

    def is_logged() -> bool:
        world.tend()
        world.type("found")
        return world.log.exists() and b"said found" in world.log.read_bytes()

    eventually(is_logged, "it is logged again")
    assert len(world.said) <= 2


def test_a_disk_without_room_is_waited_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.start(ECHO, logged=False)
    world.keeper.pipe_for("builder")
    with monkeypatch.context() as patch:
        patch.setattr("services.spawner.sessions.output_logs.ROOM_BYTES", 1 << 80)
        for _ in range(3):
            world.tend()
    assert len(world.said) == 1
    assert "its disk is full" in world.said[0]
    assert not world.pane().piped
    world.tend()
    assert world.pane().piped
    assert "from now on" in world.said[1]


def test_looking_after_many_logs_costs_little(world: World) -> None:
    pane = world.start(ECHO)
    many = [
        Pane(**{name: getattr(pane, name) for name in pane.__slots__} | {"agent": f"agent{number}", "piped": True})
        for number in range(100)
    ]
    for each in many:
        world.keeper.pipe_for(each.agent or "")
    world.keeper.tend(many, time.time())
    start = time.process_time()
    assert world.keeper.tend(many, time.time()) == []
    assert time.process_time() - start < 0.05
