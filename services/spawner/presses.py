"""Keys, interrupts and answers to dialogs: does what `pressing` says, and remembers it before a key is pressed."""

from dataclasses import asdict
from datetime import timedelta

from services.spawner.asking import by, hold
from services.spawner.delivery import WAITS_LOOKING_EVERY_S, Act, Circumstances, Done, Fail, Step, Wait
from services.spawner.pressing import Pressing, Purpose, advance, begin, keys_for
from services.spawner.scene import Scene
from shared.commands import Approve, Deny, Interrupt, Send
from shared.errors import MusterError
from shared.events import AgentSent
from shared.fleet import Backend
from shared.screen import read_screen
from shared.tmux import NotTyped, Pane, Tmux
from shared.turn import Asked

AFTER_ACTING_S = 0.1
SAID = {
    "approve": "{agent} was told yes",
    "deny": "{agent} was told no",
    "interrupt": "{agent} was interrupted",
    "keys": "the keys were pressed in {agent}",
}


class NotPressed(MusterError):
    """What was to be pressed was not, or did not help."""


class Presses:
    def __init__(self, tmux: Tmux) -> None:
        self._tmux = tmux
        self._brought: dict[str, Pressing] = {}

    def step(self, scene: Scene, agent: str, pane: Pane, asked: Asked) -> None:
        """Go one step on; NotPressed ends it."""
        backend = scene.backend(agent)
        screen = self._tmux.screens([pane.pane_id], styled=True).get(pane.pane_id, "")
        reading = read_screen(backend, screen)
        kept = scene.turn.recall(f"pressing:{agent}")
        if kept is not None and kept["id"] == asked.request.id and kept["spawn"] == pane.spawn:
            pressing = Pressing.read(kept)
            seen = Circumstances(backend, "", reading, scene.now, ours=self._brought.get(agent) == pressing)
            step = advance(pressing, seen)
        else:
            pressing = Pressing(asked.request.id, pane.spawn or "", purpose_of(asked), scene.now)
            meant = getattr(asked.command, "fingerprint", None)
            step = begin(pressing, Circumstances(backend, "", reading, scene.now), meant)
        self._do(scene, agent, pane, asked, pressing, step, self._keys(asked, pressing, backend, reading.dialog))

    def _keys(self, asked: Asked, pressing: Pressing, backend: Backend, dialog: object) -> list[str]:
        match pressing.what:
            case "keys":
                return list(getattr(asked.command, "keys", None) or [])
            case "interrupt":
                return backend.typing.interrupt
            case _:
                return keys_for(pressing.what, dialog) if dialog is not None else []  # type: ignore[arg-type]

    def _do(
        self,
        scene: Scene,
        agent: str,
        pane: Pane,
        asked: Asked,
        pressing: Pressing,
        step: Step[Pressing],
        keys: list[str],
    ) -> None:
        match step:
            case Wait(look_after_s=look_after_s):
                scene.turn.again_at(scene.turn.now + timedelta(seconds=look_after_s))
            case Act(after, what):
                self._brought.pop(agent, None)
                try:
                    if what == "submit":
                        self._tmux.press(pane.pane_id, keys, spawn=pane.spawn or "")
                except NotTyped as error:
                    self._brought[agent] = pressing  # surely nothing was pressed
                    hold(scene, asked, str(error))
                    scene.turn.again_at(scene.turn.now + timedelta(seconds=WAITS_LOOKING_EVERY_S))
                    return
                except ValueError as error:
                    raise NotPressed(str(error)) from error
                self._brought[agent] = after
                scene.turn.remember(f"pressing:{agent}", asdict(after))
                scene.turn.again_at(scene.turn.now + timedelta(seconds=AFTER_ACTING_S if what == "submit" else 0.0))
            case Done(confirmed):
                self._forget(scene, agent)
                size = len(keys) if pressing.what == "keys" else max(1, pressing.presses)
                sent = AgentSent(
                    agent=agent,
                    spawn=pane.spawn or "",
                    what=pressing.what,
                    size=size,
                    confirmed=confirmed,
                    reason=by(asked),
                )
                scene.turn.tell(sent, cause=asked.request.id)
                said = SAID[pressing.what].format(agent=agent)
                scene.turn.answer(asked, said, agent=agent, confirmed=confirmed)
            case Fail(reason):
                self._forget(scene, agent)
                raise NotPressed(reason)

    def _forget(self, scene: Scene, agent: str) -> None:
        self._brought.pop(agent, None)
        scene.turn.remember(f"pressing:{agent}", None)


def purpose_of(asked: Asked) -> Purpose:
    match asked.command:
        case Approve():
            return "approve"
        case Deny():
            return "deny"
        case Interrupt():
            return "interrupt"
        case Send():
            return "keys"
    raise NotPressed(f"nothing is pressed for {asked.command.verb}")
