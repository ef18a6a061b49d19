"""Agents that somebody started by hand: told of once, and put into the spawner's care unless people want otherwise."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from services.reconciler.sights import unregistered
from services.reconciler.unstamped import Stranger
from shared.commands import Adopt, Reply
from shared.events import Unregistered
from shared.fleet import Fleet
from shared.ids import as_id
from shared.journal import Journal
from shared.turn import Turn

FOUND = "found:"
"""Remembered: each one that was told of, by its process."""


@dataclass(frozen=True)
class Found:
    key: str
    stranger: Stranger
    event: Unregistered
    kept: dict[str, Any] | None
    """What is remembered of it, if it was told of before."""


class Strangers:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def find(self, turn: Turn, fleet: Fleet, strangers: list[Stranger], taken: Collection[str]) -> Iterator[Found]:
        """All that are somebody's business, under the names that they would have."""
        settings = fleet.declared.adoption
        names = set(taken)
        for stranger in strangers:
            if any(fnmatchcase(stranger.pane.session, pattern) for pattern in settings.ignore):
                continue
            key = f"{FOUND}{stranger.process.pid}-{stranger.process.started:.2f}"
            kept = turn.recall(key)
            name = kept["agent"] if kept is not None else name_for(stranger, fleet, names)
            names.add(name)
            event = unregistered(name, stranger.pane, stranger.backend, stranger.identity, adopts=settings.found)
            yield Found(key, stranger, event, kept)

    def report(self, turn: Turn, found: Found) -> None:
        """Tell of one that is new, and have it adopted. Who could not be asked then is asked again."""
        event, kept = found.event, found.kept
        if kept is None:
            turn.tell(event)
            kept = {"agent": event.agent, "asked": None}
        elif kept["asked"] is not None and not self._expired(kept["asked"]):
            return
        if event.adopts:
            pane = None if found.stranger.alone else event.pane
            command = Adopt(agent=event.agent, session=event.session, pane=pane, backend=event.backend, found=True)
            kept = {**kept, "asked": turn.ask(command, "found running in tmux")}
        if kept != found.kept:
            turn.remember(found.key, kept)

    def forget_gone(self, turn: Turn, present: Collection[str]) -> None:
        """Not before all is surely seen: a process that is gone never comes again."""
        for key, kept in turn.memory.items():
            if key.startswith(FOUND) and kept is not None and key not in present and not self._is_adopted(kept):
                turn.remember(key, None)

    def _is_adopted(self, kept: dict[str, Any]) -> bool:
        """Whether it is being adopted, so that it is no stranger any more, or not for long."""
        return kept["asked"] is not None and self._answer(kept["asked"]) is None

    def _expired(self, command_id: str) -> bool:
        answer = self._answer(command_id)
        return answer is not None and answer.code == "expired"

    def _answer(self, command_id: str) -> Reply | None:
        said = self._journal.requests.answer_to(command_id, "spawner")
        return Reply.model_validate_json(said) if said is not None else None


def name_for(stranger: Stranger, fleet: Fleet, taken: Collection[str]) -> str:
    """Its session's name, if that is free: it is what people know it by."""
    named = any(letter.isascii() and letter.isalnum() for letter in stranger.pane.session)
    session = as_id(stranger.pane.session) if named else stranger.backend
    declared = fleet.declared.agents.get(session)
    is_that_agent = declared is not None and fleet.agents[session].backend == stranger.backend
    wanted = session if stranger.alone else as_id(f"{session[:40]}-{stranger.backend}")
    names = [wanted, *(f"{wanted[:60]}-{number}" for number in range(2, 1000))]
    free = (
        name
        for name in names
        if name not in taken and (name not in fleet.agents or (name == session and is_that_agent))
    )
    return next(free, wanted)
