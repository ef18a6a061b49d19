"""Messages to one agent: one text at a time, in order, none lost and none twice."""

from dataclasses import replace
from typing import Any

import pytest

from services.handoff.loops.mailbox import (
    COMMAND_LOST_AFTER_S,
    FIRST_RETRY_S,
    LONGEST_RETRY_S,
    MESSAGE_KEPT_S,
    MESSAGES_AT_MOST,
    TEXT_CHARACTERS_AT_MOST,
    WAIT_REPORTED_AFTER_S,
    Mailbox,
    MailboxStep,
    QueuedMessage,
    Recipient,
    decide,
    sent,
)
from shared.contract.commands import Send
from tests.unit.handoff.samples import NOW, reply


def message(text: str, at: float = NOW, **more: Any) -> QueuedMessage:
    return QueuedMessage(**{"loop": "app", "text": text, "at": at, **more})


def box(*texts: str, **more: Any) -> Mailbox:
    return Mailbox(tuple(message(text) for text in texts), **more)


def agent(seconds: float = 0.0, **more: Any) -> Recipient:
    return Recipient(**{"now": NOW + seconds, "spawn": "s1", **more})


def submitted(given: Mailbox, seconds: float = 0.0) -> Mailbox:
    step = decide(given, agent(seconds))
    assert step.send
    return sent(step.after, "c1", NOW + seconds)


def texts(given: Mailbox) -> list[str]:
    return [each.text for each in given.messages]


# --- one text at a time ---


def test_an_empty_mailbox_sends_nothing() -> None:
    assert decide(Mailbox(), agent()) == MailboxStep(Mailbox())


def test_messages_that_wait_together_are_one_text() -> None:
    step = decide(box("one", "two"), agent())
    assert (step.send, step.when, step.after.under_way, texts(step.after)) == ("one\n\ntwo", "idle", 2, ["one", "two"])


def test_a_message_that_comes_while_a_text_is_under_way_waits() -> None:
    under_way = submitted(box("one")).with_message(message("two"))
    assert decide(under_way, agent(5)) == MailboxStep(under_way)
    step = decide(under_way, agent(6, reply=reply()))
    assert (step.send, texts(step.after), step.after.command_id) == ("two", ["two"], "")


def test_a_delivered_text_is_forgotten() -> None:
    assert decide(submitted(box("one", "two")), agent(1, reply=reply())) == MailboxStep(Mailbox())


@pytest.mark.parametrize(("when", "expected"), [(("idle", "idle"), "idle"), (("idle", "now"), "now")])
def test_a_message_that_can_not_wait_takes_the_others_with_it(when: tuple[str, str], expected: str) -> None:
    messages = tuple(message(str(place), when=each) for place, each in enumerate(when))
    assert decide(Mailbox(messages), agent()).when == expected


