"""Bringing one text into an agent's input box, whole, and submitting it once: what to do next. Pure.

Every stage is in the journal before it is acted on (`texts` does both). After a crash the screen tells what was done:
an empty box was not pasted into, or was submitted; a box that holds the text was not submitted yet.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Generic, Literal, TypeVar

from shared.fleet.backend import Backend
from shared.runtime.memory import MemoryTable
from shared.runtime.moments import Moment
from shared.screen import ScreenReading, holds, shows_placeholder

Confirmed = Literal["transcript", "screen", "none"]
U = TypeVar("U")

FIRST_LOOK_AFTER_S, LOOK_EVERY_S = 0.01, 0.1
"""After an action, looks are twice as far apart each time, up to this."""
LOOK_EVERY_WHILE_BLOCKED_S = 1.0
CLEAR_WORKS_WITHIN_S = 0.3
"""A box that shows the same text after so long was not cleared: the keys are pressed again."""
PASTE_MAY_LAG_S = 1.0
"""After a crash, a box may not show for so long what was pasted."""
PASTE_SHOWS_WITHIN_S = 4.0
"""A paste that is not in the box by then did not arrive."""
SUBMIT_WORKS_WITHIN_S = 2.0
"""A text that is still in the box by then was not submitted: the key is pressed again."""
SUBMIT_WORKS_AT_MOST_S = 10.0
"""The same, while the agent writes nothing: it may hang, and keys would pile up."""
RECORDED_WITHIN_S = 4.0
"""How long to wait for the text in the agent's own record."""
DRAFT_IS_LEFT_AFTER_S = 12.0
"""A text of Muster's own waits so long for a person who may be typing. A draft that is unchanged by then is cleared."""
MENU_CLOSES_WITHIN_S = 2.0
"""A menu that is still there by then did not take the key."""
MOST_CLEARS, MOST_PASTES, MOST_PRESSES, MOST_MENU_KEYS = 12, 3, 4, 3


IT_WORKS = "the agent works by now, and the text was meant for one that is idle: it was not sent"
TAKEN_AWAY = "somebody emptied the input box while the text was in it; look whether it was sent"


class DeliveryStage(StrEnum):
    WAITING = "waiting"  # for an empty input box
    PASTING = "pasting"  # the paste is next, or was just made
    PASTED = "pasted"  # it should appear in the box
    TRIMMING = "trimming"  # the key that has to follow a placeholder is next, or was just pressed
    SUBMITTING = "submitting"  # the submit key is next, or was just pressed
    SUBMITTED = "submitted"  # the agent should have taken it


INTENTS = (DeliveryStage.PASTING, DeliveryStage.TRIMMING, DeliveryStage.SUBMITTING)
"""What follows these is typed; so they are committed first."""
NOT_SENT_YET = (DeliveryStage.WAITING, DeliveryStage.PASTING, DeliveryStage.PASTED, DeliveryStage.TRIMMING)


@dataclass(frozen=True)
class Delivery:
    """How far a text has come."""

    id: str
    spawn: str
    since: Moment
    """When the stage began."""
    stage: DeliveryStage = DeliveryStage.WAITING
    clears: int = 0
    cleared_at: Moment = 0.0
    cleared: str = ""
    """When the box was last cleared, and what was in it."""
    pastes: int = 0
    presses: int = 0
    leaves: int = 0
    left_at: Moment = 0.0
    """When a key was last pressed to leave a menu."""
    draft: str = ""
    drafted_at: Moment = 0.0
    """A person's draft in the box, and since when it has not changed."""
    answered: bool = False
    """Whether a menu was answered and the agent goes on by that: then the text is not needed."""
    shown: bool = False
    """Whether the box was seen to hold the text since it was pasted."""
    mark: Mapping[str, Any] | None = None
    """How long the agent's records were when this began."""

    def to(self, stage: DeliveryStage, now: float, **changes: Any) -> "Delivery":
        return replace(self, stage=stage, since=now, **changes)


DELIVERIES = MemoryTable("delivery:", Delivery)
"""The text that is under way, by agent."""


@dataclass(frozen=True, slots=True)
class DeliveryWait:
    """Nothing can be done now. A reason is said to people."""

    look_after_s: float = LOOK_EVERY_S
    reason: str = ""


@dataclass(frozen=True, slots=True)
class DeliveryAct(Generic[U]):
    """Do this, and remember how far the text is then."""

    after: U
    what: Literal["nothing", "leave", "resume", "clear", "paste", "trim", "submit"] = "nothing"


@dataclass(frozen=True, slots=True)
class Delivered:
    confirmed: Confirmed
    answered: bool = False
    """Whether a menu was answered instead."""


@dataclass(frozen=True, slots=True)
class DeliveryFailed:
    reason: str


Step = DeliveryWait | DeliveryAct[U] | Delivered | DeliveryFailed


