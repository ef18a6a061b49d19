"""Delivering a text, step by step and against a pretended agent that is slow, asks, and is typed into by others."""

from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from services.spawner.typing.delivery import (
    DELIVERIES,
    DRAFT_IS_LEFT_AFTER_S,
    MOST_CLEARS,
    MOST_MENU_KEYS,
    MOST_PASTES,
    MOST_PRESSES,
    Delivered,
    Delivery,
    DeliveryAct,
    DeliveryFailed,
    DeliveryInput,
    DeliveryStage,
    DeliveryWait,
    Step,
    advance,
)
from shared.fleet.backend import Backend, Dialog, ScreenRules, TypingRules
from shared.screen import ScreenReading

TEXT = "run the tests"
ASKS = Dialog(id="permission", match="Allow", says="a permission dialog", approve=["1"], deny=["2"])
SEEING = Backend(
    binary="agent", screen=ScreenRules(box="(?P<text>.*)", dialogs=[ASKS]), typing=TypingRules(settle_s=0.1)
)
BLIND = Backend(binary="agent", screen=ScreenRules(box=None), typing=TypingRules(settle_s=0.1))


def seen(
    box: str | None = "",
    *,
    now: float = 100.0,
    dialog: bool = False,
    working: bool = False,
    backend: Backend = SEEING,
    **more: object,
) -> DeliveryInput:
    reading = ScreenReading(None if dialog else box, ASKS if dialog else None, working)
    return DeliveryInput(backend, TEXT, reading, now, **more)  # type: ignore[arg-type]


def at(stage: DeliveryStage, since: float = 100.0, **more: object) -> Delivery:
    return Delivery("d1", "s1", since, stage, **more)  # type: ignore[arg-type]


def what(step: Step[Delivery]) -> tuple[str, DeliveryStage | None]:
    match step:
        case DeliveryAct(after, done):
            return done, after.stage
        case Delivered(confirmed):
            return f"done {confirmed}", None
        case DeliveryFailed():
            return "fail", None
        case DeliveryWait(reason=reason):
            return ("wait, told" if reason else "wait"), None


