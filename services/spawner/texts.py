"""Texts on their way into input boxes: does what `delivery` says, and remembers each stage before acting on it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Protocol

from services.spawner.asking import by, hold
from services.spawner.delivery import (
    WAITS_LOOKING_EVERY_S,
    Act,
    Circumstances,
    Confirmed,
    Delivery,
    Done,
    Fail,
    Stage,
    Wait,
    advance,
)
from services.spawner.message_files import write_message
from services.spawner.records import Search
from services.spawner.scene import Scene
from services.spawner.wording import completed, must_be_no_command, needs_file
from shared.commands import Send
from shared.errors import MusterError
from shared.events import AgentSent
from shared.fleet import Backend
from shared.screen import Reading, read_screen
from shared.tmux import NotTyped, Pane, Tmux
from shared.turn import Asked

QUIETLY_S = 0.6
"""A text that has waited so long says what for."""
PROMPT_TOLD_AFTER_S = 20.0
PROMPT_AGAIN_S = 15.0
AFTER_ACTING_S = 0.05
LOOKS_OFTEN_FOR_S = 5.0

SEEN_BY: Mapping[Confirmed, str] = {
    "transcript": "it is in its own record of the conversation",
    "screen": "seen on its screen",
    "none": "typed; its screen tells nothing of it",
}


class NotDelivered(MusterError):
    """A text that could not be brought to its agent."""


class Record(Protocol):
    """The agents' own records of their conversations."""

    def mark(self, scene: Scene, agent: str) -> Any:
        """Where the record ends now, as JSON; None where there is none that can be read."""

    def search(self, scene: Scene, agent: str, mark: Any, text: str) -> Search:
        """Look for a text that was sent since the mark."""


@dataclass(frozen=True)
class Text:
    """A text that somebody sends, or (asked by nobody) the prompt that an agent is started with."""

    id: str
    text: str
    asked: Asked | None = None
    only_idle: bool = False
    if_idle: bool = False
    leaves_menu: bool = False
    as_command: bool = False
    wait_s: float = float("inf")

    @classmethod
    def of(cls, command: Send, asked: Asked) -> "Text":
        return cls(
            id=asked.request.id,
            text=(command.text or "").strip(),
            asked=asked,
            only_idle=command.when == "idle",
            if_idle=command.when == "if_idle",
            leaves_menu=command.leaves_menu,
            as_command=command.as_command,
            wait_s=waits_for_s(command, asked.request.asked),
        )


def waits_for_s(command: Send, asked: float) -> float:
    """How long a text may wait for a free input box: as its sender says, else not past the time that it expires."""
    if command.expires is None or "wait_s" in command.model_fields_set:
        return command.wait_s
    return min(command.wait_s, command.expires.timestamp() - asked)


