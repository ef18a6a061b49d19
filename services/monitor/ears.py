"""Hears the calls of hooks, each once: a call's file goes when what it told is remembered, and not before."""

from collections.abc import Mapping
from typing import Any

from services.monitor.hearing import Whereabouts, is_late
from services.monitor.subject import Subject
from shared.hooks.spool import AT_MOST, HookEvent, Spool
from shared.tmux import Pane
from shared.turn import Turn

HOOKED = "hooked:"


class Ears:
    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._taken: dict[str, list[HookEvent]] = {}
        """Calls that were heard in the last turn, by agent, and can go once it is seen that they are remembered."""
        self._strangers: dict[str, float] = {}
        """The files of calls of which it is not known whose they are, and when they were: hooks that a user has
        installed are called by all agents of that user, and some are adopted soon."""
        self._whereabouts: Whereabouts | None = None

    def hear(self, turn: Turn, known: Whereabouts, subjects: Mapping[str, Subject]) -> None:
        """Let each agent that is watched hear what its hooks told."""
        self._let_go_of_heard(turn, subjects)
        if known != self._whereabouts:
            self._whereabouts = known
            self._strangers.clear()  # somebody may be known by now
        now = turn.now.timestamp()
        events = self._spool.read(but=self._strangers)
        if len(events) == AT_MOST:
            turn.again_at(turn.now)  # there are more
        for event in events:
            agent = known.whose(event)
            subject = subjects.get(agent) if agent is not None else None
            if subject is None:
                self._strangers[event.file.name] = event.at
                continue
            subject.hear(event.payload, min(event.at, now), event.pid, now)
            self._taken.setdefault(subject.agent, []).append(event)
        late = [name for name, at in self._strangers.items() if is_late(at, now)]
        self._spool.drop(late)
        for name in late:
            del self._strangers[name]

    def remember(self, turn: Turn, subjects: Mapping[str, Subject], panes: Mapping[str, Pane]) -> None:
        """Keep what was heard, over restarts; nothing of those who are gone."""
        for agent, subject in subjects.items():
            if subject.hooked_anew or agent in self._taken:
                kept = document(subject)
                if turn.recall(f"{HOOKED}{agent}") != kept:
                    turn.remember(f"{HOOKED}{agent}", kept)
                subject.hooked_anew = False
        for key in [key for key, kept in turn.memory.items() if key.startswith(HOOKED) and kept]:
            if key.removeprefix(HOOKED) not in panes:
                turn.remember(key, None)

    def _let_go_of_heard(self, turn: Turn, subjects: Mapping[str, Subject]) -> None:
        """Remove the calls that the last turn heard, if it was not for nothing; else they are heard again."""
        for agent, events in self._taken.items():
            subject = subjects.get(agent)
            if subject is None or turn.memory.get(f"{HOOKED}{agent}") == document(subject):
                self._spool.done(events)
        self._taken = {}


def document(subject: Subject) -> dict[str, Any]:
    return {"spawn": subject.spawn, "hooked": subject.hooked.document(), "program": subject.program()}