STEPS = [
    # waiting for an empty input box
    (at(DeliveryStage.WAITING), seen(""), ("nothing", DeliveryStage.PASTING)),
    (at(DeliveryStage.WAITING), seen("   "), ("nothing", DeliveryStage.PASTING)),
    (at(DeliveryStage.WAITING), seen("an old prompt"), ("clear", DeliveryStage.WAITING)),
    (at(DeliveryStage.WAITING), seen(TEXT), ("clear", DeliveryStage.WAITING)),
    (at(DeliveryStage.WAITING, clears=MOST_CLEARS), seen("stuck"), ("wait, told", None)),
    (at(DeliveryStage.WAITING), seen(dialog=True), ("wait, told", None)),
    (at(DeliveryStage.WAITING), seen(None), ("wait, told", None)),
    (at(DeliveryStage.WAITING), seen("", working=True), ("nothing", DeliveryStage.PASTING)),
    (at(DeliveryStage.WAITING), seen("", working=True, only_idle=True), ("wait, told", None)),
    (at(DeliveryStage.WAITING), seen("", backend=BLIND), ("clear", DeliveryStage.WAITING)),
    (at(DeliveryStage.WAITING, clears=1), seen("", backend=BLIND), ("nothing", DeliveryStage.PASTING)),
    # the paste comes next, or was made before a crash
    (at(DeliveryStage.PASTING), seen(""), ("paste", DeliveryStage.PASTED)),
    (at(DeliveryStage.PASTING), seen("", ours=False), ("wait", None)),
    (at(DeliveryStage.PASTING), seen(dialog=True, ours=False), ("wait", None)),
    (at(DeliveryStage.PASTING, since=0.0), seen("", ours=False), ("paste", DeliveryStage.PASTED)),
    (at(DeliveryStage.PASTING), seen(TEXT, ours=False), ("nothing", DeliveryStage.PASTED)),
    (at(DeliveryStage.PASTING), seen("something else"), ("nothing", DeliveryStage.WAITING)),
    (at(DeliveryStage.PASTING), seen(dialog=True), ("nothing", DeliveryStage.WAITING)),
    (at(DeliveryStage.PASTING), seen(None), ("nothing", DeliveryStage.WAITING)),
    (at(DeliveryStage.PASTING), seen("", backend=BLIND, ours=False), ("nothing", DeliveryStage.WAITING)),
    # it should appear in the box
    (at(DeliveryStage.PASTED, since=99.0), seen(TEXT), ("nothing", DeliveryStage.PASTED)),
    (at(DeliveryStage.PASTED, shown=True), seen(TEXT), ("wait", None)),
    (at(DeliveryStage.PASTED, since=99.0, shown=True), seen(TEXT), ("nothing", DeliveryStage.SUBMITTING)),
    (at(DeliveryStage.PASTED, since=99.0, shown=True), seen(""), ("wait", None)),
    (at(DeliveryStage.PASTED, since=90.0, shown=True), seen(""), ("fail", None)),
    (at(DeliveryStage.PASTED, since=99.0, shown=True), seen("", recorded=True), ("done transcript", None)),
    (at(DeliveryStage.PASTED, since=99.0), seen("run the"), ("wait", None)),
    (at(DeliveryStage.PASTED, since=90.0), seen("run the"), ("nothing", DeliveryStage.WAITING)),
    (at(DeliveryStage.PASTED, since=90.0, pastes=MOST_PASTES), seen("run the"), ("fail", None)),
    (at(DeliveryStage.PASTED, since=90.0), seen(dialog=True), ("wait, told", None)),
    (at(DeliveryStage.PASTED, since=99.0), seen("", backend=BLIND), ("nothing", DeliveryStage.SUBMITTING)),
    # the key comes next, or was pressed before a crash
    (at(DeliveryStage.SUBMITTING), seen(TEXT), ("submit", DeliveryStage.SUBMITTED)),
    (at(DeliveryStage.SUBMITTING), seen(TEXT, ours=False), ("submit", DeliveryStage.SUBMITTED)),
    (at(DeliveryStage.SUBMITTING), seen("", ours=False), ("nothing", DeliveryStage.SUBMITTED)),
    (at(DeliveryStage.SUBMITTING), seen(""), ("wait", None)),
    (at(DeliveryStage.SUBMITTING, since=90.0), seen(""), ("fail", None)),
    (at(DeliveryStage.SUBMITTING), seen("", recorded=True), ("done transcript", None)),
    (at(DeliveryStage.SUBMITTING), seen(dialog=True, ours=False), ("wait, told", None)),
    (at(DeliveryStage.SUBMITTING), seen(None, ours=False), ("wait, told", None)),
    (at(DeliveryStage.SUBMITTING), seen(f"{TEXT} and more"), ("nothing", DeliveryStage.WAITING)),
    (at(DeliveryStage.SUBMITTING), seen("", backend=BLIND), ("submit", DeliveryStage.SUBMITTED)),
    (at(DeliveryStage.SUBMITTING), seen("", backend=BLIND, ours=False), ("done none", None)),
    # the agent should have taken it
    (at(DeliveryStage.SUBMITTED), seen("", recorded=True), ("done transcript", None)),
    (at(DeliveryStage.SUBMITTED), seen(""), ("done screen", None)),
    (at(DeliveryStage.SUBMITTED), seen("", recorded=False), ("wait", None)),
    (at(DeliveryStage.SUBMITTED, since=90.0), seen("", recorded=False), ("done screen", None)),
    (at(DeliveryStage.SUBMITTED), seen(TEXT), ("wait", None)),
    (at(DeliveryStage.SUBMITTED, since=90.0, presses=1), seen(TEXT), ("nothing", DeliveryStage.SUBMITTING)),
    (at(DeliveryStage.SUBMITTED, since=95.0, presses=1), seen(TEXT, wrote_at=94.0), ("wait", None)),
    (
        at(DeliveryStage.SUBMITTED, since=89.0, presses=1),
        seen(TEXT, wrote_at=88.0),
        ("nothing", DeliveryStage.SUBMITTING),
    ),
    (at(DeliveryStage.SUBMITTED, since=90.0, presses=MOST_PRESSES), seen(TEXT), ("fail", None)),
    (at(DeliveryStage.SUBMITTED, since=90.0, presses=1), seen(TEXT, press_once=True), ("fail", None)),
    (at(DeliveryStage.SUBMITTED), seen("", backend=BLIND), ("done none", None)),
]


