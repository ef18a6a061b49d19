"""The base errors: what may work when it is tried again, and what a person must look at."""

from typing import ClassVar


class MusterError(Exception):
    """An error for people: its message says what is wrong, where, and what to do."""

    exit_code: ClassVar[int] = 1
    """The exit code of a program that ends with this error."""


class Retryable(MusterError):
    """Something outside did not answer; trying again later may help."""


def sentence_of(error: BaseException) -> str:
    """An error for people. An unexpected one is shown with its type."""
    return str(error) if isinstance(error, MusterError | OSError) else f"{type(error).__name__}: {error}"
