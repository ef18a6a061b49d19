"""A world for the board, ended with the test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.board.world import BoardWorld


@pytest.fixture
def world(tmp_path: Path) -> Iterator[BoardWorld]:
    world = BoardWorld(tmp_path)
    yield world
    world.close()
