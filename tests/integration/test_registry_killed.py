"""A writer that is killed at any instant leaves a whole file, which the next one goes on with."""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from registry import AgentRecord, RegistryFile, disk
from tests.unit.registry.samples import record

KILLS = 300
AGENTS = 40


def fork(work: Callable[[], None]) -> int:
    """A process of its own that does nothing else, without the cost of starting Python anew."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
    finally:
        os._exit(1)  # only a kill ends it: anything else is a fault of the work


def state(number: int) -> dict[str, AgentRecord]:
    """All records say the same number: a file of two states would show."""
    return {f"agent-{place}": record(pid=number, reason=f"state {number}") for place in range(AGENTS)}


def write_on(path: Path, began: Path) -> None:
    file = RegistryFile(path)
    number = next(iter(file.records().values())).pid or 0
    began.touch()
    while True:
        number += 1
        file.write(state(number))


@pytest.mark.timeout(120)
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_kill_at_any_instant_leaves_a_whole_file(tmp_path: Path) -> None:
    path, began = tmp_path / "registry.yaml", tmp_path / "began"
    RegistryFile(path).write(state(0))
    chance = random.Random(4)
    last, moved = 0, 0
    for _ in range(KILLS):
        began.unlink(missing_ok=True)
        before = disk.stamp(path)
        pid = fork(lambda: write_on(path, began))
        in_the_first_write = chance.random() < 0.5
        while not began.exists() if in_the_first_write else disk.stamp(path) == before:
            time.sleep(0.001)
            assert os.waitpid(pid, os.WNOHANG) == (0, 0), "the writer ended by itself: it could not go on"
        time.sleep(chance.uniform(0, 0.02))
        os.kill(pid, signal.SIGKILL)
        assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
        records = RegistryFile(path).records()
        number = records["agent-0"].pid
        assert number is not None
        assert number >= last
        assert records == state(number)
        left = {each.name for each in tmp_path.iterdir()} - {"registry.yaml", "began", disk.LOCK}
        assert len(left) <= 1, "what a killed writer leaves is cleaned up by the next one"
        assert all(name.startswith(".registry.yaml.new-") for name in left)
        moved += number > last
        last = number
    assert moved > KILLS / 3, "the writers were killed while they wrote, not before"
    RegistryFile(path).write(state(last + 1))
    assert {each.name for each in tmp_path.iterdir()} == {"registry.yaml", "began", disk.LOCK}
