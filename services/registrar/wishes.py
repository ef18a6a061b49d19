"""What people typed behind `desired` in the file: asked of the spawner, and followed until it has answered."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from registry import AgentRecord
from services.registrar.book import Book
from shared.commands import Reply, Spawn, Stop
from shared.journal import Journal
from shared.states import Desired
from shared.turn import Turn

WISH = "wish:"
LOOKS_AGAIN = timedelta(seconds=1)
TYPED = "typed into registry.yaml"


@dataclass(frozen=True)
class Refusal:
    agent: str
    said: str


class Wishes:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def ask(self, turn: Turn, agent: str, wish: Desired, was: Desired) -> None:
        command = Stop(agent=agent) if wish is Desired.STOPPED else Spawn(agent=agent)
        command_id = turn.ask(command, TYPED)
        turn.remember(f"{WISH}{agent}", {"id": command_id, "wish": wish.value, "was": was.value})
        turn.again_at(turn.now + LOOKS_AGAIN)

    def follow(self, turn: Turn, book: Book) -> list[Refusal]:
        """See what became of them. One that was refused is taken back, in the file too."""
        refused = []
        for key, wish in {**turn.memory, **turn.kept}.items():
            if key.startswith(WISH) and wish is not None and key not in turn.kept:
                refused += self._follow(turn, book, key.removeprefix(WISH), wish)
        return refused

    def _follow(self, turn: Turn, book: Book, agent: str, wish: dict[str, Any]) -> list[Refusal]:
        said = self._journal.requests.answer_to(wish["id"], "spawner")
        if said is None:
            turn.again_at(turn.now + LOOKS_AGAIN)
            return []
        reply = Reply.model_validate_json(said)
        record = book.records.get(agent)
        still_wanted = record is not None and record.desired == wish["wish"]
        if reply.code == "expired" and still_wanted:
            # Nobody was there to hear it. What stands in a file is wanted until it is changed.
            self.ask(turn, agent, Desired(wish["wish"]), Desired(wish["was"]))
            return []
        turn.remember(f"{WISH}{agent}", None)
        if reply.ok or record is None or not still_wanted:
            return []
        book.put(agent, _without_wish(record, Desired(wish["was"])))
        return [Refusal(agent, reply.said)]


def _without_wish(record: AgentRecord, was: Desired) -> AgentRecord:
    return record.model_copy(update={"desired": was})
