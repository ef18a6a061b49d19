"""Brings messages to agents: through the spawner, once each, in order, and none while its agent can't take it."""

from datetime import UTC, datetime, timedelta
from typing import Literal

from registry import AgentRecord
from services.handoff.loops import mailbox as post
from services.handoff.loops.mailbox import Mailbox, Message, Recipient
from services.handoff.memory import BOX, Replies
from shared.contract.commands import Send
from shared.contract.events.loops import MessageDropped, MessageWaits
from shared.contract.states import Activity
from shared.runtime.turn import Turn

SHOWN_CHARACTERS = 200
LOOKS_EVERY = timedelta(seconds=5)
"""While something waits: who it waits for may run by now. The spawner's own news wake us besides."""


class MessageSender:
    def __init__(self, replies: Replies) -> None:
        self._replies = replies

    def put(
        self, turn: Turn, agent: str, loop: str, text: str, when: Literal["idle", "now"], *, lasts: bool = False
    ) -> None:
        # What begins with a sign may be an order to the agent's program, as `/clear` is, and no message.
        said = text if text[:1].isalnum() else f"Message: {text}"
        letter = Message(loop, said if text.strip() else "", turn.now.timestamp(), when, lasts)
        self._keep(turn, agent, self.box(turn, agent).with_letter(letter))

    def forget(self, turn: Turn, agent: str, loop: str) -> None:
        """Nothing that a loop had to say to an agent is to be said any more."""
        box = self.box(turn, agent)
        if (after := box.without(loop)) is not box:
            self._keep(turn, agent, after)

    def box(self, turn: Turn, agent: str) -> Mailbox:
        return Mailbox.read(turn.recall(f"{BOX}{agent}"))

    def waiting(self, turn: Turn) -> list[str]:
        """Whom something is to be said to."""
        keys = [key for key in {**turn.memory, **turn.remembered} if key.startswith(BOX)]
        return [key.removeprefix(BOX) for key in keys if turn.recall(key) is not None]

    def deliver(self, turn: Turn, agent: str, record: AgentRecord | None, *, is_expected: bool) -> None:
        """Go one step on with what is to be said to an agent; `is_expected`: it is about to be started anew."""
        box = self.box(turn, agent)
        step = post.decide(box, self._addressee(turn, box, record, is_expected=is_expected))
        for letter in step.dropped:
            turn.emit(self._dropped(turn, agent, letter, step.after.reason or box.reason))
        for loop in step.waits:
            turn.emit(MessageWaits(loop=loop, agent=agent, reason=step.after.reason))
        after = step.after
        if step.send and record is not None:
            after = post.asked(after, self._send(turn, agent, record, step), turn.now.timestamp())
        if step.look_at is not None:
            turn.look_again_at(datetime.fromtimestamp(step.look_at, UTC))
        if after != box:
            self._keep(turn, agent, after)
        if after.letters:
            turn.look_again_at(turn.now + LOOKS_EVERY)

    def _dropped(self, turn: Turn, agent: str, letter: Message, reason: str) -> MessageDropped:
        is_old = turn.now.timestamp() - letter.at >= post.KEEPS_S
        often = f"it was refused {letter.refusals} times"
        said = f"it could not be said for {post.KEEPS_S / 86400:g} days" if is_old else often
        shown = letter.text[:SHOWN_CHARACTERS]
        return MessageDropped(loop=letter.loop, agent=agent, text=shown, reason=f"{said}: {reason}" if reason else said)

    def _addressee(self, turn: Turn, box: Mailbox, record: AgentRecord | None, *, is_expected: bool) -> Recipient:
        running = record if record is not None and record.is_running else None
        waits_for = ""
        if is_expected:
            waits_for = "it is about to be started for its phase"
        elif running is not None and (running.limit is not None or running.activity is Activity.LIMITED):
            waits_for = "its usage limit is reached"
        spawn = running.spawn if running is not None else None
        return Recipient(turn.now.timestamp(), spawn, waits_for, self._replies.to(box.asked))

    def _send(self, turn: Turn, agent: str, record: AgentRecord, step: post.MailboxStep) -> str:
        # Bound to the session: one that comes after it may be of another phase.
        command = Send(
            agent=agent,
            spawn=record.spawn,
            text=step.send,
            when=step.when,
            wait_s=post.KEEPS_S,
            expires=turn.now + timedelta(seconds=post.KEEPS_S),
        )
        loops = ", ".join(dict.fromkeys(letter.loop for letter in step.after.letters[: step.after.count]))
        return turn.send_command(command, f"loop {loops}")

    def _keep(self, turn: Turn, agent: str, box: Mailbox) -> None:
        turn.remember(f"{BOX}{agent}", box.document())
