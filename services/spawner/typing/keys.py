"""Keys, interrupts and answers to dialogs: pressed, and seen to have worked.

What was on the screen is remembered before a key is pressed. After a crash, a key is pressed again only if exactly the
same is still there.
"""

from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any, Literal

from services.spawner.commands.replies import by, hold
from services.spawner.typing.delivery import (
    WAITS_LOOKING_EVERY_S,
    Delivered,
    DeliveryAct,
    DeliveryFailed,
    DeliveryInput,
    DeliveryWait,
    Step,
)
from services.spawner.view import SpawnerView
from shared.contract.commands import Approve, Deny, Interrupt, Send
from shared.contract.events.lifecycle import AgentSent
from shared.errors import MusterError
from shared.fleet import Backend
from shared.fleet.backend import Dialog
from shared.runtime.turn import PendingCommand
from shared.screen import read_screen
from shared.screen.signs import fingerprint
from shared.system.tmux import NotTyped, Pane, Tmux

Purpose = Literal["approve", "deny", "interrupt", "keys"]
SERVES_WITHIN_S = 2.0
PRESSES = 3


@dataclass(frozen=True)
class KeyPress:
    """Kept over restarts."""

    id: str
    spawn: str
    what: Purpose
    since: float
    pressed: bool = False
    presses: int = 0
    seen: str = ""
    """What was on the screen."""

    @classmethod
    def read(cls, kept: dict[str, Any]) -> "KeyPress":
        return cls(**kept)


def begin(pressing: KeyPress, seen: DeliveryInput, meant: str | None = None) -> Step[KeyPress]:
    """Whether there is anything to press keys for; `meant` is the fingerprint of the dialog that alone is meant."""
    reading = seen.reading
    match pressing.what:
        case "approve" | "deny":
            if reading.dialog is None:
                return DeliveryFailed("there is no dialog on the agent's screen to answer")
            if meant is not None and meant != _print(seen):
                return DeliveryFailed(
                    f"{reading.dialog.says} is on the screen, but not the one that was meant: look again"
                )
            if not keys_for(pressing.what, reading.dialog):
                return DeliveryFailed(
                    f"{reading.dialog.says} is on the screen: only a person at the terminal should answer it"
                )
        case "interrupt":
            if reading.dialog is not None:
                return DeliveryFailed(f"{reading.dialog.says} is on the screen: deny it, and the agent stops")
            if not reading.working and not seen.blind:
                return DeliveryFailed("the agent is not working, so there is nothing to interrupt")
    return DeliveryAct(replace(pressing, seen=_print(seen)))


def advance(pressing: KeyPress, seen: DeliveryInput) -> Step[KeyPress]:
    if pressing.what == "keys" or seen.blind:
        done = pressing.pressed or not seen.ours  # they may have been pressed: twice would be worse than not at all
        return Delivered("none") if done else DeliveryAct(replace(pressing, pressed=True), "submit")
    if _served(pressing, seen):
        if pressing.pressed or not seen.ours:
            return Delivered("screen")
        return DeliveryFailed("nothing was pressed: what was on the agent's screen has just gone away by itself")
    if pressing.pressed and seen.now - pressing.since < SERVES_WITHIN_S:
        return DeliveryWait()
    if pressing.presses >= PRESSES:
        return DeliveryFailed("the keys were pressed, and what was to end is still on the agent's screen")
    return DeliveryAct(replace(pressing, pressed=True, presses=pressing.presses + 1, since=seen.now), "submit")


def keys_for(what: Purpose, dialog: Dialog) -> list[str]:
    return dialog.approve if what == "approve" else dialog.deny


def _served(pressing: KeyPress, seen: DeliveryInput) -> bool:
    if pressing.what == "interrupt":
        return not seen.reading.working or seen.reading.dialog is not None
    return _print(seen) != pressing.seen


def _print(seen: DeliveryInput) -> str:
    return fingerprint(seen.reading)


AFTER_ACTING_S = 0.1
SAID = {
    "approve": "{agent} was told yes",
    "deny": "{agent} was told no",
    "interrupt": "{agent} was interrupted",
    "keys": "the keys were pressed in {agent}",
}


