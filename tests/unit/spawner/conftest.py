from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.spawner.world import SpawnerWorld

MakeWorld = Callable[..., SpawnerWorld]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeWorld]:
    made: list[SpawnerWorld] = []

    def make(builder: dict[str, Any] | None = None, **settings: Any) -> SpawnerWorld:
        agents = {"builder": builder or {}, **settings.pop("agents", {})}
        made.append(SpawnerWorld(tmp_path, agents, **settings))
        return made[-1]

    yield make
    for world in made:
        world.close()
