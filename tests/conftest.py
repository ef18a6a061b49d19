"""For all tests."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from shared.system.clock import CLOCK_HISTORY

# Machines are noisy: how long one example takes is no reason to fail.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(autouse=True)
def own_clock() -> Iterator[None]:
    """A test may set the clock that its process goes by; the next one goes by the machine's again."""
    known = CLOCK_HISTORY.known
    yield
    CLOCK_HISTORY.follow(known)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what spends minutes waiting, so that nothing else waits for it in the end."""
    items.sort(key=lambda item: item.get_closest_marker("waits_long") is None)
