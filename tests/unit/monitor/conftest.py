"""A world for the monitor, ended with the test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.monitor.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.journal.close()
