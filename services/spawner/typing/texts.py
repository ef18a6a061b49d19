"""Texts on their way into input boxes: does what `delivery` says, and remembers each stage before acting on it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Protocol

from services.spawner.commands.replies import by, hold
from services.spawner.sessions.conversations import RecordSearch
from services.spawner.typing.delivery import (
    WAITS_LOOKING_EVERY_S,
    Confirmed,
    Delivered,
    Delivery,
    DeliveryAct,
    DeliveryFailed,
    DeliveryInput,
    DeliveryStage,
    DeliveryWait,
    advance,
)
from services.spawner.typing.message_text import completed, must_be_no_command, needs_file, write_message
from services.spawner.view import SpawnerView
from shared.contract.commands import Send
from shared.contract.events.lifecycle import AgentSent
from shared.errors import MusterError
from shared.fleet import Backend
from shared.runtime.turn import PendingCommand
from shared.screen import ScreenReading, read_screen
from shared.system.tmux import NotTyped, Pane, Tmux

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

    def mark(self, view: SpawnerView, agent: str) -> Any:
        """Where the record ends now, as JSON; None where there is none that can be read."""

    def search(self, view: SpawnerView, agent: str, mark: Any, text: str) -> RecordSearch:
        """Look for a text that was sent since the mark."""


@dataclass(frozen=True)
class PendingText:
    """A text that somebody sends, or (asked by nobody) the prompt that an agent is started with."""

    id: str
    text: str
    pending: PendingCommand | None = None
    only_idle: bool = False
    if_idle: bool = False
    leaves_menu: bool = False
    as_command: bool = False
    wait_s: float = float("inf")

    @classmethod
    def of(cls, command: Send, pending: PendingCommand) -> "PendingText":
        return cls(
            id=pending.request.id,
            text=(command.text or "").strip(),
            pending=pending,
            only_idle=command.when == "idle",
            if_idle=command.when == "if_idle",
            leaves_menu=command.leaves_menu,
            as_command=command.as_command,
            wait_s=waits_for_s(command, pending.request.asked),
        )


def waits_for_s(command: Send, pending: float) -> float:
    """How long a text may wait for a free input box: as its sender says, else not past the time that it expires."""
    if command.expires is None or "wait_s" in command.model_fields_set:
        return command.wait_s
    return min(command.wait_s, command.expires.timestamp() - pending)


class TextDelivery:
    def __init__(self, tmux: Tmux, record: Record) -> None:
        self._tmux = tmux
        self._record = record
        self._brought: dict[str, Delivery] = {}
        """How far this process brought each agent's text, and has not acted on yet."""

    def step(self, view: SpawnerView, agent: str, pane: Pane, text: PendingText) -> str:
        """Go one step on with a text, and say what it waits for, if anything.

        NotDelivered, or any other MusterError that can't be retried, ends it.
        """
        backend = view.backend(agent)
        delivery = self._current(view, agent, pane, text, backend)
        worded = self._worded(view, agent, backend, text)
        search = self._search(view, agent, delivery, worded, text)
        screen = self._tmux.screens([pane.pane_id], styled=True).get(pane.pane_id, "")
        reading = read_screen(backend, screen)
        circumstances = DeliveryInput(
            backend=backend,
            text=worded,
            reading=reading,
            now=view.now,
            only_idle=text.only_idle,
            if_idle=text.if_idle,
            leaves_menu=text.leaves_menu,
            press_once=text.as_command,
            wrote_at=float(pane.activity),
            recorded=search.conversation is not None if search.readable else None,
            ours=self._brought.get(agent) == delivery,
        )
        match advance(delivery, circumstances):
            case DeliveryWait() as wait:
                return self._wait(view, agent, text, wait)
            case DeliveryAct() as act:
                try:
                    self._act(view, agent, pane, backend, worded, act, reading)
                except NotTyped as error:
                    self._brought[agent] = delivery  # surely nothing was typed
                    return self._wait(view, agent, text, DeliveryWait(WAITS_LOOKING_EVERY_S, str(error)))
            case Delivered(confirmed, answered):
                self._finish(view, agent, pane, text, confirmed, search.conversation, answered=answered)
            case DeliveryFailed(reason):
                self._fail(view, agent, text, reason)
        return ""

    def is_under_way(self, view: SpawnerView, agent: str) -> str | None:
        """The text that is in the agent's input box or on its way there, by its id: nothing may come between."""
        kept = view.turn.recall(f"delivery:{agent}")
        return str(kept["id"]) if kept is not None and kept["stage"] != DeliveryStage.WAITING else None

    def _current(self, view: SpawnerView, agent: str, pane: Pane, text: PendingText, backend: Backend) -> Delivery:
        kept = view.turn.recall(f"delivery:{agent}")
        if kept is not None and kept["id"] == text.id:
            delivery = Delivery.read(kept)
            if delivery.spawn == pane.spawn:
                return delivery
            if delivery.stage in (DeliveryStage.SUBMITTING, DeliveryStage.SUBMITTED):
                self._forget(view, agent)
                raise NotDelivered("the agent's session ended while the text was submitted; look whether it arrived")
        if not text.as_command:
            must_be_no_command(backend.typing, text.text)
        return Delivery(text.id, pane.spawn or "", view.now, mark=self._record.mark(view, agent))

    def _worded(self, view: SpawnerView, agent: str, backend: Backend, text: PendingText) -> str:
        if not needs_file(backend, text.text):
            return completed(backend.typing, text.text)
        workspace = Path(view.known(agent).workspace or view.panes[agent].path)
        return backend.typing.by_file.replace("{prompt_file}", write_message(workspace, text.id, text.text))

    def _search(
        self, view: SpawnerView, agent: str, delivery: Delivery, worded: str, text: PendingText
    ) -> RecordSearch:
        if delivery.stage in (DeliveryStage.WAITING, DeliveryStage.PASTING) or text.as_command:
            return RecordSearch(readable=False)
        return self._record.search(view, agent, delivery.mark, worded)

    def _wait(self, view: SpawnerView, agent: str, text: PendingText, wait: DeliveryWait) -> str:
        begun = text.pending.request.asked if text.pending else view.known(agent).started
        look_after_s = wait.look_after_s if view.now - begun < LOOKS_OFTEN_FOR_S else WAITS_LOOKING_EVERY_S
        view.turn.look_again_at(view.turn.now + timedelta(seconds=look_after_s if wait.reason else wait.look_after_s))
        if not wait.reason:
            return ""
        if text.pending is None:
            if view.now - view.known(agent).started > PROMPT_TOLD_AFTER_S:
                view.turn.degrade(f"the first prompt of {agent} waits: {wait.reason}")
            return wait.reason
        waited_s = view.now - text.pending.request.asked
        if waited_s > text.wait_s:
            raise NotDelivered(f"the text was not delivered: {wait.reason}")
        if waited_s > QUIETLY_S:
            hold(view, text.pending, f"the text waits: {wait.reason}")
        return wait.reason

    def _act(
        self,
        view: SpawnerView,
        agent: str,
        pane: Pane,
        backend: Backend,
        worded: str,
        act: DeliveryAct[Delivery],
        reading: ScreenReading,
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
        view.turn.remember(f"delivery:{agent}", asdict(act.after))
        pause_s = 0.0 if act.what == "nothing" else AFTER_ACTING_S
        view.turn.look_again_at(view.turn.now + timedelta(seconds=pause_s))

    def _finish(
        self,
        view: SpawnerView,
        agent: str,
        pane: Pane,
        text: PendingText,
        confirmed: Confirmed,
        conversation: str | None,
        *,
        answered: bool,
    ) -> None:
        self._forget(view, agent)
        known = view.known(agent)
        if conversation is not None and known.conversation is None:
            view.remember(agent, replace(known, conversation=conversation))
        what: Literal["text", "prompt", "keys"] = "keys" if answered else "text" if text.pending else "prompt"
        sent = AgentSent(
            agent=agent,
            spawn=pane.spawn or "",
            what=what,
            size=1 if answered else len(text.text.encode()),
            confirmed=confirmed,
            reason=by(text.pending) if text.pending else "its first prompt",
        )
        view.turn.emit(sent, cause=text.pending.request.id if text.pending else None)
        if text.pending is None:
            view.remember(agent, replace(view.known(agent), prompt=""))
            return
        said = f"{agent} has the text ({SEEN_BY[confirmed]})"
        if answered:
            said = f"{agent} was told in its menu to go on with what was refused; the text was not needed"
        view.turn.reply(text.pending, said, agent=agent, spawn=pane.spawn, confirmed=confirmed)

    def _fail(self, view: SpawnerView, agent: str, text: PendingText, reason: str) -> None:
        self._forget(view, agent)
        if text.pending is not None:
            raise NotDelivered(reason)
        view.turn.degrade(f"{agent} did not get its first prompt: {reason}; it is tried again")
        view.turn.look_again_at(view.turn.now + timedelta(seconds=PROMPT_AGAIN_S))

    def _forget(self, view: SpawnerView, agent: str) -> None:
        self._brought.pop(agent, None)
        view.turn.remember(f"delivery:{agent}", None)
