"""Pressing keys for a purpose: only when there is something to press them for, and never at the next dialog."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.spawner.typing.delivery import Delivered, DeliveryAct, DeliveryFailed, DeliveryInput, DeliveryWait, Step
from services.spawner.typing.keys import (
    KEY_PRESSES,
    KEYS_WORK_WITHIN_S,
    MOST_PRESSES,
    KeyPress,
    Purpose,
    advance,
    begin,
    purpose_of,
)
from shared.contract.commands import AgentCommand, Approve, Deny, Interrupt, Send
from shared.fleet.backend import Backend, Dialog, ScreenRules
from shared.messaging.journal import Request
from shared.runtime.turn import PendingCommand
from shared.screen import ScreenReading
from shared.screen.signs import fingerprint

ASKS = Dialog(id="permission", match="Allow", says="a permission dialog", approve=["1"], deny=["2"])
LIMIT = Dialog(id="limit", match="Limit", says="the menu about the usage limit")
SEEING = Backend(binary="agent", screen=ScreenRules(box="(?P<text>.*)", dialogs=[ASKS, LIMIT]))
BLIND = Backend(binary="agent", screen=ScreenRules(box=None))


def seen(
    dialog: Dialog | None = None,
    text: str = "Allow this?",
    *,
    working: bool = False,
    now: float = 100.0,
    backend: Backend = SEEING,
    ours: bool = True,
) -> DeliveryInput:
    reading = ScreenReading(None if dialog else "", dialog, working, text if dialog else "")
    return DeliveryInput(backend, "", reading, now, ours=ours)


def pressing(what: Purpose, **more: object) -> KeyPress:
    return KeyPress("p1", "s1", what, 100.0, **more)  # type: ignore[arg-type]


def failed(step: Step[KeyPress]) -> str:
    assert isinstance(step, DeliveryFailed)
    return step.reason


@pytest.mark.parametrize(
    ("what", "circumstances", "said"),
    [
        ("approve", seen(), "there is no dialog"),
        ("deny", seen(working=True), "there is no dialog"),
        ("approve", seen(LIMIT), "the menu about the usage limit is on the screen: only a person"),
        ("deny", seen(LIMIT), "only a person at the terminal"),
        ("interrupt", seen(ASKS), "a permission dialog is on the screen: deny it"),
        ("interrupt", seen(), "nothing to interrupt"),
    ],
)
def test_nothing_is_pressed_for_nothing(what: Purpose, circumstances: DeliveryInput, said: str) -> None:
    assert said in failed(begin(pressing(what), circumstances))


@pytest.mark.parametrize(
    ("what", "circumstances"),
    [
        ("approve", seen(ASKS)),
        ("deny", seen(ASKS)),
        ("interrupt", seen(working=True)),
        ("interrupt", seen(backend=BLIND)),
        ("keys", seen()),
        ("keys", seen(LIMIT)),
    ],
)
def test_what_is_meant_is_remembered_before_a_key_is_pressed(what: Purpose, circumstances: DeliveryInput) -> None:
    step = begin(pressing(what), circumstances)
    assert isinstance(step, DeliveryAct)
    assert step.what == "nothing"
    then = advance(step.after, circumstances)
    assert isinstance(then, DeliveryAct)
    assert then.what == "submit"


def test_a_dialog_that_went_away_was_answered() -> None:
    begun = begin(pressing("approve"), seen(ASKS))
    assert isinstance(begun, DeliveryAct)
    pressed = advance(begun.after, seen(ASKS))
    assert isinstance(pressed, DeliveryAct)
    assert advance(pressed.after, seen()) == Delivered("screen")
    assert advance(begun.after, seen(ours=False)) == Delivered("screen")


def test_a_dialog_that_somebody_else_answered_was_not_approved() -> None:
    begun = begin(pressing("approve"), seen(ASKS))
    assert isinstance(begun, DeliveryAct)
    assert "nothing was pressed" in failed(advance(begun.after, seen()))


def test_the_next_dialog_is_not_answered_too() -> None:
    begun = begin(pressing("approve"), seen(ASKS, "Allow rm?"))
    assert isinstance(begun, DeliveryAct)
    assert advance(begun.after, seen(ASKS, "Allow push?", ours=False)) == Delivered("screen")


def test_a_dialog_that_stays_is_answered_again_and_then_given_up() -> None:
    begun = begin(pressing("approve"), seen(ASKS))
    assert isinstance(begun, DeliveryAct)
    after, now, presses = begun.after, 100.0, 0
    while not isinstance(step := advance(after, seen(ASKS, now=now)), DeliveryFailed):
        if isinstance(step, DeliveryAct):
            after, presses = step.after, presses + 1
        else:
            assert isinstance(step, DeliveryWait)
        now += 0.1
    assert presses == MOST_PRESSES
    assert "still on the agent's screen" in step.reason


@pytest.mark.parametrize("backend", [SEEING, BLIND])
def test_keys_that_may_have_been_pressed_are_not_pressed_again(backend: Backend) -> None:
    assert advance(pressing("keys"), seen(backend=backend, ours=False)) == Delivered("none")
    assert advance(pressing("keys", pressed=True), seen(backend=backend)) == Delivered("none")


def test_it_is_kept_whole() -> None:
    whole = pressing("deny", pressed=True, presses=2, seen="abc")
    assert KEY_PRESSES.load(KEY_PRESSES.dump(whole)) == whole


# --- the rows of a choice ---

CHOICE = Dialog(id="question", match="Which", says="a question of the agent", numbered=True)


def answered(text: str = "Which? 1. Red", **more: object) -> KeyPress:
    """The answer to a choice, remembered and not pressed yet."""
    begun = begin(pressing("answer"), seen(CHOICE, text), fingerprint(seen(CHOICE, text).reading))
    assert isinstance(begun, DeliveryAct)
    return replace(begun.after, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("what", ["answer", "approve", "deny"])
def test_an_answer_is_bound_to_its_dialog(what: Purpose) -> None:
    meant = fingerprint(seen(ASKS, "Allow rm?").reading)
    assert "not the one that was meant" in failed(begin(pressing(what), seen(ASKS, "Allow push?"), meant))
    assert "there is no dialog" in failed(begin(pressing(what), seen(), meant))
    assert isinstance(begin(pressing(what), seen(ASKS, "Allow rm?"), meant), DeliveryAct)


def test_a_row_is_pressed_once_and_confirmed_by_the_screen() -> None:
    pressed = advance(answered(), seen(CHOICE, "Which? 1. Red"))
    assert isinstance(pressed, DeliveryAct)
    assert (pressed.what, pressed.after.presses) == ("submit", 1)
    assert isinstance(advance(pressed.after, seen(CHOICE, "Which? 1. Red", now=101.0)), DeliveryWait)
    assert advance(pressed.after, seen(CHOICE, "Next? 1. Big", now=101.0)) == Delivered("screen")
    assert advance(pressed.after, seen(now=101.0)) == Delivered("screen")


def test_a_row_is_not_pressed_again_though_nothing_happens() -> None:
    pressed = answered(pressed=True, presses=1)
    step = advance(pressed, seen(CHOICE, "Which? 1. Red", now=100 + KEYS_WORK_WITHIN_S))
    assert "still on the agent's screen" in failed(step)


def test_a_row_that_went_away_by_itself_was_not_answered() -> None:
    assert "nothing was pressed" in failed(advance(answered(), seen()))
    assert "nothing was pressed" in failed(advance(answered(), seen(CHOICE, "Next? 1. Big")))


def test_a_row_that_may_have_been_pressed_is_not_pressed_again() -> None:
    """The service died between its memory of the key and the next one: a second press may choose something else."""
    later = 100 + KEYS_WORK_WITHIN_S
    assert isinstance(advance(answered(), seen(CHOICE, "Which? 1. Red", ours=False)), DeliveryWait)
    step = advance(answered(), seen(CHOICE, "Which? 1. Red", now=later, ours=False))
    assert "not known whether the key was pressed" in failed(step)
    assert advance(answered(), seen(CHOICE, "Next? 1. Big", ours=False)) == Delivered("screen")


@pytest.mark.parametrize(
    ("command", "purpose"),
    [
        (Send(agent="builder", keys=["2"], fingerprint="f"), "answer"),
        (Send(agent="builder", keys=["2"]), "keys"),
        (Approve(agent="builder", fingerprint="f"), "approve"),
        (Deny(agent="builder"), "deny"),
        (Interrupt(agent="builder"), "interrupt"),
    ],
)
def test_what_keys_are_pressed_for(command: AgentCommand, purpose: Purpose) -> None:
    assert purpose_of(PendingCommand(Request("c1", command.verb, b"", "", 0, 0), command)) == purpose


# --- with accidents ---


@dataclass
class Asking:
    """An agent that asks one thing after another; a key takes a while to show."""

    lag: int
    asks: int
    shown: int = 0
    _due: int = -1

    def tick(self) -> None:
        if self._due >= 0:
            self._due -= 1
            if self._due < 0:
                self.shown = self.asks

    def press(self) -> None:
        self.asks += 1
        if self._due < 0:
            self._due = self.lag


@settings(max_examples=300, deadline=None)
@given(
    lag=st.integers(0, 5),
    crashes=st.lists(st.integers(0, 40), max_size=4),
    lost=st.lists(st.integers(0, 40), max_size=2),
)
def test_one_approval_answers_what_it_was_meant_for(lag: int, crashes: list[int], lost: list[int]) -> None:
    """However often the process dies, the dialog that was on the screen is answered, and no later one on purpose."""
    agent = Asking(lag, asks=0)
    begun = begin(pressing("approve"), seen(ASKS, "Allow 0?"))
    assert isinstance(begun, DeliveryAct)
    current, ours = begun.after, True
    for turn in range(300):
        agent.tick()
        step = advance(current, seen(ASKS, f"Allow {agent.shown}?", now=100 + turn * 0.1, ours=ours))
        if isinstance(step, Delivered | DeliveryFailed):
            break
        if isinstance(step, DeliveryAct):
            assert agent.shown == 0, "a key was pressed at another dialog than the one that was meant"
            agent.press()
            if turn not in lost:
                current, ours = step.after, True
        if turn in crashes or turn in lost:
            ours = False
    assert step == Delivered("screen")
    if not lost:
        assert agent.asks == 1
