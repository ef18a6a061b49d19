"""The two kinds of trouble: what may pass if we try again, and what a person must look at."""


class MusterError(Exception):
    """Something is wrong; the message is a sentence with what, where and what to do."""


class Retryable(MusterError):
    """Something outside did not answer; trying again later may help."""
