"""The messages that wait for one agent: delivered in order, one text at a time, none lost. Pure.

`messages.py` sends what `decide` returns, and remembers the mailbox.
"""

from dataclasses import dataclass, replace
from typing import Literal

from shared.contract.commands import Reply
from shared.runtime.memory import MemoryTable
from shared.runtime.moments import Moment

FIRST_RETRY_S, LONGEST_RETRY_S = 5.0, 300.0
WAIT_REPORTED_AFTER_S = 60.0
"""A message that has waited so long for an agent that can't take it is reported."""
MESSAGE_KEPT_S = 7 * 24 * 3600.0
COMMAND_LOST_AFTER_S = MESSAGE_KEPT_S + 3600.0
"""A command that has no answer by then never gets one: the journal was lost, for example."""
TEXT_CHARACTERS_AT_MOST = 60_000
"""More messages go into the next text."""
MESSAGES_AT_MOST = 200
"""Of more messages that wait for one agent, the oldest are summed up."""
SINGLY_AFTER_TRIES, REFUSALS_AT_MOST = 3, 12
"""When a text is refused so often, its messages go one by one; a message that is refused so often alone is dropped. One
message that the agent's program takes for a command must not hold up the others."""


@dataclass(frozen=True)
class QueuedMessage:
    loop: str
    text: str
    at: Moment
    when: Literal["idle", "now"] = "idle"
    outlives_phase: bool = False
    refusals: int = 0
    """How often it was refused alone."""


@dataclass(frozen=True)
class Mailbox:
    messages: tuple[QueuedMessage, ...] = ()
    under_way: int = 0
    """How many of them, from the first on, the spawner was asked to type."""
    command_id: str = ""
    asked_at: Moment = 0.0
    tries: int = 0
    not_before: Moment = 0.0
    wait_reported: bool = False
    reason: str = ""
    """Why the messages wait."""

    def with_message(self, message: QueuedMessage) -> "Mailbox":
        is_first = all(message.loop != other.loop for other in self.messages)
        messages = _summed_up((*self.messages, message), self.under_way)
        return replace(self, messages=messages, wait_reported=self.wait_reported and not is_first)

    def without(self, loop: str) -> "Mailbox":
        """Without a loop's messages of an earlier phase, unless they outlive it."""
        messages = tuple(each for each in self.messages if each.loop != loop or each.outlives_phase)
        return self if messages == self.messages else Mailbox(messages)


MAILBOXES = MemoryTable("mailbox:", Mailbox)
"""By agent."""


@dataclass(frozen=True)
class Recipient:
    """The agent as it is now."""

    now: float
    spawn: str | None
    """Its session; None: it does not run."""
    waits_for: str = ""
    """Why it can't take messages now."""
    reply: Reply | None = None
    """The answer to the latest command."""


@dataclass(frozen=True)
class MailboxStep:
    after: Mailbox
    send: str = ""
    """The text to send now; the caller notes the command by `sent`."""
    when: Literal["idle", "now"] = "idle"
    waits: tuple[str, ...] = ()
    """The loops to report as waiting."""
    dropped: tuple[QueuedMessage, ...] = ()
    look_at: float | None = None


def decide(mailbox: Mailbox, agent: Recipient) -> MailboxStep:
    if not mailbox.messages:
        return MailboxStep(Mailbox())
    if mailbox.command_id:
        if agent.reply is None and agent.now - mailbox.asked_at < COMMAND_LOST_AFTER_S:
            return MailboxStep(mailbox)
        if agent.reply is not None and agent.reply.ok:
            return decide(Mailbox(mailbox.messages[mailbox.under_way :]), replace(agent, reply=None))
        mailbox = _refused(mailbox, agent)
    mailbox, dropped = _without_hopeless(mailbox, agent.now)
    if not mailbox.messages:
        return MailboxStep(Mailbox(), dropped=dropped)
    reason = agent.waits_for or ("" if agent.spawn is not None else "it does not run")
    if reason or agent.now < mailbox.not_before:
        return replace(_waits(replace(mailbox, reason=reason or mailbox.reason), agent.now), dropped=dropped)
    chosen = _first_text(mailbox.messages) if mailbox.tries < SINGLY_AFTER_TRIES else mailbox.messages[:1]
    text = "\n\n".join(message.text for message in chosen)
    when: Literal["idle", "now"] = "now" if any(message.when == "now" for message in chosen) else "idle"
    return MailboxStep(replace(mailbox, under_way=len(chosen)), send=text, when=when, dropped=dropped)


