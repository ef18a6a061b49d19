"""Delivers messages to agents through the spawner: once each, in order, and only when the agent can take them."""

from datetime import UTC, datetime, timedelta
from typing import Literal

from registry import AgentRecord
from services.handoff.loops import mailbox as mailboxes
from services.handoff.loops.mailbox import MAILBOXES, MESSAGE_KEPT_S, Mailbox, MailboxStep, QueuedMessage, Recipient
from shared.contract.commands import Send
from shared.contract.events.loops import MessageDropped, MessageWaits
from shared.contract.states import Activity
from shared.runtime.turn import Turn

SHOWN_CHARACTERS = 200
LOOKS_EVERY = timedelta(seconds=5)
"""While a message waits. Events of the spawner wake us too."""


def queue_message(
    turn: Turn, agent: str, loop: str, text: str, when: Literal["idle", "now"], *, outlives_phase: bool = False
) -> None:
    # A text that begins with a sign could be a command of the agent's program, such as `/clear`.
    safe = text if text[:1].isalnum() else f"Message: {text}"
    message = QueuedMessage(loop, safe if text.strip() else "", turn.now.timestamp(), when, outlives_phase)
    _put(turn, agent, mailbox_of(turn, agent).with_message(message))


def forget_messages(turn: Turn, agent: str, loop: str) -> None:
    """Forget a loop's messages to an agent, unless they outlive the phase."""
    mailbox = mailbox_of(turn, agent)
    if (after := mailbox.without(loop)) is not mailbox:
        _put(turn, agent, after)


def mailbox_of(turn: Turn, agent: str) -> Mailbox:
    return turn.memory.find(MAILBOXES, agent) or Mailbox()


def deliver(turn: Turn, agent: str, record: AgentRecord | None, *, is_starting: bool) -> None:
    """Take the next step with an agent's messages; `is_starting`: it is about to be started for its phase."""
    mailbox = mailbox_of(turn, agent)
    step = mailboxes.decide(mailbox, _recipient(turn, mailbox, record, is_starting=is_starting))
    after = step.after
    for message in step.dropped:
        turn.emit(_dropped(turn, agent, message, after.reason or mailbox.reason))
    for loop in step.waits:
        turn.emit(MessageWaits(loop=loop, agent=agent, reason=after.reason))
    if step.send and record is not None:
        after = mailboxes.sent(after, _send(turn, agent, record, step), turn.now.timestamp())
    if step.look_at is not None:
        turn.look_again_at(datetime.fromtimestamp(step.look_at, UTC))
    _put(turn, agent, after)
    if after.messages:
        turn.look_again_at(turn.now + LOOKS_EVERY)


def _dropped(turn: Turn, agent: str, message: QueuedMessage, reason: str) -> MessageDropped:
    is_old = turn.now.timestamp() - message.at >= MESSAGE_KEPT_S
    refused = f"it was refused {message.refusals} times"
    why = f"it could not be said for {MESSAGE_KEPT_S / 86400:g} days" if is_old else refused
    shown = message.text[:SHOWN_CHARACTERS]
    return MessageDropped(loop=message.loop, agent=agent, text=shown, reason=f"{why}: {reason}" if reason else why)


def _recipient(turn: Turn, mailbox: Mailbox, record: AgentRecord | None, *, is_starting: bool) -> Recipient:
    running = record if record is not None and record.is_running else None
    waits_for = ""
    if is_starting:
        waits_for = "it is about to be started for its phase"
    elif running is not None and (running.limit is not None or running.activity is Activity.LIMITED):
        waits_for = "its usage limit is reached"
    spawn = running.spawn if running is not None else None
    return Recipient(turn.now.timestamp(), spawn, waits_for, turn.reply_for(mailbox.command_id))


def _send(turn: Turn, agent: str, record: AgentRecord, step: MailboxStep) -> str:
    # Bound to the session: the next one may be of another phase.
    command = Send(
        agent=agent,
        spawn=record.spawn,
        text=step.send,
        when=step.when,
        wait_s=MESSAGE_KEPT_S,
        expires=turn.now + timedelta(seconds=MESSAGE_KEPT_S),
    )
    loops = ", ".join(dict.fromkeys(message.loop for message in step.after.messages[: step.after.under_way]))
    return turn.send_command(command, f"loop {loops}")


def _put(turn: Turn, agent: str, mailbox: Mailbox) -> None:
    turn.memory.put(MAILBOXES, mailbox if mailbox.messages else None, agent)