@dataclass(frozen=True, slots=True)
class DeliveryInput:
    backend: Backend
    text: str
    """What is pasted."""
    reading: ScreenReading
    now: float
    only_idle: bool = False
    if_idle: bool = False
    """Whether it is not sent at all to an agent that works."""
    leaves_menu: bool = False
    recorded: bool | None = None
    """Whether the agent's own record of the conversation has the text; None where it keeps none that can be read."""
    wrote_at: float = float("inf")
    """When the agent last wrote to its terminal."""
    press_once: bool = False
    """Whether the submit key could mean something else the second time."""
    ours: bool = True
    """Whether this process brought the delivery to its stage. If not, its action may or may not have been done."""

    @property
    def blind(self) -> bool:
        """Whether nothing can be told from the screen."""
        return self.backend.screen.box is None

    @property
    def holds_it(self) -> bool:
        return self.reading.box is not None and holds(self.reading.box, self.text, self.backend.screen.placeholder)

    @property
    def wants_trimming(self) -> bool:
        """Whether the box shows a placeholder after which a key has to be pressed."""
        placeholder = shows_placeholder(self.reading.box or "", self.backend.screen.placeholder)
        return placeholder and bool(self.backend.typing.after_placeholder)

    @property
    def leavable(self) -> bool:
        """Whether a menu stands in the way that may be left or answered, and can be."""
        return self.leaves_menu and bool(self.reading.leave or self.reading.resume)


def advance(delivery: Delivery, seen: DeliveryInput) -> Step[Delivery]:
    """The next step. Never types where no input box is seen, never submits what is not in it."""
    if seen.recorded:
        return Delivered("transcript")  # whoever submitted it
    if seen.if_idle and seen.reading.working and (seen.holds_it or delivery.stage in NOT_SENT_YET):
        return Delivered("screen", answered=True) if delivery.answered else _withdraw(delivery, seen)
    match delivery.stage:
        case DeliveryStage.WAITING:
            return _waiting(delivery, seen)
        case DeliveryStage.PASTING:
            return _pasting(delivery, seen)
        case DeliveryStage.PASTED:
            return _pasted(delivery, seen)
        case DeliveryStage.TRIMMING:
            return _trimming(delivery, seen)
        case DeliveryStage.SUBMITTING:
            return _submitting(delivery, seen)
        case DeliveryStage.SUBMITTED:
            return _submitted(delivery, seen)


def obstacle(seen: DeliveryInput) -> str:
    """Why nothing may be typed now; empty when it may."""
    if seen.reading.dialog is not None:
        return f"{seen.reading.dialog.says} is on the screen: answer it first"
    if seen.reading.box is None:
        return "the agent shows no input box"
    if seen.reading.working and (seen.only_idle or not seen.backend.typing.while_working):
        return "the agent is working"
    return ""


def _withdraw(delivery: Delivery, seen: DeliveryInput) -> Step[Delivery]:
    """The agent works: take back what is in its box already, and give up."""
    if seen.holds_it and delivery.clears < MOST_CLEARS:
        return _clear(delivery, seen)
    return DeliveryFailed(IT_WORKS)


def _clear(delivery: Delivery, seen: DeliveryInput) -> Step[Delivery]:
    """Press the keys that clear the box, unless it may not show yet that they were pressed."""
    box, cleared_s = seen.reading.box or "", seen.now - delivery.cleared_at
    if delivery.clears and box == delivery.cleared and 0 <= cleared_s < CLEAR_WORKS_WITHIN_S:
        return DeliveryWait(_look_soon(cleared_s))
    return DeliveryAct(replace(delivery, clears=delivery.clears + 1, cleared_at=seen.now, cleared=box), "clear")


def _leave(delivery: Delivery, seen: DeliveryInput) -> Step[Delivery]:
    if 0 <= seen.now - delivery.left_at < MENU_CLOSES_WITHIN_S:
        return DeliveryWait()
    if delivery.leaves >= MOST_MENU_KEYS:
        return DeliveryFailed(
            f"{seen.reading.dialog.says if seen.reading.dialog else 'the menu'} does not take its key"
        )
    pressed = replace(delivery, leaves=delivery.leaves + 1, left_at=seen.now, answered=bool(seen.reading.resume))
    return DeliveryAct(pressed, "resume" if seen.reading.resume else "leave")


def _waiting(delivery: Delivery, seen: DeliveryInput) -> Step[Delivery]:
    if seen.leavable:
        return _leave(delivery, seen)
    if delivery.answered and seen.reading.dialog is None:
        return Delivered("screen", answered=True)
    if reason := obstacle(seen):
        return DeliveryWait(LOOK_EVERY_WHILE_BLOCKED_S if seen.reading.dialog else LOOK_EVERY_S, reason)
    if seen.if_idle and not seen.reading.empty and not delivery.clears:
        if delivery.draft != seen.reading.box:
            return DeliveryAct(replace(delivery, draft=seen.reading.box or "", drafted_at=seen.now))
        if 0 <= seen.now - delivery.drafted_at < DRAFT_IS_LEFT_AFTER_S:
            return DeliveryWait(LOOK_EVERY_WHILE_BLOCKED_S, "somebody is typing into the input box")
    if not seen.reading.empty or (seen.blind and delivery.clears == 0):
        if delivery.clears >= MOST_CLEARS:
            return DeliveryWait(LOOK_EVERY_WHILE_BLOCKED_S, "the input box holds a text that can't be cleared")
        return _clear(delivery, seen)
    return DeliveryAct(delivery.to(DeliveryStage.PASTING, seen.now))


