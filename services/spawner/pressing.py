"""Pressing keys for a purpose (yes, no, stop) and seeing that it was served: what to do next. Pure.

What was on the screen is remembered before a key is pressed. After a crash, a key is pressed again only if the very
same thing is still there.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

from services.spawner.delivery import Act, Circumstances, Done, Fail, Step, Wait
from shared.fleet.backend import Dialog
from shared.screen.fingerprints import fingerprint

Purpose = Literal["approve", "deny", "interrupt", "keys"]
SERVES_WITHIN_S = 2.0
PRESSES = 3


@dataclass(frozen=True)
class Pressing:
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
    def read(cls, kept: dict[str, Any]) -> "Pressing":
        return cls(**kept)


def begin(pressing: Pressing, seen: Circumstances, meant: str | None = None) -> Step[Pressing]:
    """Whether there is anything to press keys for; `meant` is the fingerprint of the dialog that alone is meant."""
    reading = seen.reading
    match pressing.what:
        case "approve" | "deny":
            if reading.dialog is None:
                return Fail("there is no dialog on the agent's screen to answer")
            if meant is not None and meant != _print(seen):
                return Fail(f"{reading.dialog.says} is on the screen, but not the one that was meant: look again")
            if not keys_for(pressing.what, reading.dialog):
                return Fail(f"{reading.dialog.says} is on the screen: only a person at the terminal should answer it")
        case "interrupt":
            if reading.dialog is not None:
                return Fail(f"{reading.dialog.says} is on the screen: deny it, and the agent stops")
            if not reading.working and not seen.blind:
                return Fail("the agent is not working, so there is nothing to interrupt")
    return Act(replace(pressing, seen=_print(seen)))


def advance(pressing: Pressing, seen: Circumstances) -> Step[Pressing]:
    if pressing.what == "keys" or seen.blind:
        done = pressing.pressed or not seen.ours  # they may have been pressed: twice would be worse than not at all
        return Done("none") if done else Act(replace(pressing, pressed=True), "submit")
    if _served(pressing, seen):
        if pressing.pressed or not seen.ours:
            return Done("screen")
        return Fail("nothing was pressed: what was on the agent's screen has just gone away by itself")
    if pressing.pressed and seen.now - pressing.since < SERVES_WITHIN_S:
        return Wait()
    if pressing.presses >= PRESSES:
        return Fail("the keys were pressed, and what was to end is still on the agent's screen")
    return Act(replace(pressing, pressed=True, presses=pressing.presses + 1, since=seen.now), "submit")


def keys_for(what: Purpose, dialog: Dialog) -> list[str]:
    return dialog.approve if what == "approve" else dialog.deny


def _served(pressing: Pressing, seen: Circumstances) -> bool:
    if pressing.what == "interrupt":
        return not seen.reading.working or seen.reading.dialog is not None
    return _print(seen) != pressing.seen


def _print(seen: Circumstances) -> str:
    return fingerprint(seen.reading)
