"""What `muster` ends with, for scripts; an error that has a code of its own carries it (`MusterError.exit_code`)."""

FAILED = 1
USAGE = 2
NOT_ALL_UP = 3
UNDER_WAY = 75
"""A command was accepted and waits for something."""
INTERRUPTED = 130
