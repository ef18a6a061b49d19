"""The spawner's answers, as the journal has them."""

from shared.commands import Reply
from shared.journal import Journal

SPAWNER = "spawner"


class Replies:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def to(self, command: str) -> Reply | None:
        """The answer to a command, by its id; None while there is none."""
        answer = self._journal.requests.answer_to(command, SPAWNER) if command else None
        return Reply.model_validate_json(answer) if answer is not None else None
