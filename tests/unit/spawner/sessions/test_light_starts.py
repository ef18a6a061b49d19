"""Which starts are light: by what a program wants of the processors, each counted once."""

import os
import signal
import subprocess
from pathlib import Path

from services.spawner.sessions.light_starts import LOOKED_AT_FOR_S, RecentStarts, wanted_processor_s
from tests.fixtures.broker import wait_until


class Programs:
    """Programs that want so much of a processor; those that are not here are gone."""

    def __init__(self, **shares: float) -> None:
        self.now = 100.0
        self.shares = {int(pid[1:]): share for pid, share in shares.items()}
        self.starts = RecentStarts(self.wanted, lambda: self.now)
        for pid in self.shares:
            self.starts.started(pid)

    def wanted(self, pid: int) -> float | None:
        return self.shares[pid] * (self.now - 100.0) if pid in self.shares else None

    def after(self, seconds: float) -> int:
        self.now = 100.0 + seconds
        return self.starts.count_light()


def test_a_light_program_counts_once_and_not_before_it_was_seen_for_a_while() -> None:
    programs = Programs(p1=0.1, p2=0.1)
    assert programs.after(0.05) == 0
    assert programs.after(0.2) == 2
    assert programs.after(0.4) == 0
    assert not programs.starts.are_watched


def test_a_heavy_program_counts_when_it_has_become_light() -> None:
    programs = Programs(p1=0.9)
    assert programs.after(1.0) == 0
    programs.shares[1] = 0.45  # what it has wanted by the end of the next second: nothing more
    assert programs.after(2.0) == 1


def test_what_has_ended_or_stays_heavy_is_no_longer_looked_at() -> None:
    programs = Programs(p1=0.9, p2=0.1)
    del programs.shares[2]
    assert programs.after(1.0) == 0
    assert programs.starts.are_watched
    assert programs.after(LOOKED_AT_FOR_S + 1) == 0
    assert not programs.starts.are_watched


def test_linux_says_what_a_program_wants() -> None:
    assert (wanted_processor_s(os.getpid()) or 0.0) > 0.0
    assert wanted_processor_s(2**22 + 1) is None


def test_a_wrapper_wants_what_its_program_wants() -> None:
    wrapper = subprocess.Popen(["sh", "-c", "while :; do :; done & wait"], start_new_session=True)
    try:
        wait_until(lambda: (wanted_processor_s(wrapper.pid) or 0.0) > 0.2, "what the program below it has wanted")
        own = Path(f"/proc/{wrapper.pid}/schedstat").read_text().split()
        assert int(own[0]) < 0.2e9
    finally:
        os.killpg(wrapper.pid, signal.SIGKILL)
        wrapper.wait()
