"""Whatever the spawner answers and whenever: each message is sent once, waits, or is dropped with a report; and in
order, but for those that were refused alone."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from services.handoff.loops.mailbox import (
    COMMAND_LOST_AFTER_S,
    MAILBOXES,
    MESSAGE_KEPT_S,
    Mailbox,
    QueuedMessage,
    Recipient,
    decide,
    sent,
)
from tests.unit.handoff.samples import NOW, read_back, reply

WRITES, LOOKS = "writes", "looks"
ANSWERS = st.sampled_from(["ok", "refused", "none"])
TIMES = st.sampled_from([0.0, 0.5, 5.0, 60.0, 3600.0, MESSAGE_KEPT_S / 2, MESSAGE_KEPT_S])
STEPS = st.tuples(st.sampled_from([WRITES, LOOKS, LOOKS]), ANSWERS, st.booleans(), TIMES, st.booleans())


@dataclass
class Life:
    """An agent's box, and what became of all that was put into it."""

    box: Mailbox = field(default_factory=Mailbox)
    now: float = NOW
    written: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    set_back: set[str] = field(default_factory=set)
    """Those that were refused alone: the others went first."""
    sending: str = ""
    commands: int = 0

    def write(self) -> None:
        text = f"message {len(self.written)}"
        self.written.append(text)
        self.box = self.box.with_message(QueuedMessage("app", text, self.now))

    def look(self, answer: str, *, runs: bool) -> None:
        answered = reply(ok=answer == "ok") if self.box.command_id and answer != "none" else None
        if answered is not None and answered.ok:
            self.said += self.sending.split("\n\n")
        under_way = self.box if self.box.command_id and answered is None else None
        step = decide(self.box, Recipient(self.now, "s1" if runs else None, reply=answered))
        self.dropped += [message.text for message in step.dropped]
        self.box = step.after
        self.set_back |= {message.text for message in (*self.box.messages, *step.dropped) if message.refusals}
        if step.send:
            assert runs
            assert under_way is None or self.now - under_way.asked_at >= COMMAND_LOST_AFTER_S
            self.sending, self.commands = step.send, self.commands + 1
            self.box = sent(self.box, f"c{self.commands}", self.now)

    def restart(self) -> None:
        self.box = read_back(MAILBOXES, self.box)


@given(st.lists(STEPS, max_size=60))
def test_no_message_is_lost_or_sent_twice_or_out_of_order(steps: list[tuple[str, str, bool, float, bool]]) -> None:
    life = Life()
    for what, answer, runs, passes, restarts in steps:
        life.now += passes
        if what == WRITES:
            life.write()
        else:
            life.look(answer, runs=runs)
        if restarts:
            life.restart()
    waiting = [message.text for message in life.box.messages]
    assert sorted([*life.said, *life.dropped, *waiting]) == sorted(life.written)
    order = {text: place for place, text in enumerate(life.written) if text not in life.set_back}
    for texts in (life.said, life.dropped, waiting):
        placed = [order[text] for text in texts if text in order]
        assert placed == sorted(placed)


@given(st.lists(STEPS, max_size=40))
def test_an_agent_that_takes_every_text_gets_every_message(steps: list[tuple[str, str, bool, float, bool]]) -> None:
    life = Life()
    for what, answer, runs, passes, _ in steps:
        life.now += min(passes, 60.0)
        if what == WRITES:
            life.write()
        else:
            life.look(answer, runs=runs)
    for _ in range(len(life.written) + 4):
        life.now += 600.0
        life.look("ok", runs=True)
    assert (sorted(life.said), life.dropped, life.box) == (sorted(life.written), [], Mailbox())
