"""A model per test."""

from collections.abc import Iterator

import pytest

from tests.real_agents.model import Model


@pytest.fixture
def model() -> Iterator[Model]:
    """Serves until the test is over; what it was asked stays to be looked at."""
    with Model().serving() as serving:
        yield serving
