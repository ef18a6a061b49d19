"""A paste that is shown as a placeholder, where a key has to follow it: pressed once, whatever happens."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.spawner.typing.delivery import (
    Delivered,
    Delivery,
    DeliveryAct,
    DeliveryFailed,
    DeliveryInput,
    DeliveryStage,
    DeliveryWait,
    advance,
)
from shared.fleet.backend import Backend, ScreenRules, TypingRules
from shared.screen import ScreenReading

TEXT = "\n".join(f"line {n} of a long text" for n in range(20))
SHOWN = "[Pasted ~20 lines]"
BACKEND = Backend(
    binary="agent",
    screen=ScreenRules(box="(?P<text>.*)", placeholder=r"\[Pasted ~\d+ lines\]"),
    typing=TypingRules(settle_s=0.1, after_placeholder=["BSpace"]),
)


def seen(box: str | None, *, now: float = 100.0, ours: bool = True) -> DeliveryInput:
    return DeliveryInput(BACKEND, TEXT, ScreenReading(box, None, False), now, ours=ours)


def at(stage: DeliveryStage, since: float = 100.0) -> Delivery:
    return Delivery("d1", "s1", since, stage, shown=True)


@pytest.mark.parametrize(
    ("stage", "circumstances", "expected"),
    [
        (DeliveryStage.PASTED, seen(SHOWN, now=101.0), ("nothing", DeliveryStage.TRIMMING)),
        (DeliveryStage.PASTED, seen(TEXT, now=101.0), ("nothing", DeliveryStage.SUBMITTING)),
        (DeliveryStage.TRIMMING, seen(SHOWN), ("trim", DeliveryStage.SUBMITTING)),
        (DeliveryStage.TRIMMING, seen(SHOWN, ours=False), ("nothing", DeliveryStage.WAITING)),
        (DeliveryStage.TRIMMING, seen(""), ("nothing", DeliveryStage.WAITING)),
        (DeliveryStage.SUBMITTING, seen(SHOWN), ("submit", DeliveryStage.SUBMITTED)),
        (DeliveryStage.SUBMITTING, seen("", ours=False), ("nothing", DeliveryStage.SUBMITTED)),
    ],
)
def test_the_next_step(stage: DeliveryStage, circumstances: DeliveryInput, expected: tuple[str, DeliveryStage]) -> None:
    step = advance(at(stage), circumstances)
    assert isinstance(step, DeliveryAct)
    assert (step.what, step.after.stage) == expected


@pytest.mark.parametrize("stage", [DeliveryStage.TRIMMING, DeliveryStage.SUBMITTING])
def test_nothing_is_pressed_while_there_is_no_box(stage: DeliveryStage) -> None:
    assert isinstance(advance(at(stage), seen(None)), DeliveryWait)


def test_another_text_in_the_box_confirms_nothing() -> None:
    assert advance(at(DeliveryStage.SUBMITTED, since=90.0), seen("something else")) == Delivered("none")


@dataclass
class Pretended:
    """A box that puts a space behind a placeholder, and shows what was typed after a while."""

    lag: int
    box: str = ""
    shown: str = ""
    got: list[str] = field(default_factory=list)
    _pending: list[tuple[int, str]] = field(default_factory=list)

    def tick(self) -> None:
        self._pending = [(left - 1, box) for left, box in self._pending]
        for _left, box in [each for each in self._pending if each[0] <= 0]:
            self.shown = box.strip()
        self._pending = [each for each in self._pending if each[0] > 0]

    def type(self, what: str) -> None:
        match what:
            case "clear":
                self.box = ""
            case "paste":
                self.box += f"{SHOWN} "
            case "trim":
                self.box = self.box[:-1] if self.box.endswith(" ") else self.box.removesuffix(SHOWN)
            case "submit":
                if self.box:
                    self.got.append(self.box.replace(SHOWN, TEXT))
                self.box = ""
        self._pending.append((self.lag, self.box))


@settings(max_examples=300, deadline=None)
@given(
    lag=st.integers(0, 5),
    crashes=st.lists(st.integers(0, 60), max_size=2),
    lost=st.lists(st.integers(0, 60), max_size=2),
)
def test_the_space_behind_a_placeholder_is_never_sent_and_the_paste_never_deleted(
    lag: int, crashes: list[int], lost: list[int]
) -> None:
    """`crashes`: turns after which the process is another one. `lost`: turns whose memory was not written."""
    agent = Pretended(lag)
    delivery = Delivery("d1", "s1", 0.0)
    ours: Delivery | None = None
    for turn in range(900):
        agent.tick()
        step = advance(delivery, seen(agent.shown, now=turn * 0.1, ours=ours == delivery))
        if isinstance(step, Delivered | DeliveryFailed):
            break
        if isinstance(step, DeliveryAct):
            agent.type(step.what)
            if turn not in lost:
                delivery = ours = step.after
        if turn in crashes or turn in lost:
            ours = None
    assert agent.got == [TEXT]
    assert step == Delivered("screen")