class Texts:
    def __init__(self, tmux: Tmux, record: Record) -> None:
        self._tmux = tmux
        self._record = record
        self._brought: dict[str, Delivery] = {}
        """How far this process brought each agent's text, and has not acted on yet."""

    def step(self, scene: Scene, agent: str, pane: Pane, text: Text) -> str:
        """Go one step on with a text, and say what it waits for, if anything.

        NotDelivered, or any other MusterError that can't be retried, ends it.
        """
        backend = scene.backend(agent)
        delivery = self._current(scene, agent, pane, text, backend)
        worded = self._worded(scene, agent, backend, text)
        search = self._search(scene, agent, delivery, worded, text)
        screen = self._tmux.screens([pane.pane_id], styled=True).get(pane.pane_id, "")
        reading = read_screen(backend, screen)
        circumstances = Circumstances(
            backend=backend,
            text=worded,
            reading=reading,
            now=scene.now,
            only_idle=text.only_idle,
            if_idle=text.if_idle,
            leaves_menu=text.leaves_menu,
            press_once=text.as_command,
            wrote_at=float(pane.activity),
            recorded=search.conversation is not None if search.readable else None,
            ours=self._brought.get(agent) == delivery,
        )
        match advance(delivery, circumstances):
            case Wait() as wait:
                return self._wait(scene, agent, text, wait)
            case Act() as act:
                try:
                    self._act(scene, agent, pane, backend, worded, act, reading)
                except NotTyped as error:
                    self._brought[agent] = delivery  # surely nothing was typed
                    return self._wait(scene, agent, text, Wait(WAITS_LOOKING_EVERY_S, str(error)))
            case Done(confirmed, answered):
                self._finish(scene, agent, pane, text, confirmed, search.conversation, answered=answered)
            case Fail(reason):
                self._fail(scene, agent, text, reason)
        return ""

    def is_under_way(self, scene: Scene, agent: str) -> str | None:
        """The text that is in the agent's input box or on its way there, by its id: nothing may come between."""
        kept = scene.turn.recall(f"delivery:{agent}")
        return str(kept["id"]) if kept is not None and kept["stage"] != Stage.WAITING else None

    def _current(self, scene: Scene, agent: str, pane: Pane, text: Text, backend: Backend) -> Delivery:
        kept = scene.turn.recall(f"delivery:{agent}")
        if kept is not None and kept["id"] == text.id:
            delivery = Delivery.read(kept)
            if delivery.spawn == pane.spawn:
                return delivery
            if delivery.stage in (Stage.SUBMITTING, Stage.SUBMITTED):
                self._forget(scene, agent)
                raise NotDelivered("the agent's session ended while the text was submitted; look whether it arrived")
        if not text.as_command:
            must_be_no_command(backend.typing, text.text)
        return Delivery(text.id, pane.spawn or "", scene.now, mark=self._record.mark(scene, agent))

    def _worded(self, scene: Scene, agent: str, backend: Backend, text: Text) -> str:
        if not needs_file(backend, text.text):
            return completed(backend.typing, text.text)
        workspace = Path(scene.known(agent).workspace or scene.panes[agent].path)
        return backend.typing.by_file.replace("{prompt_file}", write_message(workspace, text.id, text.text))

    def _search(self, scene: Scene, agent: str, delivery: Delivery, worded: str, text: Text) -> Search:
        if delivery.stage in (Stage.WAITING, Stage.PASTING) or text.as_command:
            return Search(readable=False)
        return self._record.search(scene, agent, delivery.mark, worded)

    def _wait(self, scene: Scene, agent: str, text: Text, wait: Wait) -> str:
        begun = text.asked.request.asked if text.asked else scene.known(agent).started
        look_after_s = wait.look_after_s if scene.now - begun < LOOKS_OFTEN_FOR_S else WAITS_LOOKING_EVERY_S
        scene.turn.again_at(scene.turn.now + timedelta(seconds=look_after_s if wait.reason else wait.look_after_s))
        if not wait.reason:
            return ""
        if text.asked is None:
            if scene.now - scene.known(agent).started > PROMPT_TOLD_AFTER_S:
                scene.turn.complain(f"the first prompt of {agent} waits: {wait.reason}")
            return wait.reason
        waited_s = scene.now - text.asked.request.asked
        if waited_s > text.wait_s:
            raise NotDelivered(f"the text was not delivered: {wait.reason}")
        if waited_s > QUIETLY_S:
            hold(scene, text.asked, f"the text waits: {wait.reason}")
        return wait.reason

    def _act(
        self,
        scene: Scene,
        agent: str,
        pane: Pane,
        backend: Backend,
        worded: str,
        act: Act[Delivery],
        reading: Reading,
    ) -> None:
        spawn = pane.spawn or ""
        self._brought.pop(agent, None)  # whatever comes of it: it must not be taken for something not done yet
        match act.what:
            case "leave":
                self._tmux.press(pane.pane_id, reading.leave, spawn=spawn)
            case "resume":
                self._tmux.press(pane.pane_id, reading.resume, spawn=spawn)
            case "clear":
                self._tmux.press(pane.pane_id, backend.typing.clear * backend.typing.clear_times, spawn=spawn)
            case "paste":
                self._tmux.paste(pane.pane_id, worded, spawn=spawn)
            case "trim":
                self._tmux.press(pane.pane_id, backend.typing.after_placeholder, spawn=spawn)
            case "submit":
                self._tmux.press(pane.pane_id, backend.typing.submit, spawn=spawn)
        self._brought[agent] = act.after
        scene.turn.remember(f"delivery:{agent}", asdict(act.after))
        pause_s = 0.0 if act.what == "nothing" else AFTER_ACTING_S
        scene.turn.again_at(scene.turn.now + timedelta(seconds=pause_s))

    def _finish(
        self,
        scene: Scene,
        agent: str,
        pane: Pane,
        text: Text,
        confirmed: Confirmed,
        conversation: str | None,
        *,
        answered: bool,
    ) -> None:
        self._forget(scene, agent)
        known = scene.known(agent)
        if conversation is not None and known.conversation is None:
            scene.remember(agent, replace(known, conversation=conversation))
        what: Literal["text", "prompt", "keys"] = "keys" if answered else "text" if text.asked else "prompt"
        sent = AgentSent(
            agent=agent,
            spawn=pane.spawn or "",
            what=what,
            size=1 if answered else len(text.text.encode()),
            confirmed=confirmed,
            reason=by(text.asked) if text.asked else "its first prompt",
        )
        scene.turn.tell(sent, cause=text.asked.request.id if text.asked else None)
        if text.asked is None:
            scene.remember(agent, replace(scene.known(agent), prompt=""))
            return
        said = f"{agent} has the text ({SEEN_BY[confirmed]})"
        if answered:
            said = f"{agent} was told in its menu to go on with what was refused; the text was not needed"
        scene.turn.answer(text.asked, said, agent=agent, spawn=pane.spawn, confirmed=confirmed)

    def _fail(self, scene: Scene, agent: str, text: Text, reason: str) -> None:
        self._forget(scene, agent)
        if text.asked is not None:
            raise NotDelivered(reason)
        scene.turn.complain(f"{agent} did not get its first prompt: {reason}; it is tried again")
        scene.turn.again_at(scene.turn.now + timedelta(seconds=PROMPT_AGAIN_S))

    def _forget(self, scene: Scene, agent: str) -> None:
        self._brought.pop(agent, None)
        scene.turn.remember(f"delivery:{agent}", None)