def _pasting(delivery: Delivery, seen: DeliveryInput) -> Step[Delivery]:
    if seen.holds_it:
        return DeliveryAct(delivery.to(DeliveryStage.PASTED, seen.now))
    if not seen.ours and not seen.blind and 0 <= seen.now - delivery.since < PASTE_MAY_LAG_S:
        return DeliveryWait()  # it may have been pasted
    if obstacle(seen) or not seen.reading.empty or (seen.blind and not seen.ours):
        return DeliveryAct(_anew(delivery, seen))
    return DeliveryAct(delivery.to(DeliveryStage.PASTED, seen.now, pastes=delivery.pastes + 1), "paste")


def _pasted(delivery: Delivery, seen: DeliveryInput) -> Step[Delivery]:
    waited_s = _waited_s(delivery, seen)
    if seen.reading.dialog is not None:
        return DeliveryWait(LOOK_EVERY_WHILE_BLOCKED_S, obstacle(seen))
    if seen.holds_it or seen.blind:
        settled_s = waited_s if delivery.shown or seen.blind else 0.0
        if settled_s >= seen.backend.typing.settle_s:
            stage = DeliveryStage.TRIMMING if seen.wants_trimming else DeliveryStage.SUBMITTING
            return DeliveryAct(delivery.to(stage, seen.now, shown=True))
        if seen.holds_it and not delivery.shown:
            return DeliveryAct(delivery.to(DeliveryStage.PASTED, seen.now, shown=True))
        return DeliveryWait(min(LOOK_EVERY_S, seen.backend.typing.settle_s))
    if waited_s < PASTE_SHOWS_WITHIN_S:
        return DeliveryWait(_look_soon(waited_s))
    if delivery.shown and seen.reading.empty:
        return DeliveryFailed(TAKEN_AWAY)
    if delivery.pastes >= MOST_PASTES:
        return DeliveryFailed("the text does not appear whole in the agent's input box; it was not submitted")
    return DeliveryAct(_anew(delivery, seen))


def _trimming(delivery: Delivery, seen: DeliveryInput) -> Step[Delivery]:
    if seen.ours and seen.reading.box is None:
        return DeliveryWait(LOOK_EVERY_WHILE_BLOCKED_S, obstacle(seen))
    if seen.ours and seen.wants_trimming:
        return DeliveryAct(delivery.to(DeliveryStage.SUBMITTING, seen.now), "trim")
    return DeliveryAct(_anew(delivery, seen))  # nothing shows whether it was pressed


def _submitting(delivery: Delivery, seen: DeliveryInput) -> Step[Delivery]:
    if seen.blind and not seen.ours:
        return Delivered("none")  # it may have been submitted: twice would be worse than not at all
    if seen.holds_it or seen.blind:
        return DeliveryAct(delivery.to(DeliveryStage.SUBMITTED, seen.now, presses=delivery.presses + 1), "submit")
    if seen.reading.box is None:
        return DeliveryWait(LOOK_EVERY_WHILE_BLOCKED_S, obstacle(seen))  # the box will tell whether the key was pressed
    if not seen.ours and seen.reading.empty:
        return DeliveryAct(delivery.to(DeliveryStage.SUBMITTED, seen.now))
    if seen.reading.empty:
        return DeliveryWait() if _waited_s(delivery, seen) < SUBMIT_WORKS_WITHIN_S else DeliveryFailed(TAKEN_AWAY)
    return DeliveryAct(_anew(delivery, seen))


def _anew(delivery: Delivery, seen: DeliveryInput) -> Delivery:
    return delivery.to(DeliveryStage.WAITING, seen.now, clears=0, shown=False)


def _submitted(delivery: Delivery, seen: DeliveryInput) -> Step[Delivery]:
    waited_s = _waited_s(delivery, seen)
    if seen.blind:
        return Delivered("none")
    if seen.holds_it:
        wrote = seen.wrote_at > delivery.since
        if waited_s < (SUBMIT_WORKS_WITHIN_S if wrote else SUBMIT_WORKS_AT_MOST_S):
            return DeliveryWait(_look_soon(waited_s))
        if delivery.presses >= (1 if seen.press_once else MOST_PRESSES):
            return DeliveryFailed("the agent does not take the text: it stays in the input box")
        return DeliveryAct(delivery.to(DeliveryStage.SUBMITTING, seen.now))
    if seen.recorded is None and seen.reading.empty:
        return Delivered("screen")
    if waited_s < RECORDED_WITHIN_S:
        return DeliveryWait(_look_soon(waited_s))
    return Delivered("none" if seen.reading.box and seen.reading.box.strip() else "screen")


def _waited_s(delivery: Delivery, seen: DeliveryInput) -> float:
    """How long the stage lasts."""
    return seen.now - delivery.since


def _look_soon(waited_s: float) -> float:
    return min(LOOK_EVERY_S, max(FIRST_LOOK_AFTER_S, waited_s))
