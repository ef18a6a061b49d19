"""Pressing keys for a purpose: only when there is something to press them for, and never at the next dialog."""

from dataclasses import asdict, dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.spawner.delivery import Act, Circumstances, Done, Fail, Step, Wait
from services.spawner.pressing import PRESSES, Pressing, Purpose, advance, begin
from shared.fleet.backend import Backend, Dialog, Screen
from shared.screen import Reading

ASKS = Dialog(id="permission", match="Allow", says="a permission dialog", approve=["1"], deny=["2"])
LIMIT = Dialog(id="limit", match="Limit", says="the menu about the usage limit")
SEEING = Backend(binary="agent", screen=Screen(box="(?P<text>.*)", dialogs=[ASKS, LIMIT]))
BLIND = Backend(binary="agent", screen=Screen(box=None))


def seen(
    dialog: Dialog | None = None,
    text: str = "Allow this?",
    *,
    working: bool = False,
    now: float = 100.0,
    backend: Backend = SEEING,
    ours: bool = True,
) -> Circumstances:
    reading = Reading(None if dialog else "", dialog, working, text if dialog else "")
    return Circumstances(backend, "", reading, now, ours=ours)


def pressing(what: Purpose, **more: object) -> Pressing:
    return Pressing("p1", "s1", what, 100.0, **more)  # type: ignore[arg-type]


def failed(step: Step[Pressing]) -> str:
    assert isinstance(step, Fail)
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
def test_nothing_is_pressed_for_nothing(what: Purpose, circumstances: Circumstances, said: str) -> None:
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
def test_what_is_meant_is_remembered_before_a_key_is_pressed(what: Purpose, circumstances: Circumstances) -> None:
    step = begin(pressing(what), circumstances)
    assert isinstance(step, Act)
    assert step.what == "nothing"
    then = advance(step.after, circumstances)
    assert isinstance(then, Act)
    assert then.what == "submit"


def test_a_dialog_that_went_away_was_answered() -> None:
    begun = begin(pressing("approve"), seen(ASKS))
    assert isinstance(begun, Act)
    pressed = advance(begun.after, seen(ASKS))
    assert isinstance(pressed, Act)
    assert advance(pressed.after, seen()) == Done("screen")
    assert advance(begun.after, seen(ours=False)) == Done("screen")


def test_a_dialog_that_somebody_else_answered_was_not_approved() -> None:
    begun = begin(pressing("approve"), seen(ASKS))
    assert isinstance(begun, Act)
    assert "nothing was pressed" in failed(advance(begun.after, seen()))


def test_the_next_dialog_is_not_answered_too() -> None:
    begun = begin(pressing("approve"), seen(ASKS, "Allow rm?"))
    assert isinstance(begun, Act)
    assert advance(begun.after, seen(ASKS, "Allow push?", ours=False)) == Done("screen")


def test_a_dialog_that_stays_is_answered_again_and_then_given_up() -> None:
    begun = begin(pressing("approve"), seen(ASKS))
    assert isinstance(begun, Act)
    after, now, presses = begun.after, 100.0, 0
    while not isinstance(step := advance(after, seen(ASKS, now=now)), Fail):
        if isinstance(step, Act):
            after, presses = step.after, presses + 1
        else:
            assert isinstance(step, Wait)
        now += 0.1
    assert presses == PRESSES
    assert "still on the agent's screen" in step.reason


@pytest.mark.parametrize("backend", [SEEING, BLIND])
def test_keys_that_may_have_been_pressed_are_not_pressed_again(backend: Backend) -> None:
    assert advance(pressing("keys"), seen(backend=backend, ours=False)) == Done("none")
    assert advance(pressing("keys", pressed=True), seen(backend=backend)) == Done("none")


def test_it_is_kept_whole() -> None:
    whole = pressing("deny", pressed=True, presses=2, seen="abc")
    assert Pressing.read(asdict(whole)) == whole


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
    assert isinstance(begun, Act)
    current, ours = begun.after, True
    for turn in range(300):
        agent.tick()
        step = advance(current, seen(ASKS, f"Allow {agent.shown}?", now=100 + turn * 0.1, ours=ours))
        if isinstance(step, Done | Fail):
            break
        if isinstance(step, Act):
            assert agent.shown == 0, "a key was pressed at another dialog than the one that was meant"
            agent.press()
            if turn not in lost:
                current, ours = step.after, True
        if turn in crashes or turn in lost:
            ours = False
    assert step == Done("screen")
    if not lost:
        assert agent.asks == 1
