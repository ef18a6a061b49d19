"""The two kinds of trouble: what may pass if we try again, and what a person must look at."""

from typing import ClassVar


class MusterError(Exception):
    """Something is wrong; the message is a sentence with what, where and what to do."""

    exit_code: ClassVar[int] = 1
    """What a program ends with when this ends it."""


class Retryable(MusterError):
    """Something outside did not answer; trying again later may help."""
