"""Agents in panes without a stamp: somebody started them by hand. Reported once, then adopted unless people object."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from services.reconciler.classification import unregistered
from services.reconciler.examination import Look
from shared.agents.identity import ConversationIdentity, identify
from shared.agents.recognition import agent_in
from shared.contract.commands import Adopt, Reply
from shared.contract.events.drift import Unregistered
from shared.contract.ids import as_id
from shared.fleet import Fleet
from shared.messaging.journal import Journal
from shared.runtime.turn import Turn
from shared.system.processes import Process
from shared.system.tmux import Pane

SETTLES_S = 3.0
"""A program in a person's pane is no agent of anybody's before it has run for so long."""
GOOD_FOR_S = 2.5
"""How long one look into such a pane is good."""


@dataclass(frozen=True)
class Stranger:
    """An agent that runs in tmux and bears no stamp."""

    pane: Pane
    backend: str
    process: Process
    alone: bool
    """Whether its session has no other pane."""
    identity: ConversationIdentity | None = None


Key = tuple[str, int, str]
"""Pane, process and program: with another one, a pane is looked into again."""


@dataclass
class UnstampedPanes:
    _seen: dict[Key, tuple[float, Stranger | None]] = field(default_factory=dict)
    next_look: float | None = None
    """When one that has just been started is to be looked at again."""

    def look(self, fleet: Fleet, panes: Sequence[Pane], look: Look, now: float) -> Iterator[Stranger]:
        self.next_look = None
        # One that somebody told a fleet to forget is left alone until somebody asks for it.
        unstamped = [pane for pane in panes if not (pane.fleet or pane.dead or pane.left)]
        keys = {_key(pane) for pane in unstamped}
        self._seen = {key: seen for key, seen in self._seen.items() if key in keys}
        for pane in unstamped:
            at, stranger = self._seen.get(_key(pane), (float("-inf"), None))
            if not 0 <= now - at < GOOD_FOR_S:
                alone = sum(other.session_id == pane.session_id for other in panes) == 1
                stranger = self._into(fleet, pane, look, now, alone=alone)
            if stranger is not None:
                yield stranger

    def _into(self, fleet: Fleet, pane: Pane, look: Look, now: float, *, alone: bool) -> Stranger | None:
        processes = look()
        found = agent_in(processes, fleet.backends, pane.pid)
        if found is not None and abs(now - found[1].started) < SETTLES_S:
            self._look_again(found[1].started + SETTLES_S)
            return None
        stranger = None
        if found is None and _key(pane) not in self._seen:
            self._look_again(now + SETTLES_S)  # it may be a shell that is just about to start one
        if found is not None:
            backend, process = found
            identity = identify(backend, fleet.backends[backend], processes, process, Path(pane.path))
            stranger = Stranger(pane, backend, process, alone, identity)
        self._seen[_key(pane)] = (now, stranger)
        return stranger

    def _look_again(self, at: float) -> None:
        self.next_look = at if self.next_look is None else min(at, self.next_look)

    def forget(self) -> None:
        self._seen.clear()


def _key(pane: Pane) -> Key:
    return (pane.pane_id, pane.pid, pane.command)


FOUND = "found:"
"""Remembered: each one that was told of, by its process."""
LOST_S, REFUSED_S = 60.0, 600.0
"""When one is asked for again that was adopted and bears no stamp, or that was refused under a second name too."""
NAMES_AT_MOST = 5
"""So many names are known to have been refused; then the first is tried again."""


@dataclass(frozen=True)
class ReportedStranger:
    key: str
    stranger: Stranger
    event: Unregistered
    kept: dict[str, Any] | None
    """What is remembered of it, if it was told of before."""
    asks: bool
    """Whether its adoption is to be asked for now."""
    refused: tuple[str, ...] = ()
    """Names under which it was not adopted."""


class ForeignAgents:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def find(
        self, turn: Turn, fleet: Fleet, strangers: list[Stranger], taken: Collection[str]
    ) -> Iterator[ReportedStranger]:
        """All that are somebody's business, under the names that they would have."""
        settings = fleet.declared.adoption
        names = set(taken)
        for stranger in strangers:
            if any(fnmatchcase(stranger.pane.session, pattern) for pattern in settings.ignore):
                continue
            key = _process_key(stranger.process)
            kept = turn.recall(key)
            asks, refused = self._next(kept, turn.now) if kept is not None else (True, ())
            keeps_name = kept is not None and kept["agent"] not in refused
            name = kept["agent"] if keeps_name else name_for(stranger, fleet, names | {*refused})
            names.add(name)
            event = unregistered(name, stranger.pane, stranger.backend, stranger.identity, adopts=settings.found)
            yield ReportedStranger(key, stranger, event, kept, asks, refused)

    def _next(self, kept: dict[str, Any], now: datetime) -> tuple[bool, tuple[str, ...]]:
        """Whether to ask for one again, and which names would be of no use."""
        refused: tuple[str, ...] = tuple(kept.get("refused", ()))
        if kept["asked"] is None:
            return True, refused
        answer = self._answer(kept["asked"])
        if answer is None:
            return False, refused
        if answer.ok:  # and yet it bears no stamp: it lost it, or is about to get it
            return not _is_within(kept, now, LOST_S), refused
        if answer.code == "expired":
            return True, refused
        if refused and _is_within(kept, now, REFUSED_S):
            return False, refused
        return True, (*refused, kept["agent"])[-NAMES_AT_MOST:]

    def report(self, turn: Turn, found: ReportedStranger) -> None:
        """Tell of one that is new, and have it adopted. Who could not be asked then is asked again."""
        event, kept = found.event, found.kept
        if kept is None:
            turn.emit(event)
            kept = {"agent": event.agent, "asked": None}
        if found.asks and event.adopts:
            pane = None if found.stranger.alone else event.pane
            command = Adopt(agent=event.agent, session=event.session, pane=pane, backend=event.backend, found=True)
            asked = turn.send_command(command, "found running in tmux")
            kept = {"agent": event.agent, "asked": asked, "at": turn.now.timestamp(), "refused": list(found.refused)}
        if kept != found.kept:
            turn.remember(found.key, kept)

    def forget_gone(self, turn: Turn, present: Collection[str]) -> None:
        """Not before all is surely seen: a process that is gone never comes again."""
        for key, kept in turn.memory.items():
            if not key.startswith(FOUND) or kept is None or key in present:
                continue
            if not (self._is_adopted(kept) or _is_within(kept, turn.now, LOST_S)):
                turn.remember(key, None)

    def _is_adopted(self, kept: dict[str, Any]) -> bool:
        """Whether it is being adopted, so that it is no stranger any more, or not for long."""
        return kept["asked"] is not None and self._answer(kept["asked"]) is None

    def _answer(self, command_id: str) -> Reply | None:
        said = self._journal.requests.answer_to(command_id, "spawner")
        return Reply.model_validate_json(said) if said is not None else None


def _process_key(process: Process) -> str:
    """What is its own for ever: the clock may be set between two looks, and what is counted from it with it."""
    return f"{FOUND}{process.pid}-{f'{process.started:.2f}' if process.ticks is None else process.ticks}"


def _is_within(kept: dict[str, Any], now: datetime, seconds: float) -> bool:
    """Whether it was asked for so short a time ago. What was in the future, before the clock was set, is long ago."""
    at: float = kept.get("at", float("-inf"))
    return 0 <= now.timestamp() - at < seconds


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
