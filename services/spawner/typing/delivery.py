"""Bringing one text into an agent's input box, whole, and submitting it once: what to do next. Pure.

Every stage is remembered before it is acted on. After a crash the screen tells what had been done: a box that is empty
was not pasted into, or was submitted; a box that holds the text was not submitted yet.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Generic, Literal, TypeVar

from shared.fleet.backend import Backend
from shared.screen import ScreenReading, holds, shows_placeholder

Confirmed = Literal["transcript", "screen", "none"]
U = TypeVar("U")

LOOKS_EVERY_S = 0.1
WAITS_LOOKING_EVERY_S = 1.0
LAGS_S = 1.0
"""For so long after a crash, a box that seems empty may only not show yet what was pasted."""
SHOWS_WITHIN_S = 4.0
"""A paste that is not in the box by then did not arrive."""
TAKES_WITHIN_S = 2.0
"""A text that is still in the box by then was not submitted: the key is pressed again."""
TAKES_AT_MOST_S = 10.0
TOLD_WITHIN_S = 4.0
"""So long the agent's own record of the conversation is waited for."""
LEAVES_DRAFT_AFTER_S = 12.0
"""What nobody asked for waits so long for a person who may be typing; what stands there unchanged is left over."""
LEFT_WITHIN_S = 2.0
"""A menu that is still there by then did not take the key."""
CLEARS, PASTES, PRESSES, LEAVES = 12, 3, 4, 3
"""How often each is tried."""


IT_WORKS = "the agent works by now, and the text was meant for one that is idle: it was not sent"
TAKEN_AWAY = "somebody emptied the input box while the text was in it; look whether it was sent"


class DeliveryStage(StrEnum):
    WAITING = "waiting"  # for an empty input box
    PASTING = "pasting"  # the paste comes next, or was just made
    PASTED = "pasted"  # it should appear in the box
    TRIMMING = "trimming"  # what has to follow a placeholder is pressed next, or was just pressed
    SUBMITTING = "submitting"  # the key comes next, or was just pressed
    SUBMITTED = "submitted"  # the agent should have taken it


NOT_SENT_YET = (DeliveryStage.WAITING, DeliveryStage.PASTING, DeliveryStage.PASTED, DeliveryStage.TRIMMING)


@dataclass(frozen=True)
class Delivery:
    """How far a text has come. Kept over restarts."""

    id: str
    spawn: str
    since: float
    """When the stage began."""
    stage: DeliveryStage = DeliveryStage.WAITING
    clears: int = 0
    pastes: int = 0
    presses: int = 0
    leaves: int = 0
    left_at: float = 0.0
    """When a key was last pressed to leave a menu."""
    draft: str = ""
    drafted_at: float = 0.0
    """What somebody has in the box, and since when it is just that."""
    answered: bool = False
    """Whether a menu was answered by which the agent goes on: then the text is not needed."""
    shown: bool = False
    """Whether the box was seen to hold the text since it was pasted."""
    mark: Any = None
    """Where the agent's record of the conversation ended when this began."""

    @classmethod
    def read(cls, kept: dict[str, Any]) -> "Delivery":
        return cls(**{**kept, "stage": DeliveryStage(kept["stage"])})

    def to(self, stage: DeliveryStage, now: float, **changes: Any) -> "Delivery":
        return replace(self, stage=stage, since=now, **changes)


@dataclass(frozen=True, slots=True)
class DeliveryWait:
    """Nothing can be done now. With a reason, somebody should know."""

    look_after_s: float = LOOKS_EVERY_S
    reason: str = ""


@dataclass(frozen=True, slots=True)
class DeliveryAct(Generic[U]):
    """Do this, and remember how far it is then."""

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
    """Whether this process brought the delivery to its stage: else what was begun may or may not have been done."""

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
    if seen.holds_it and delivery.clears < CLEARS:
        return DeliveryAct(replace(delivery, clears=delivery.clears + 1), "clear")
    return DeliveryFailed(IT_WORKS)


def _leave(delivery: Delivery, seen: DeliveryInput) -> Step[Delivery]:
    if 0 <= seen.now - delivery.left_at < LEFT_WITHIN_S:
        return DeliveryWait()
    if delivery.leaves >= LEAVES:
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
        return DeliveryWait(WAITS_LOOKING_EVERY_S if seen.reading.dialog else LOOKS_EVERY_S, reason)
    if seen.if_idle and not seen.reading.empty and not delivery.clears:
        if delivery.draft != seen.reading.box:
            return DeliveryAct(replace(delivery, draft=seen.reading.box or "", drafted_at=seen.now))
        if 0 <= seen.now - delivery.drafted_at < LEAVES_DRAFT_AFTER_S:
            return DeliveryWait(WAITS_LOOKING_EVERY_S, "somebody is typing into the input box")
    if not seen.reading.empty or (seen.blind and delivery.clears == 0):
        if delivery.clears >= CLEARS:
            return DeliveryWait(WAITS_LOOKING_EVERY_S, "the input box holds a text that can't be cleared")
        return DeliveryAct(replace(delivery, clears=delivery.clears + 1), "clear")
    return DeliveryAct(delivery.to(DeliveryStage.PASTING, seen.now))