@pytest.mark.parametrize(("delivery", "circumstances", "expected"), STEPS)
def test_the_next_step(
    delivery: Delivery, circumstances: DeliveryInput, expected: tuple[str, DeliveryStage | None]
) -> None:
    assert what(advance(delivery, circumstances)) == expected


def test_a_dialog_is_named_to_who_waits() -> None:
    step = advance(at(DeliveryStage.WAITING), seen(dialog=True))
    assert isinstance(step, DeliveryWait)
    assert "a permission dialog is on the screen" in step.reason


def test_a_delivery_is_kept_whole() -> None:
    delivery = at(DeliveryStage.PASTED, clears=2, pastes=1, presses=3, mark={"offset": 7})
    assert DELIVERIES.load(DELIVERIES.dump(delivery)) == delivery


# --- the whole way, with accidents ---


@dataclass
class Pretended:
    """An agent's terminal. What is typed shows after a while; a dialog takes every key."""

    lag: int
    box: str = ""
    shown: str = ""
    dialog_for: int = 0
    got: list[str] = field(default_factory=list)
    into_dialog: int = 0
    _pending: list[tuple[int, str]] = field(default_factory=list)

    def tick(self) -> None:
        self.dialog_for = max(0, self.dialog_for - 1)
        self._pending = [(left - 1, box) for left, box in self._pending]
        for _left, box in [each for each in self._pending if each[0] <= 0]:
            self.shown = box
        self._pending = [each for each in self._pending if each[0] > 0]

    def type(self, what: str) -> None:
        if what == "nothing":
            return
        if self.dialog_for:
            self.into_dialog += 1
            return
        match what:
            case "clear":
                self.box = ""
            case "paste":
                self.box += TEXT
            case "submit":
                if self.box:
                    self.got.append(self.box)
                self.box = ""
        self._pending.append((self.lag, self.box))

    def reading(self) -> ScreenReading:
        return ScreenReading(None, ASKS, False) if self.dialog_for else ScreenReading(self.shown, None, False)


@settings(max_examples=400, deadline=None)
@example(lag=5, left_over="an interrupted prompt", crashes=[], lost=[6], dialogs={7: 1})  # seen to be pasted twice
@given(
    lag=st.integers(0, 5),
    left_over=st.sampled_from(["", "an interrupted prompt", TEXT]),
    crashes=st.lists(st.integers(0, 60), max_size=4),
    lost=st.lists(st.integers(0, 60), max_size=3),
    dialogs=st.dictionaries(st.integers(0, 60), st.integers(1, 30), max_size=3),
)
def test_a_text_arrives_whole_and_once_whatever_happens(
    lag: int, left_over: str, crashes: list[int], lost: list[int], dialogs: dict[int, int]
) -> None:
    """`crashes`: turns after which the process is another one. `lost`: turns whose memory was not written."""
    agent = Pretended(lag, box=left_over, shown=left_over)
    delivery = Delivery("d1", "s1", 0.0)
    ours: Delivery | None = None
    for turn in range(900):
        now = turn * 0.1
        agent.tick()
        if turn in dialogs:
            agent.dialog_for = max(agent.dialog_for, dialogs[turn])
        step = advance(delivery, DeliveryInput(SEEING, TEXT, agent.reading(), now, ours=ours == delivery))
        if isinstance(step, Delivered | DeliveryFailed):
            break
        if isinstance(step, DeliveryAct):
            agent.type(step.what)
            if turn not in lost:
                delivery = ours = step.after
        if turn in crashes or turn in lost:
            ours = None
    assert agent.into_dialog == 0
    assert agent.got == [TEXT]
    assert step == Delivered("screen")


