"""A bare remote with one commit, a clone of it, and a station that is closed in the end."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.repositories import Clone, bare
from tests.integration.handoff.station import Station


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return bare(tmp_path / "remote.git")


@pytest.fixture
def clone(remote: Path, tmp_path: Path) -> Clone:
    clone = Clone(remote, tmp_path / "clone")
    clone.commit("begin", README_md="begin\n")
    clone.push()
    return clone


@pytest.fixture
def station(tmp_path: Path, remote: Path) -> Iterator[Callable[..., Station]]:
    """Makes one, with one loop on the remote unless others are named."""
    made: list[Station] = []

    def make(agents: dict[str, Any] | None = None, *, loops: dict[str, Any] | None = None, **loop: Any) -> Station:
        main = {"remote": str(remote), "roles": {"build": "builder", "review": "reviewer"}, **loop}
        made.append(Station(tmp_path, loops or {"main": main}, agents))
        return made[-1]

    yield make
    for each in made:
        each.close()
