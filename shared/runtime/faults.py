"""Faults about single subjects: each is logged when it begins or changes, not at every look."""

from shared.errors import MusterError, sentence_of
from shared.system.log import Log


class FaultLog:
    def __init__(self, log: Log | None = None) -> None:
        self._log = log
        self._known: dict[str, str] = {}

    def note(self, subject: str, error: Exception) -> None:
        said = sentence_of(error)
        if self._known.get(subject) == said:
            return
        self._known[subject] = said
        if self._log is None:
            return
        if isinstance(error, MusterError):
            self._log.error("passed over a subject in this turn", subject=subject, reason=said)
        else:
            self._log.failure("passed over a subject in this turn", error, subject=subject)

    def clear(self, subject: str) -> None:
        self._known.pop(subject, None)