class NotPressed(MusterError):
    """What was to be pressed was not, or did not help."""


class KeyPresses:
    def __init__(self, tmux: Tmux) -> None:
        self._tmux = tmux
        self._brought: dict[str, KeyPress] = {}

    def step(self, view: SpawnerView, agent: str, pane: Pane, pending: PendingCommand) -> None:
        """Go one step on; NotPressed ends it."""
        backend = view.backend(agent)
        screen = self._tmux.screens([pane.pane_id], styled=True).get(pane.pane_id, "")
        reading = read_screen(backend, screen)
        kept = view.turn.recall(f"pressing:{agent}")
        if kept is not None and kept["id"] == pending.request.id and kept["spawn"] == pane.spawn:
            pressing = KeyPress.read(kept)
            seen = DeliveryInput(backend, "", reading, view.now, ours=self._brought.get(agent) == pressing)
            step = advance(pressing, seen)
        else:
            pressing = KeyPress(pending.request.id, pane.spawn or "", purpose_of(pending), view.now)
            meant = getattr(pending.command, "fingerprint", None)
            step = begin(pressing, DeliveryInput(backend, "", reading, view.now), meant)
        self._do(view, agent, pane, pending, pressing, step, self._keys(pending, pressing, backend, reading.dialog))

    def _keys(self, pending: PendingCommand, pressing: KeyPress, backend: Backend, dialog: object) -> list[str]:
        match pressing.what:
            case "keys":
                return list(getattr(pending.command, "keys", None) or [])
            case "interrupt":
                return backend.typing.interrupt
            case _:
                return keys_for(pressing.what, dialog) if dialog is not None else []  # type: ignore[arg-type]

    def _do(
        self,
        view: SpawnerView,
        agent: str,
        pane: Pane,
        pending: PendingCommand,
        pressing: KeyPress,
        step: Step[KeyPress],
        keys: list[str],
    ) -> None:
        match step:
            case DeliveryWait(look_after_s=look_after_s):
                view.turn.look_again_at(view.turn.now + timedelta(seconds=look_after_s))
            case DeliveryAct(after, what):
                self._brought.pop(agent, None)
                try:
                    if what == "submit":
                        self._tmux.press(pane.pane_id, keys, spawn=pane.spawn or "")
                except NotTyped as error:
                    self._brought[agent] = pressing  # surely nothing was pressed
                    hold(view, pending, str(error))
                    view.turn.look_again_at(view.turn.now + timedelta(seconds=WAITS_LOOKING_EVERY_S))
                    return
                except ValueError as error:
                    raise NotPressed(str(error)) from error
                self._brought[agent] = after
                view.turn.remember(f"pressing:{agent}", asdict(after))
                view.turn.look_again_at(view.turn.now + timedelta(seconds=AFTER_ACTING_S if what == "submit" else 0.0))
            case Delivered(confirmed):
                self._forget(view, agent)
                size = len(keys) if pressing.what == "keys" else max(1, pressing.presses)
                sent = AgentSent(
                    agent=agent,
                    spawn=pane.spawn or "",
                    what=pressing.what,
                    size=size,
                    confirmed=confirmed,
                    reason=by(pending),
                )
                view.turn.emit(sent, cause=pending.request.id)
                said = SAID[pressing.what].format(agent=agent)
                view.turn.reply(pending, said, agent=agent, confirmed=confirmed)
            case DeliveryFailed(reason):
                self._forget(view, agent)
                raise NotPressed(reason)

    def _forget(self, view: SpawnerView, agent: str) -> None:
        self._brought.pop(agent, None)
        view.turn.remember(f"pressing:{agent}", None)


def purpose_of(pending: PendingCommand) -> Purpose:
    match pending.command:
        case Approve():
            return "approve"
        case Deny():
            return "deny"
        case Interrupt():
            return "interrupt"
        case Send():
            return "keys"
    raise NotPressed(f"nothing is pressed for {pending.command.verb}")
