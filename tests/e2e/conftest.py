"""A fleet of two demo agents, up and running."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fixtures.fleet import RunningFleet


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[RunningFleet]:
    with _two_agents(tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def shared_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFleet]:
    """For tests that leave it as they found it: a fleet takes longer to start than most of them to run."""
    with _two_agents(tmp_path_factory.mktemp("shared")) as running:
        yield running


@pytest.fixture
def renewed_fleet(shared_fleet: RunningFleet) -> RunningFleet:
    """For tests that change its agents and nothing else of it."""
    shared_fleet.renew()
    return shared_fleet


@contextmanager
def _two_agents(directory: Path) -> Iterator[RunningFleet]:
    running = RunningFleet(directory, {"builder": {"prompt": "build"}, "reviewer": {}})
    try:
        running.up()
        for agent in ("builder", "reviewer"):
            running.wait_until_ready(agent)
        yield running
    finally:
        running.end()
