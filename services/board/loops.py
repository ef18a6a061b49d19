"""How far each loop is: by its events, and for the page. Pure."""

from dataclasses import replace
from typing import Any

from services.board.memory import LoopProgress
from shared.contract.envelope import Envelope
from shared.contract.events.loops import PhaseAdvanced, PhaseDone, SequenceCompleted
from shared.fleet.loops import Loop


def after(progress: LoopProgress, envelope: Envelope[Any]) -> LoopProgress:
    """How far a loop is after one of its events."""
    at = envelope.time.timestamp()
    match envelope.data:
        case PhaseAdvanced(number=number, phase=phase):
            return LoopProgress(number, phase, since=at)
        case PhaseDone():
            return replace(progress, waits=True)
        case SequenceCompleted():
            return replace(progress, complete=True, waits=False, since=at)
    return progress


def loop_document(name: str, loop: Loop, progress: LoopProgress) -> dict[str, Any]:
    """A loop as the page draws it."""
    names = [phase.name for phase in loop.phases]
    number = names.index(progress.phase) + 1 if progress.phase in names else progress.number
    number = min(number, len(names))
    return {
        "loop": name,
        "phases": [
            {"name": phase, "state": _state(place, number, complete=progress.complete)}
            for place, phase in enumerate(names, start=1)
        ],
        "number": number,
        "complete": progress.complete,
        "waits": progress.waits,
        "since": progress.since,
        "said": _said(names, number, progress),
    }


def _state(place: int, number: int, *, complete: bool) -> str:
    if place < number or complete:
        return "done"
    return "current" if place == number else "to come"


def _said(names: list[str], number: int, progress: LoopProgress) -> str:
    if not names:
        return "it has no phases"
    if progress.complete:
        return f"all {len(names)} phases are done"
    if not number:
        return "not begun"
    waits = "; it waits for `muster phase next`" if progress.waits else ""
    return f"phase {number} of {len(names)}, {names[number - 1]}{waits}"