def test_messages_that_do_not_fit_into_one_text_go_with_the_next() -> None:
    half = "x" * (TEXT_CHARACTERS_AT_MOST // 2 - 2)
    given = box(half, half, "three")
    step = decide(given, agent())
    assert (step.send, step.after.under_way) == (f"{half}\n\n{half}", 2)
    assert decide(sent(step.after, "c1", NOW), agent(1, reply=reply())).send == "three"


def test_a_message_that_is_too_long_goes_alone() -> None:
    huge = "x" * (TEXT_CHARACTERS_AT_MOST * 2)
    assert decide(box("one", huge), agent()).send == "one"
    assert decide(box(huge, "two"), agent()).send == huge


@pytest.mark.parametrize("blank", ["", " ", "\n"])
def test_a_blank_message_is_neither_kept_nor_sent(blank: str) -> None:
    """A template may come out empty, and the spawner takes no blank text."""
    step = decide(box(blank), agent())
    if step.send:
        Send(agent="bob", text=step.send)
    assert step.send or not step.after.messages


# --- when it can't be said ---


@pytest.mark.parametrize(
    ("more", "reason"),
    [({"spawn": None}, "it does not run"), ({"waits_for": "its limit"}, "its limit")],
)
def test_nothing_is_sent_to_an_agent_that_can_not_take_it_and_that_is_reported_once(
    more: dict[str, Any], reason: str
) -> None:
    soon = decide(box("one"), agent(1, **more))
    assert (soon.send, soon.waits, soon.look_at) == ("", (), NOW + WAIT_REPORTED_AFTER_S)
    late = decide(soon.after, agent(WAIT_REPORTED_AFTER_S, **more))
    assert (late.send, late.waits, late.after.reason) == ("", ("app",), reason)
    assert decide(late.after, agent(WAIT_REPORTED_AFTER_S * 9, **more)).waits == ()
    assert decide(late.after, agent(WAIT_REPORTED_AFTER_S * 9)).send == "one"


def test_every_loop_whose_messages_wait_is_reported() -> None:
    given = Mailbox((message("one"), message("two", loop="other"), message("three")))
    assert decide(given, agent(WAIT_REPORTED_AFTER_S, spawn=None)).waits == ("app", "other")


def test_a_refused_text_is_retried_with_backoff() -> None:
    given, now, waited = box("one"), 0.0, []
    for _ in range(12):
        given = submitted(given, now)
        refused = decide(given, agent(now, reply=reply(ok=False, said="a dialog is open")))
        assert (refused.send, refused.after.command_id, refused.after.reason) == ("", "", "a dialog is open")
        waited.append(refused.after.not_before - NOW - now)
        assert refused.look_at is not None
        assert decide(refused.after, agent(now + waited[-1] - 0.01)).send == ""
        given, now = refused.after, now + waited[-1]
    assert waited[:3] == [FIRST_RETRY_S, FIRST_RETRY_S * 2, FIRST_RETRY_S * 4]
    assert waited == sorted(waited)
    assert waited[-1] == LONGEST_RETRY_S


def test_a_new_message_goes_with_the_refused_text() -> None:
    refused = decide(submitted(box("one")).with_message(message("two")), agent(1, reply=reply(ok=False))).after
    assert decide(refused, agent(600)).send == "one\n\ntwo"


def test_after_a_delivery_the_next_text_goes_at_once() -> None:
    refused = decide(submitted(box("one")), agent(0, reply=reply(ok=False))).after
    again = submitted(refused, 600).with_message(message("two"))
    step = decide(again, agent(601, reply=reply()))
    assert (step.send, step.after.tries, step.after.not_before) == ("two", 0, 0.0)


def test_a_command_without_an_answer_counts_as_lost_in_the_end() -> None:
    under_way = submitted(box("one"))
    assert decide(under_way, agent(COMMAND_LOST_AFTER_S - 1)) == MailboxStep(under_way)
    lost = decide(under_way.with_message(message("two", NOW + COMMAND_LOST_AFTER_S)), agent(COMMAND_LOST_AFTER_S))
    assert (lost.send, [each.text for each in lost.dropped], texts(lost.after)) == ("", ["one"], ["two"])
    assert lost.after.reason == "nobody answered"


@pytest.mark.parametrize("back", [0.01, 1.0, 60.0])
def test_no_message_is_sent_twice_when_the_clock_is_set_back_a_little(back: float) -> None:
    under_way = submitted(box("one"))
    step = decide(under_way, agent(-back))
    assert (step.send, step.after.command_id) == ("", "c1")


# --- what is given up ---


def test_a_message_that_is_too_old_is_dropped() -> None:
    given = Mailbox((message("old", NOW - MESSAGE_KEPT_S), message("young", NOW - MESSAGE_KEPT_S + 1)))
    step = decide(given, agent(spawn=None))
    assert ([each.text for each in step.dropped], texts(step.after)) == (["old"], ["young"])
    assert decide(given, agent()).send == "young"
    all_old = decide(Mailbox((message("old", NOW - MESSAGE_KEPT_S),)), agent())
    assert (all_old.after, [each.text for each in all_old.dropped]) == (Mailbox(), ["old"])


def test_of_very_many_messages_the_oldest_are_summed_up_but_none_under_way() -> None:
    given = submitted(box("under way"))
    for number in range(2 * MESSAGES_AT_MOST):
        given = given.with_message(message(str(number)))
    texts = [each.text for each in given.messages]
    assert (texts[0], texts[-1]) == ("under way", str(2 * MESSAGES_AT_MOST - 1))
    assert "messages to you came before the next one" in texts[1]
    assert len(texts) <= MESSAGES_AT_MOST + 1
    assert decide(given, agent(reply=reply(ok=True))).dropped == ()


def test_a_message_that_is_always_refused_delays_no_other_and_is_dropped_in_the_end() -> None:
    given, now, sending, said, dropped = box("/clear", "one", "two"), 0.0, "", list[str](), list[str]()
    while given.messages:
        answer = reply(ok="/clear" not in sending) if given.command_id else None
        said += [sending] if answer is not None and answer.ok else []
        step = decide(given, agent(now, reply=answer))
        dropped += texts(Mailbox(step.dropped))
        sending, now = step.send, now + 400.0
        given = sent(step.after, "c", NOW + now) if step.send else step.after
    assert (said, dropped) == (["one", "two"], ["/clear"])
    assert now < MESSAGE_KEPT_S / 10


def test_an_old_message_is_dropped_though_newer_ones_have_the_same_text() -> None:
    old = message("again", NOW - MESSAGE_KEPT_S)
    step = decide(Mailbox((old, message("again"), message("again"))), agent(spawn=None))
    assert (len(step.dropped), len(step.after.messages)) == (1, 2)


def test_a_message_that_is_under_way_is_not_dropped() -> None:
    under_way = submitted(box("one"))
    assert decide(under_way, agent(MESSAGE_KEPT_S + 1)).dropped == ()


# --- another phase begins ---


def test_a_loops_messages_are_forgotten_unless_they_outlive_the_phase() -> None:
    given = Mailbox((message("a"), message("b", outlives_phase=True), message("c", loop="other"), message("d")))
    assert texts(given.without("app")) == ["b", "c"]
    assert texts(given.without("other")) == ["a", "b", "d"]


def test_a_text_under_way_stays_so_where_no_message_is_forgotten() -> None:
    under_way = replace(submitted(Mailbox((message("b", outlives_phase=True),))), reason="x")
    assert under_way.without("app") is under_way
    assert under_way.without("other") is under_way


def test_a_message_that_outlives_the_phase_is_sent_again_when_its_text_was_forgotten_in_part() -> None:
    """That text went to a session that is replaced."""
    under_way = submitted(Mailbox((message("a"), message("b", outlives_phase=True))))
    after = under_way.without("app")
    assert (after.command_id, after.under_way) == ("", 0)
    assert decide(after, agent(1)).send == "b"


def test_a_mailbox_without_messages_is_as_new() -> None:
    assert box("one").without("app") == Mailbox()