# --- only to the idle, and past menus ---

MENU = Dialog(id="limit", match="DeliveryWait", says="the menu about the usage limit", asks="limited", leave=["2"])
AGAIN = MENU.model_copy(update={"resume": ["1"]})


def menu(dialog: Dialog = MENU, **more: object) -> DeliveryInput:
    resume = tuple(dialog.resume)
    reading = ScreenReading(None, dialog, working=False, leave=tuple(dialog.leave), resume=resume)
    return DeliveryInput(SEEING, TEXT, reading, **{"now": 100.0, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize("stage", [DeliveryStage.WAITING, DeliveryStage.PASTING, DeliveryStage.PASTED])
def test_a_text_for_an_idle_agent_is_not_sent_to_one_that_works(stage: DeliveryStage) -> None:
    assert what(advance(at(stage), seen(working=True, if_idle=True))) == ("fail", None)
    assert what(advance(at(stage), seen(working=True)))[0] != "fail"


@pytest.mark.parametrize("stage", [DeliveryStage.PASTED, DeliveryStage.SUBMITTING])
def test_what_is_in_the_box_by_then_is_taken_back(stage: DeliveryStage) -> None:
    assert what(advance(at(stage), seen(TEXT, working=True, if_idle=True)))[0] == "clear"


def test_work_that_the_text_itself_began_is_no_reason_to_give_up() -> None:
    step = advance(at(DeliveryStage.SUBMITTED, since=99.0), seen("", working=True, if_idle=True))
    assert what(step) == ("done screen", None)


def test_what_somebody_is_typing_is_not_wiped_by_what_nobody_asked_for() -> None:
    typed = seen("half a thought", if_idle=True)
    step = advance(at(DeliveryStage.WAITING), typed)
    assert isinstance(step, DeliveryAct)
    assert (step.what, step.after.draft) == ("nothing", "half a thought")
    assert what(advance(step.after, seen("half a thought", if_idle=True, now=105.0))) == ("wait, told", None)
    more = advance(step.after, seen("half a thought more", if_idle=True, now=105.0))
    assert isinstance(more, DeliveryAct)
    assert more.after.drafted_at == 105.0
    left = seen("half a thought", if_idle=True, now=100.0 + DRAFT_IS_LEFT_AFTER_S)
    assert what(advance(step.after, left))[0] == "clear"
    assert what(advance(at(DeliveryStage.WAITING), seen("half a thought")))[0] == "clear", (
        "what somebody sends comes first"
    )


def test_a_menu_is_left_only_where_that_is_meant() -> None:
    assert what(advance(at(DeliveryStage.WAITING), menu())) == ("wait, told", None)
    assert what(advance(at(DeliveryStage.WAITING), menu(leaves_menu=True))) == ("leave", DeliveryStage.WAITING)
    closed = menu(Dialog(id="limit", match="DeliveryWait", says="a menu", asks="limited"), leaves_menu=True)
    assert what(advance(at(DeliveryStage.WAITING), closed)) == ("wait, told", None), "it can't be left safely"


def test_a_menu_that_stays_is_given_up() -> None:
    step = advance(at(DeliveryStage.WAITING, leaves=1, left_at=99.0), menu(leaves_menu=True))
    assert what(step) == ("wait", None)
    assert what(advance(at(DeliveryStage.WAITING, leaves=MOST_MENU_KEYS), menu(leaves_menu=True))) == ("fail", None)


def test_a_menu_that_offers_to_go_on_is_answered_instead_of_the_text() -> None:
    step = advance(at(DeliveryStage.WAITING), menu(AGAIN, leaves_menu=True))
    assert isinstance(step, DeliveryAct)
    assert (step.what, step.after.answered) == ("resume", True)
    for after in (seen("", if_idle=True), seen(None, working=True, if_idle=True)):
        assert advance(step.after, after) == Delivered("screen", answered=True)
