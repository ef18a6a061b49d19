"""Keys, interrupts and answers to dialogs: pressed, and seen to have worked.

The screen is remembered before a key is pressed. After a crash, a key is pressed again only if the screen still shows
exactly the same.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from services.spawner.commands.replies import by, defer
from services.spawner.typing.delivery import (
    LOOK_EVERY_WHILE_BLOCKED_S,
    Delivered,
    DeliveryAct,
    DeliveryFailed,
    DeliveryInput,
    DeliveryWait,
    Step,
)
from services.spawner.typing.texts import StepResult
from services.spawner.view import SpawnerView
from shared.contract.commands import Approve, Deny, Interrupt, Send
from shared.contract.events.lifecycle import AgentSent
from shared.errors import MusterError
from shared.fleet import Backend
from shared.fleet.backend import Dialog
from shared.runtime.memory import MemoryTable
from shared.runtime.moments import Moment
from shared.runtime.turn import PendingCommand
from shared.screen import ScreenReading, read_screen
from shared.screen.signs import fingerprint
from shared.system.tmux import NotTyped, Pane, Tmux

Purpose = Literal["approve", "deny", "answer", "interrupt", "keys"]
KEYS_WORK_WITHIN_S = 2.0
MOST_PRESSES = 3
MOST_PRESSES_OF_A_ROW = 1
"""What a second press would do is not known: the rows are the agent's own."""
LOOK_AFTER_PRESS_S = 0.1
REPLIES = {
    "approve": "{agent} was told yes",
    "deny": "{agent} was told no",
    "answer": "{agent} was answered",
    "interrupt": "{agent} was interrupted",
    "keys": "the keys were pressed in {agent}",
}


@dataclass(frozen=True)
class KeyPress:
    """How far a press has come."""

    id: str
    spawn: str
    what: Purpose
    since: Moment
    pressed: bool = False
    presses: int = 0
    seen: str = ""
    """The fingerprint of the screen before the press."""


KEY_PRESSES = MemoryTable("keys:", KeyPress)
"""The press that is under way, by agent."""


def begin(press: KeyPress, seen: DeliveryInput, meant: str | None = None) -> Step[KeyPress]:
    """Whether there is anything to press keys for. `meant` is the fingerprint of the only dialog to be answered."""
    reading = seen.reading
    match press.what:
        case "approve" | "deny" | "answer":
            if reading.dialog is None:
                return DeliveryFailed("there is no dialog on the agent's screen to answer")
            if meant is not None and meant != _print(seen):
                return DeliveryFailed(
                    f"{reading.dialog.says} is on the screen, but not the one that was meant: look again"
                )
            if press.what != "answer" and not keys_for(press.what, reading.dialog):
                return DeliveryFailed(
                    f"{reading.dialog.says} is on the screen: only a person at the terminal should answer it"
                )
        case "interrupt":
            if reading.dialog is not None:
                return DeliveryFailed(f"{reading.dialog.says} is on the screen: deny it, and the agent stops")
            if not reading.working and not seen.blind:
                return DeliveryFailed("the agent is not working, so there is nothing to interrupt")
    return DeliveryAct(replace(press, seen=_print(seen)))


def advance(press: KeyPress, seen: DeliveryInput) -> Step[KeyPress]:
    if press.what == "keys" or seen.blind:
        done = press.pressed or not seen.ours  # they may have been pressed: twice would be worse than not at all
        return Delivered("none") if done else DeliveryAct(replace(press, pressed=True), "submit")
    if _worked(press, seen):
        if press.pressed or not seen.ours:
            return Delivered("screen")
        return DeliveryFailed("nothing was pressed: what was on the agent's screen has just gone away by itself")
    is_uncertain = press.what == "answer" and not press.pressed and not seen.ours  # pressed twice, it may mean another
    if (press.pressed or is_uncertain) and seen.now - press.since < KEYS_WORK_WITHIN_S:
        return DeliveryWait()
    if is_uncertain:
        return DeliveryFailed("it is not known whether the key was pressed: look at the agent's screen")
    if press.presses >= (MOST_PRESSES_OF_A_ROW if press.what == "answer" else MOST_PRESSES):
        return DeliveryFailed("the keys were pressed, and what was to end is still on the agent's screen")
    return DeliveryAct(replace(press, pressed=True, presses=press.presses + 1, since=seen.now), "submit")


def keys_for(what: Purpose, dialog: Dialog) -> list[str]:
    return dialog.approve if what == "approve" else dialog.deny


def _worked(press: KeyPress, seen: DeliveryInput) -> bool:
    if press.what == "interrupt":
        return not seen.reading.working or seen.reading.dialog is not None
    return _print(seen) != press.seen


def _print(seen: DeliveryInput) -> str:
    return fingerprint(seen.reading)


