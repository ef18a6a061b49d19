"""A paste that is shown as a placeholder, where a key has to follow it: pressed once, whatever happens."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.spawner.delivery import Act, Circumstances, Delivery, Done, Fail, Stage, Wait, advance
from shared.fleet.backend import Backend, Screen, Typing
from shared.screen import Reading

TEXT = "\n".join(f"line {n} of a long text" for n in range(20))
SHOWN = "[Pasted ~20 lines]"
BACKEND = Backend(
    binary="agent",
    screen=Screen(box="(?P<text>.*)", placeholder=r"\[Pasted ~\d+ lines\]"),
    typing=Typing(settle_s=0.1, after_placeholder=["BSpace"]),
)


def seen(box: str | None, *, now: float = 100.0, ours: bool = True) -> Circumstances:
    return Circumstances(BACKEND, TEXT, Reading(box, None, False), now, ours=ours)


def at(stage: Stage, since: float = 100.0) -> Delivery:
    return Delivery("d1", "s1", since, stage, shown=True)


@pytest.mark.parametrize(
    ("stage", "circumstances", "expected"),
    [
        (Stage.PASTED, seen(SHOWN, now=101.0), ("nothing", Stage.TRIMMING)),
        (Stage.PASTED, seen(TEXT, now=101.0), ("nothing", Stage.SUBMITTING)),
        (Stage.TRIMMING, seen(SHOWN), ("trim", Stage.SUBMITTING)),
        (Stage.TRIMMING, seen(SHOWN, ours=False), ("nothing", Stage.WAITING)),
        (Stage.TRIMMING, seen(""), ("nothing", Stage.WAITING)),
        (Stage.SUBMITTING, seen(SHOWN), ("submit", Stage.SUBMITTED)),
        (Stage.SUBMITTING, seen("", ours=False), ("nothing", Stage.SUBMITTED)),
    ],
)
def test_the_next_step(stage: Stage, circumstances: Circumstances, expected: tuple[str, Stage]) -> None:
    step = advance(at(stage), circumstances)
    assert isinstance(step, Act)
    assert (step.what, step.after.stage) == expected


@pytest.mark.parametrize("stage", [Stage.TRIMMING, Stage.SUBMITTING])
def test_nothing_is_pressed_while_there_is_no_box(stage: Stage) -> None:
    assert isinstance(advance(at(stage), seen(None)), Wait)


def test_another_text_in_the_box_confirms_nothing() -> None:
    assert advance(at(Stage.SUBMITTED, since=90.0), seen("something else")) == Done("none")


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
        if isinstance(step, Done | Fail):
            break
        if isinstance(step, Act):
            agent.type(step.what)
            if turn not in lost:
                delivery = ours = step.after
        if turn in crashes or turn in lost:
            ours = None
    assert agent.got == [TEXT]
    assert step == Done("screen")
