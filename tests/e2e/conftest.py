"""A fleet of two demo agents, up and running."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.fleet import RunningFleet


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[RunningFleet]:
    running = RunningFleet(tmp_path, {"builder": {"prompt": "build"}, "reviewer": {}})
    try:
        running.up()
        for agent in ("builder", "reviewer"):
            running.wait_for_status(agent, "running")
        yield running
    finally:
        running.end()
