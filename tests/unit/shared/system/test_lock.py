"""The lock: one living holder, told by the kernel and not by what a file says."""

import errno
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.errors import Retryable
from shared.system.lock import AlreadyRunning, hold, holder

ROOT = Path(__file__).parents[4]
HOLD = """
import os, sys
from pathlib import Path
from shared.system.lock import hold
held = hold(Path(sys.argv[1]))
{then}
print("held", flush=True)
sys.stdin.read()
"""
BECOME = "held.survive_exec(); os.execvp('sh', ['sh', '-c', 'echo held; exec cat'])"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "job.lock"


def holding(path: Path, then: str = "") -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD.format(then=then), str(path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.fixture(params=["", BECOME], ids=["python", "after-exec"])
def other(request: pytest.FixtureRequest, path: Path) -> Iterator[subprocess.Popen[str]]:
    with holding(path, request.param) as process:
        yield process
        process.kill()


def test_a_missing_lock_file_has_no_holder(path: Path) -> None:
    assert holder(path) is None
    assert not path.exists(), "looking leaves no trace"


def test_a_held_lock_names_its_holder(path: Path) -> None:
    with hold(path):
        assert holder(path) == os.getpid()
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
    assert holder(path) is None
    assert path.exists(), "deleting it would race with the next holder"


def test_a_second_holder_is_refused_with_a_sentence(path: Path) -> None:
    with (
        hold(path),
        pytest.raises(AlreadyRunning, match=rf"another broker \(pid {os.getpid()}\) already runs") as error,
    ):
        hold(path, "broker")
    assert error.value.pid == os.getpid()


def test_another_process_holds_it_until_it_dies(path: Path, other: subprocess.Popen[str]) -> None:
    assert holder(path) == other.pid
    with pytest.raises(AlreadyRunning, match=f"pid {other.pid}"):
        hold(path)
    other.kill()
    other.wait()
    assert holder(path) is None
    hold(path).release()


def test_a_pid_left_in_the_file_means_nothing(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(f"{os.getpid()}\n")
    assert holder(path) is None


def test_a_look_that_comes_in_between_does_not_keep_a_holder_out(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hold(path).release()
    look = os.open(path, os.O_RDONLY)
    fcntl.flock(look, fcntl.LOCK_SH)
    monkeypatch.setattr(time, "sleep", lambda _: os.close(look))
    with hold(path):
        assert holder(path) == os.getpid()


def test_a_file_deleted_before_it_was_locked_is_not_mistaken_for_the_lock(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fcntl.flock

    def flock_too_late(descriptor: int, kind: int) -> None:
        monkeypatch.setattr(fcntl, "flock", real)
        path.unlink()
        real(descriptor, kind)

    monkeypatch.setattr(fcntl, "flock", flock_too_late)
    with hold(path) as held:
        assert os.path.samestat(path.stat(), os.fstat(held.descriptor))


def test_a_holder_without_a_pid_is_asked_again_later(path: Path) -> None:
    with hold(path):
        path.write_text("")
        with pytest.raises(Retryable, match="has not written its pid"):
            holder(path)


def test_a_full_disk_leaves_no_lock_without_a_pid(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.pwrite", no_room)
    with pytest.raises(OSError, match="No space"):
        hold(path)
    assert holder(path) is None
