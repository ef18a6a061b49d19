"""The two kinds of trouble: what may pass if we try again, and what a person must look at."""

from typing import ClassVar


class MusterError(Exception):
    """Something is wrong; the message is a sentence with what, where and what to do."""

    exit_code: ClassVar[int] = 1
    """What a program ends with when this ends it."""


class Retryable(MusterError):
    """Something outside did not answer; trying again later may help."""


def sentence_of(error: BaseException) -> str:
    """What went wrong, for people. What nobody foresaw is named by its kind."""
    return str(error) if isinstance(error, MusterError | OSError) else f"{type(error).__name__}: {error}"
