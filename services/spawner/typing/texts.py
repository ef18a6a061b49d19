"""Texts on their way into input boxes: does what `delivery` says, and remembers each stage before it acts on it.

`queue` calls `step` in rounds, with a commit between a stage and the action that follows from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Protocol

from services.spawner.commands.replies import by, defer
from services.spawner.sessions.conversations import RecordSearch
from services.spawner.typing.delivery import (
    DELIVERIES,
    FIRST_LOOK_AFTER_S,
    INTENTS,
    LOOK_EVERY_WHILE_BLOCKED_S,
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

REASON_SAID_AFTER_S = 0.6
"""A text that has waited so long says what for."""
PROMPT_REASON_SAID_AFTER_S = 20.0
PROMPT_RETRIED_AFTER_S = 15.0
BLOCKED_IS_LOOKED_AT_OFTEN_FOR_S = 5.0

SEEN_BY: Mapping[Confirmed, str] = {
    "transcript": "it is in its own record of the conversation",
    "screen": "seen on its screen",
    "none": "typed; its screen tells nothing of it",
}


class NotDelivered(MusterError):
    """A text that could not be brought to its agent."""


class Records(Protocol):
    """The agents' own records of their conversations."""

    def mark(self, view: SpawnerView, agent: str) -> dict[str, Any] | None: ...

    def search(self, view: SpawnerView, agent: str, mark: Mapping[str, Any] | None, text: str) -> RecordSearch: ...


@dataclass(frozen=True)
class StepResult:
    """How a step ended that neither finished nor failed."""

    waits_for: str = ""
    """What it waits for, if people should know."""
    is_intent: bool = False
    """Whether it is about to type, and only has to be committed before that."""


@dataclass(frozen=True)
class PendingText:
    """A text that somebody sends, or, without a command, the first prompt of an agent."""

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


def waits_for_s(command: Send, asked: float) -> float:
    """How long a text may wait for a free input box: as its sender says, else not past its expiry."""
    if command.expires is None or "wait_s" in command.model_fields_set:
        return command.wait_s
    return min(command.wait_s, command.expires.timestamp() - asked)


class TextDelivery:
    def __init__(self, tmux: Tmux, records: Records) -> None:
        self._tmux = tmux
        self._records = records
        self._reached: dict[str, Delivery] = {}
        """The stage to which this process brought each agent's text, and after which it has not acted yet."""

    def step(self, view: SpawnerView, agent: str, pane: Pane, text: PendingText) -> StepResult:
        """Do the next step of a text. NotDelivered, or any other MusterError that is not Retryable, ends it."""
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
            wrote_at=view.turn.corrected(pane.activity),
            recorded=search.conversation is not None if search.readable else None,
            ours=self._reached.get(agent) == delivery,
        )
        match advance(delivery, circumstances):
            case DeliveryWait() as wait:
                return self._wait(view, agent, text, wait)
            case DeliveryAct() as act:
                try:
                    self._act(view, agent, pane, backend, worded, act, reading)
                except NotTyped as error:
                    self._reached[agent] = delivery  # nothing was typed
                    return self._wait(view, agent, text, DeliveryWait(LOOK_EVERY_WHILE_BLOCKED_S, str(error)))
                return StepResult(is_intent=act.what == "nothing" and act.after.stage in INTENTS)
            case Delivered(confirmed, answered):
                self._finish(view, agent, pane, text, confirmed, search.conversation, answered=answered)
            case DeliveryFailed(reason):
                self._fail(view, agent, text, reason)
        return StepResult()

    def under_way(self, view: SpawnerView, agent: str) -> str | None:
        """The id of the text that is in the agent's input box or on its way there."""
        delivery = view.turn.memory.find(DELIVERIES, agent)
        return delivery.id if delivery is not None and delivery.stage is not DeliveryStage.WAITING else None

    def _current(self, view: SpawnerView, agent: str, pane: Pane, text: PendingText, backend: Backend) -> Delivery:
        delivery = view.turn.memory.find(DELIVERIES, agent)
        if delivery is not None and delivery.id == text.id:
            if delivery.spawn == pane.spawn:
                return delivery
            if delivery.stage in (DeliveryStage.SUBMITTING, DeliveryStage.SUBMITTED):
                self._forget(view, agent)
                raise NotDelivered("the agent's session ended while the text was submitted; look whether it arrived")
        if not text.as_command:
            must_be_no_command(backend.typing, text.text)
        return Delivery(text.id, pane.spawn or "", view.now, mark=self._records.mark(view, agent))

    def _worded(self, view: SpawnerView, agent: str, backend: Backend, text: PendingText) -> str:
        if not needs_file(backend, text.text):
            return completed(backend.typing, text.text)
        workspace = Path(view.known(agent).session.workspace or view.panes[agent].path)
        return backend.typing.by_file.replace("{prompt_file}", write_message(workspace, text.id, text.text))

    def _search(
        self, view: SpawnerView, agent: str, delivery: Delivery, worded: str, text: PendingText
    ) -> RecordSearch:
        if delivery.stage in (DeliveryStage.WAITING, DeliveryStage.PASTING) or text.as_command:
            return RecordSearch(readable=False)
        return self._records.search(view, agent, delivery.mark, worded)

    def _wait(self, view: SpawnerView, agent: str, text: PendingText, wait: DeliveryWait) -> StepResult:
        begun = text.pending.request.asked if text.pending else view.known(agent).session.started
        is_recent = view.now - begun < BLOCKED_IS_LOOKED_AT_OFTEN_FOR_S
        look_after_s = wait.look_after_s if is_recent or not wait.reason else LOOK_EVERY_WHILE_BLOCKED_S
        if wait.reason and 0 <= view.now - begun <= REASON_SAID_AFTER_S:
            look_after_s = min(look_after_s, begun + REASON_SAID_AFTER_S - view.now + FIRST_LOOK_AFTER_S)
        view.turn.look_again_at(view.turn.now + timedelta(seconds=look_after_s))
        if not wait.reason:
            return StepResult()
        if text.pending is None:
            if view.now - begun > PROMPT_REASON_SAID_AFTER_S:
                view.turn.degrade(f"the first prompt of {agent} waits: {wait.reason}")
            return StepResult(wait.reason)
        waited_s = view.now - text.pending.request.asked
        if waited_s > text.wait_s:
            raise NotDelivered(f"the text was not delivered: {wait.reason}")
        if waited_s > REASON_SAID_AFTER_S:
            defer(view, text.pending, f"the text waits: {wait.reason}")
        return StepResult(wait.reason)

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
        self._reached.pop(agent, None)  # whatever happens now, the action counts as possibly done
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
        self._reached[agent] = act.after
        view.turn.memory.put(DELIVERIES, act.after, agent)
        look_after_s = FIRST_LOOK_AFTER_S
        if act.what == "nothing":
            look_after_s = backend.typing.settle_s if act.after.stage is DeliveryStage.PASTED else 0.0
        view.turn.look_again_at(view.turn.now + timedelta(seconds=look_after_s))

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
        if conversation is not None and known.session.conversation is None:
            view.remember(agent, known.with_session(conversation=conversation))
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
            view.remember(agent, view.known(agent).with_session(prompt=""))
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
        view.turn.look_again_at(view.turn.now + timedelta(seconds=PROMPT_RETRIED_AFTER_S))

    def _forget(self, view: SpawnerView, agent: str) -> None:
        self._reached.pop(agent, None)
        view.turn.memory.put(DELIVERIES, None, agent)