def _pasting(delivery: Delivery, seen: DeliveryInput) -> Step[Delivery]:
    if seen.holds_it:
        return DeliveryAct(delivery.to(DeliveryStage.PASTED, seen.now))
    if not seen.ours and not seen.blind and 0 <= seen.now - delivery.since < LAGS_S:
        return DeliveryWait()  # it may have been pasted
    if obstacle(seen) or not seen.reading.empty or (seen.blind and not seen.ours):
        return DeliveryAct(_anew(delivery, seen))
    return DeliveryAct(delivery.to(DeliveryStage.PASTED, seen.now, pastes=delivery.pastes + 1), "paste")


def _pasted(delivery: Delivery, seen: DeliveryInput) -> Step[Delivery]:
    waited_s = seen.now - delivery.since
    if seen.reading.dialog is not None:
        return DeliveryWait(WAITS_LOOKING_EVERY_S, obstacle(seen))
    if seen.holds_it and not delivery.shown:
        return DeliveryAct(delivery.to(DeliveryStage.PASTED, seen.now, shown=True))
    if seen.holds_it or seen.blind:
        if waited_s < seen.backend.typing.settle_s:
            return DeliveryWait(min(LOOKS_EVERY_S, seen.backend.typing.settle_s))
        return DeliveryAct(
            delivery.to(DeliveryStage.TRIMMING if seen.wants_trimming else DeliveryStage.SUBMITTING, seen.now)
        )
    if waited_s < SHOWS_WITHIN_S:
        return DeliveryWait()
    if delivery.shown and seen.reading.empty:
        return DeliveryFailed(TAKEN_AWAY)
    if delivery.pastes >= PASTES:
        return DeliveryFailed("the text does not appear whole in the agent's input box; it was not submitted")
    return DeliveryAct(_anew(delivery, seen))


def _trimming(delivery: Delivery, seen: DeliveryInput) -> Step[Delivery]:
    if seen.ours and seen.reading.box is None:
        return DeliveryWait(WAITS_LOOKING_EVERY_S, obstacle(seen))
    if seen.ours and seen.wants_trimming:
        return DeliveryAct(delivery.to(DeliveryStage.SUBMITTING, seen.now), "trim")
    return DeliveryAct(_anew(delivery, seen))  # nothing shows whether it was pressed


def _submitting(delivery: Delivery, seen: DeliveryInput) -> Step[Delivery]:
    if seen.blind and not seen.ours:
        return Delivered("none")  # it may have been submitted: twice would be worse than not at all
    if seen.holds_it or seen.blind:
        return DeliveryAct(delivery.to(DeliveryStage.SUBMITTED, seen.now, presses=delivery.presses + 1), "submit")
    if seen.reading.box is None:
        return DeliveryWait(WAITS_LOOKING_EVERY_S, obstacle(seen))  # the box will tell whether the key was pressed
    if not seen.ours and seen.reading.empty:
        return DeliveryAct(delivery.to(DeliveryStage.SUBMITTED, seen.now))
    if seen.reading.empty:
        return DeliveryWait() if seen.now - delivery.since < TAKES_WITHIN_S else DeliveryFailed(TAKEN_AWAY)
    return DeliveryAct(_anew(delivery, seen))


def _anew(delivery: Delivery, seen: DeliveryInput) -> Delivery:
    return delivery.to(DeliveryStage.WAITING, seen.now, clears=0, shown=False)


def _submitted(delivery: Delivery, seen: DeliveryInput) -> Step[Delivery]:
    waited_s = seen.now - delivery.since
    if seen.blind:
        return Delivered("none")
    if seen.holds_it:
        # One that has written nothing since hangs, perhaps: keys would heap up, and be taken for something else.
        if waited_s < (TAKES_WITHIN_S if seen.wrote_at > delivery.since else TAKES_AT_MOST_S):
            return DeliveryWait()
        if delivery.presses >= (1 if seen.press_once else PRESSES):
            return DeliveryFailed("the agent does not take the text: it stays in the input box")
        return DeliveryAct(delivery.to(DeliveryStage.SUBMITTING, seen.now))
    if seen.recorded is None and seen.reading.empty:
        return Delivered("screen")
    if waited_s < TOLD_WITHIN_S:
        return DeliveryWait()
    return Delivered("none" if seen.reading.box and seen.reading.box.strip() else "screen")
