"""What an event is worth on a card: which cards it concerns, and what the comment says. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from shared.contract.envelope import AgentEvent, Event, Tone, Urgency
from shared.contract.events.drift import DriftEvent, DriftResolved
from shared.contract.events.lifecycle import AgentExited
from shared.contract.events.loops import LoopEvent
from shared.contract.topics import row_for
from shared.fleet import Fleet
from shared.fleet.declaration import AgentKind

LONGEST_TEXT = 1000
NOTABLE = (Urgency.NEWS, Urgency.ACTION)


@dataclass(frozen=True)
class CardNews:
    """A comment that an event is worth."""

    card: str
    about: str
    """The event's family and kind: `drift.missing`."""
    tone: Tone
    urgency: Urgency
    text: str
    recorded: str = ""
    found: str = ""
    same: str = ""
    """What makes another one the same. Until it changes, there is one comment."""
    ends: str = ""
    """The drift that is over by it: told again, it is news."""


def news_in(event: Event, fleet: Fleet) -> Iterator[CardNews]:
    """The comments that an event is worth.

    Every drift is worth one, and of the rest what is more than a log entry. A task that ended well has finished.
    """
    about = f"{row_for(event).family}.{event.kind}"
    match event:
        case DriftEvent():
            recorded, found = event.difference()
            same = f"{getattr(event, 'spawn', None)} {recorded} {found}"
            ends = f"drift.{event.drift}" if isinstance(event, DriftResolved) else ""
            text = event.sentence()
            yield _news(event, event.agent, about, text, recorded=recorded, found=found, same=same, ends=ends)
        case AgentExited(exit_status=0) if _is_task(fleet, event.agent):
            text = "finished: its program ended with status 0"
            yield CardNews(event.agent, about, Tone.GOOD, Urgency.NEWS, text)
        case AgentEvent() if event.urgency in NOTABLE:
            yield _news(event, event.agent, about, event.sentence())
        case LoopEvent() if event.urgency in NOTABLE:
            for agent in _agents_of(event, fleet):
                yield _news(event, agent, about, f"loop {event.loop}: {event.sentence()}")


def _news(event: Event, card: str, about: str, text: str, **more: str) -> CardNews:
    bounded = {name: value[:LONGEST_TEXT] for name, value in more.items()}
    said = f"{event.word().replace('_', ' ')}: {text}"
    return CardNews(card, about, event.tone, event.urgency, said[:LONGEST_TEXT], **bounded)


def _is_task(fleet: Fleet, agent: str) -> bool:
    declared = fleet.agents.get(agent)
    return declared is not None and declared.kind is AgentKind.TASK


def _agents_of(event: Any, fleet: Fleet) -> list[str]:
    """Whom an event of a loop concerns: the agent that it names, else all that play a role in the loop."""
    if agent := getattr(event, "agent", None):
        return [agent]
    loop = fleet.declared.loops.get(event.loop)
    return list(dict.fromkeys(loop.roles.values())) if loop is not None else []
