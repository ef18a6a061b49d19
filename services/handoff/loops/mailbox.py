"""Messages to one agent: none is lost, they go one after the other, and those that wait together are one text. Pure."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from shared.contract.commands import Reply

FIRST_WAIT_S, LONGEST_WAIT_S = 5.0, 300.0
TELLS_AFTER_S = 60.0
"""A message that waits so long for an agent that could not take it is told of."""
KEEPS_S = 7 * 24 * 3600.0
"""So long a message is worth something."""
LOST_AFTER_S = KEEPS_S + 3600.0
AT_MOST_CHARACTERS = 60_000
"""In one text; what is more goes with the next."""
AT_MOST_LETTERS = 200
"""Of one agent that takes none: then the oldest are summed up."""
ALONE_AFTER, REFUSALS_AT_MOST = 3, 12
"""So often a text is refused before its letters go one by one, and a letter before it is given up: what the agent's
program would take for an order to itself, say, must not hold up all others."""


@dataclass(frozen=True)
class Message:
    loop: str
    text: str
    at: float
    when: Literal["idle", "now"] = "idle"
    lasts: bool = False
    """Whether it is worth saying in the next phase too."""
    refusals: int = 0
    """How often it was refused alone."""


@dataclass(frozen=True)
class Mailbox:
    """What is to be said to an agent. Kept over restarts."""

    letters: tuple[Message, ...] = ()
    count: int = 0
    """How many of them were given to the spawner, from the first on."""
    asked: str = ""
    asked_at: float = 0.0
    tries: int = 0
    not_before: float = 0.0
    told: bool = False
    """Whether it was told that they wait."""
    reason: str = ""
    """Why they do."""

    def document(self) -> dict[str, Any] | None:
        return asdict(self) if self.letters else None

    @classmethod
    def read(cls, kept: dict[str, Any] | None) -> "Mailbox":
        if kept is None:
            return cls()
        known = {key: value for key, value in kept.items() if key in cls.__dataclass_fields__}
        letters = [
            {key: letter[key] for key in letter if key in Message.__dataclass_fields__} for letter in kept["letters"]
        ]
        return cls(**{**known, "letters": tuple(Message(**letter) for letter in letters)})

    def with_letter(self, letter: Message) -> "Mailbox":
        is_first = all(letter.loop != other.loop for other in self.letters)
        letters = _summed_up((*self.letters, letter), self.count)
        return replace(self, letters=letters, told=self.told and not is_first)

    def without(self, loop: str) -> "Mailbox":
        """What a loop had to say in an earlier phase is said no more, unless it lasts."""
        letters = tuple(letter for letter in self.letters if letter.loop != loop or letter.lasts)
        return self if letters == self.letters else replace(Mailbox(), letters=letters)


@dataclass(frozen=True)
class Recipient:
    """The agent, as it is now."""

    now: float
    spawn: str | None
    """Its session; None: it does not run."""
    waits_for: str = ""
    """Why nothing is to be said to it now."""
    reply: Reply | None = None


@dataclass(frozen=True)
class MailboxStep:
    after: Mailbox
    send: str = ""
    """The text to be sent now; whoever does notes it by `asked`."""
    when: Literal["idle", "now"] = "idle"
    waits: tuple[str, ...] = ()
    """The loops of which is told that their messages wait."""
    dropped: tuple[Message, ...] = ()
    look_at: float | None = None


def decide(box: Mailbox, agent: Recipient) -> MailboxStep:
    if not box.letters:
        return MailboxStep(Mailbox())
    if box.asked:
        if agent.reply is None and abs(agent.now - box.asked_at) < LOST_AFTER_S:  # a clock may be set back
            return MailboxStep(box)
        if agent.reply is not None and agent.reply.ok:
            return decide(Mailbox(box.letters[box.count :]), replace(agent, reply=None))
        box = _refused(box, agent)
    kept, dropped = _worth_keeping(box, agent.now)
    if not kept.letters:
        return MailboxStep(Mailbox(), dropped=dropped)
    reason = agent.waits_for or ("" if agent.spawn is not None else "it does not run")
    if reason or agent.now < kept.not_before:
        return replace(_waits(replace(kept, reason=reason or kept.reason), agent.now), dropped=dropped)
    letters = _first(kept.letters) if kept.tries < ALONE_AFTER else kept.letters[:1]
    text = "\n\n".join(letter.text for letter in letters)
    when: Literal["idle", "now"] = "now" if any(letter.when == "now" for letter in letters) else "idle"
    return MailboxStep(replace(kept, count=len(letters)), send=text, when=when, dropped=dropped)


def asked(box: Mailbox, command: str, now: float) -> Mailbox:
    return replace(box, asked=command, asked_at=now, tries=box.tries + 1)


def _refused(box: Mailbox, agent: Recipient) -> Mailbox:
    reason = agent.reply.said if agent.reply is not None else "nobody answered"
    wait_s = min(FIRST_WAIT_S * 2.0 ** min(max(box.tries - 1, 0), 10), LONGEST_WAIT_S)
    letters = box.letters
    if box.count == 1 and (box.tries >= ALONE_AFTER or letters[0].refusals):
        # Perhaps it is this one that can't be said: the others go first.
        letters = (*letters[1:], replace(letters[0], refusals=letters[0].refusals + 1))
    return replace(box, letters=letters, asked="", count=0, not_before=agent.now + wait_s, reason=reason)


def _worth_keeping(box: Mailbox, now: float) -> tuple[Mailbox, tuple[Message, ...]]:
    """Those that are too old or refused too often are given up, and blank ones forgotten: there is nothing to say."""
    letters = [letter for letter in box.letters if letter.text.strip()]
    fresh = [
        place
        for place, letter in enumerate(letters)
        if now - letter.at < KEEPS_S and letter.refusals < REFUSALS_AT_MOST
    ]
    dropped = tuple(letter for place, letter in enumerate(letters) if place not in fresh)
    if not dropped and len(letters) == len(box.letters):
        return box, ()
    return replace(box, letters=tuple(letters[place] for place in fresh)), dropped


def _summed_up(letters: tuple[Message, ...], asked: int) -> tuple[Message, ...]:
    """The oldest of too many in one; those that were given to the spawner already stay as they are."""
    if len(letters) - asked <= AT_MOST_LETTERS:
        return letters
    half = asked + AT_MOST_LETTERS // 2
    old = letters[asked:half]
    said = f"{len(old)} messages to you came before the next one, and are left out here: look at the branch for them."
    one = replace(old[-1], text=said, lasts=any(letter.lasts for letter in old))
    return (*letters[:asked], one, *letters[half:])


def _waits(box: Mailbox, now: float) -> MailboxStep:
    oldest = min(letter.at for letter in box.letters)
    look_at = box.not_before if box.not_before > now else None
    if box.told or now - oldest < TELLS_AFTER_S:
        soon = None if box.told else oldest + TELLS_AFTER_S
        return MailboxStep(box, look_at=min((at for at in (look_at, soon) if at is not None), default=None))
    loops = tuple(dict.fromkeys(letter.loop for letter in box.letters))
    return MailboxStep(replace(box, told=True), waits=loops, look_at=look_at)


def _first(letters: tuple[Message, ...]) -> tuple[Message, ...]:
    """As many as go into one text, and one at least; one that was refused goes alone."""
    size = 0
    for place, letter in enumerate(letters):
        size += len(letter.text) + 2
        if place and (size > AT_MOST_CHARACTERS or letter.refusals or letters[0].refusals):
            return letters[:place]
    return letters
