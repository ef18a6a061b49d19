"""What the page is given: cards, comments and the fleet as JSON documents."""

from datetime import UTC, datetime
from typing import Any

from services.board.cards import CardContext
from services.board.memory import StoredComment
from shared.client.presence import PresenceReport
from shared.client.processes import BROKER, pids
from shared.client.snapshot import ALONE, DOWN, UP, ProcessStatus, Snapshot
from shared.contract.states import CardState, Presence

NO_BROKER = "down: services go on by polling, and commands go through the journal"


def card_document(card: CardState) -> dict[str, Any]:
    return card.model_dump(mode="json")


def comment_document(card: str, comment: StoredComment) -> dict[str, Any]:
    return {
        "card": card,
        "number": comment.number,
        "time": datetime.fromtimestamp(comment.time, UTC).isoformat(),
        "kind": comment.kind.removeprefix("monitoring_"),
        "by": comment.by,
        "about": comment.about,
        "tone": comment.tone.value,
        "urgency": comment.urgency.value,
        "text": comment.text,
        "recorded": comment.recorded,
        "found": comment.found,
        "times": comment.times,
    }


def fleet_document(
    context: CardContext, presence: PresenceReport | None, fault: str, tmux_fault: str = ""
) -> dict[str, Any]:
    """The fleet's name, its processes and what is wrong. `presence` is None while no broker answers."""
    fleet = context.fleet
    processes = Snapshot(fleet, presence, pids(fleet), {}).processes()
    is_up = presence is not None
    return {
        "name": fleet.path.parent.name,
        "host": fleet.space.host,
        "broker": {"up": is_up, "said": "up" if is_up else NO_BROKER},
        "services": [_process(each, broker_answers=is_up) for each in processes if each.name != BROKER],
        "tmux": {"up": not tmux_fault, "said": tmux_fault},
        "faults": [line for line in fault.splitlines() if line],
    }


def _process(process: ProcessStatus, *, broker_answers: bool) -> dict[str, str]:
    said = process.reason or ("start it with: muster up" if process.status == DOWN else "")
    # What the board says of itself does not come back to it.
    is_up = process.status == UP or (process.name == "board" and process.status == ALONE and broker_answers)
    return {"name": process.name, "status": Presence.ONLINE.value if is_up else process.status, "said": said}
