"""For all tests."""

import pytest
from hypothesis import settings

# Machines are noisy: how long one example takes is no reason to fail.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what spends minutes waiting, so that nothing else waits for it in the end."""
    items.sort(key=lambda item: item.get_closest_marker("waits_long") is None)