class NotPressed(MusterError):
    """The keys were not pressed, or did not work."""


class KeyPresses:
    def __init__(self, tmux: Tmux) -> None:
        self._tmux = tmux
        self._reached: dict[str, KeyPress] = {}
        """As in TextDelivery."""

    def step(self, view: SpawnerView, agent: str, pane: Pane, pending: PendingCommand) -> StepResult:
        """Do the next step; NotPressed ends it."""
        backend = view.backend(agent)
        screen = self._tmux.screens([pane.pane_id], styled=True).get(pane.pane_id, "")
        reading = read_screen(backend, screen)
        press = view.turn.memory.find(KEY_PRESSES, agent)
        if press is not None and (press.id, press.spawn) == (pending.request.id, pane.spawn):
            seen = DeliveryInput(backend, "", reading, view.now, ours=self._reached.get(agent) == press)
            step = advance(press, seen)
        else:
            press = KeyPress(pending.request.id, pane.spawn or "", purpose_of(pending), view.now)
            meant = getattr(pending.command, "fingerprint", None)
            step = begin(press, DeliveryInput(backend, "", reading, view.now), meant)
            if press.what == "answer" and isinstance(step, DeliveryAct):
                _must_be_rows(self._keys(pending, press, backend, reading.dialog), reading)
        return self._do(view, agent, pane, pending, press, step, self._keys(pending, press, backend, reading.dialog))

    def _keys(self, pending: PendingCommand, press: KeyPress, backend: Backend, dialog: Dialog | None) -> list[str]:
        match press.what:
            case "keys" | "answer":
                return list(getattr(pending.command, "keys", None) or [])
            case "interrupt":
                return backend.typing.interrupt
            case _:
                return keys_for(press.what, dialog) if dialog is not None else []

    def _do(
        self,
        view: SpawnerView,
        agent: str,
        pane: Pane,
        pending: PendingCommand,
        press: KeyPress,
        step: Step[KeyPress],
        keys: list[str],
    ) -> StepResult:
        match step:
            case DeliveryWait(look_after_s=look_after_s):
                view.turn.look_again_at(view.turn.now + timedelta(seconds=look_after_s))
            case DeliveryAct(after, what):
                self._reached.pop(agent, None)
                try:
                    if what == "submit":
                        self._tmux.press(pane.pane_id, keys, spawn=pane.spawn or "")
                except NotTyped as error:
                    self._reached[agent] = press  # nothing was pressed
                    defer(view, pending, str(error))
                    view.turn.look_again_at(view.turn.now + timedelta(seconds=LOOK_EVERY_WHILE_BLOCKED_S))
                    return StepResult()
                except ValueError as error:
                    raise NotPressed(str(error)) from error
                self._reached[agent] = after
                view.turn.memory.put(KEY_PRESSES, after, agent)
                look_after_s = LOOK_AFTER_PRESS_S if what == "submit" else 0.0
                view.turn.look_again_at(view.turn.now + timedelta(seconds=look_after_s))
                return StepResult(is_intent=what == "nothing")
            case Delivered(confirmed):
                self._forget(view, agent)
                size = len(keys) if press.what in ("keys", "answer") else max(1, press.presses)
                sent = AgentSent(
                    agent=agent,
                    spawn=pane.spawn or "",
                    what=press.what,
                    size=size,
                    confirmed=confirmed,
                    reason=by(pending),
                )
                view.turn.emit(sent, cause=pending.request.id)
                said = REPLIES[press.what].format(agent=agent)
                view.turn.reply(pending, said, agent=agent, confirmed=confirmed)
            case DeliveryFailed(reason):
                self._forget(view, agent)
                raise NotPressed(reason)
        return StepResult()

    def _forget(self, view: SpawnerView, agent: str) -> None:
        self._reached.pop(agent, None)
        view.turn.memory.put(KEY_PRESSES, None, agent)


def _must_be_rows(keys: list[str], reading: ScreenReading) -> None:
    """Raise NotPressed unless the keys are those of a row of the dialog, if there is one."""
    rows = [key for key, _ in reading.options]
    if reading.dialog is not None and (len(keys) != 1 or keys[0] not in rows):
        offers = f"it offers: {', '.join(rows)}" if rows else "only a person at the terminal should answer it"
        raise NotPressed(f"{reading.dialog.says} has no row {' '.join(keys)!r}; {offers}")


def purpose_of(pending: PendingCommand) -> Purpose:
    match pending.command:
        case Approve():
            return "approve"
        case Deny():
            return "deny"
        case Interrupt():
            return "interrupt"
        case Send(fingerprint=None):
            return "keys"
        case Send():
            return "answer"
    raise NotPressed(f"nothing is pressed for {pending.command.verb}")
