"""For all tests."""

from hypothesis import settings

# Machines are noisy: how long one example takes is no reason to fail.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