def sent(mailbox: Mailbox, command_id: str, now: float) -> Mailbox:
    return replace(mailbox, command_id=command_id, asked_at=now, tries=mailbox.tries + 1)


def _refused(mailbox: Mailbox, agent: Recipient) -> Mailbox:
    reason = agent.reply.said if agent.reply is not None else "nobody answered"
    wait_s = min(FIRST_RETRY_S * 2.0 ** min(max(mailbox.tries - 1, 0), 10), LONGEST_RETRY_S)
    messages = mailbox.messages
    if mailbox.under_way == 1 and (mailbox.tries >= SINGLY_AFTER_TRIES or messages[0].refusals):
        # This message may be the one that can't be typed: the others go first.
        messages = (*messages[1:], replace(messages[0], refusals=messages[0].refusals + 1))
    return replace(mailbox, messages=messages, command_id="", under_way=0, not_before=agent.now + wait_s, reason=reason)


def _without_hopeless(mailbox: Mailbox, now: float) -> tuple[Mailbox, tuple[QueuedMessage, ...]]:
    """Without messages that are too old or were refused too often, which are dropped, and without blank ones."""
    kept: list[QueuedMessage] = []
    dropped: list[QueuedMessage] = []
    for message in mailbox.messages:
        if message.text.strip():
            is_hopeful = now - message.at < MESSAGE_KEPT_S and message.refusals < REFUSALS_AT_MOST
            (kept if is_hopeful else dropped).append(message)
    return replace(mailbox, messages=tuple(kept)), tuple(dropped)


def _summed_up(messages: tuple[QueuedMessage, ...], under_way: int) -> tuple[QueuedMessage, ...]:
    """The oldest of too many become one. Those that are under way stay as they are."""
    if len(messages) - under_way <= MESSAGES_AT_MOST:
        return messages
    half = under_way + MESSAGES_AT_MOST // 2
    old = messages[under_way:half]
    text = f"{len(old)} messages to you came before the next one, and are left out here: look at the branch for them."
    one = replace(old[-1], text=text, outlives_phase=any(message.outlives_phase for message in old))
    return (*messages[:under_way], one, *messages[half:])


def _waits(mailbox: Mailbox, now: float) -> MailboxStep:
    oldest = min(message.at for message in mailbox.messages)
    look_at = mailbox.not_before if mailbox.not_before > now else None
    if mailbox.wait_reported or now - oldest < WAIT_REPORTED_AFTER_S:
        report_at = None if mailbox.wait_reported else oldest + WAIT_REPORTED_AFTER_S
        return MailboxStep(mailbox, look_at=min((at for at in (look_at, report_at) if at is not None), default=None))
    loops = tuple(dict.fromkeys(message.loop for message in mailbox.messages))
    return MailboxStep(replace(mailbox, wait_reported=True), waits=loops, look_at=look_at)


def _first_text(messages: tuple[QueuedMessage, ...]) -> tuple[QueuedMessage, ...]:
    """As many messages as fit into one text, at least one. A message that was refused goes alone."""
    size = 0
    for place, message in enumerate(messages):
        size += len(message.text) + 2
        if place and (size > TEXT_CHARACTERS_AT_MOST or message.refusals or messages[0].refusals):
            return messages[:place]
    return messages
