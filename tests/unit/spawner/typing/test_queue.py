"""Typing turn by turn, on a terminal that shows what is pasted: stages are committed before they are acted on."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from services.spawner.typing.delivery import DELIVERIES, DeliveryStage
from services.spawner.typing.queue import typed_first
from services.spawner.typing.texts import PendingText
from shared.contract.commands import AgentCommand, Approve, Interrupt, Send
from shared.contract.events.lifecycle import AgentSent
from shared.fleet.profiles import shipped
from shared.messaging.journal import Request
from shared.runtime.turn import PendingCommand
from shared.screen import read_screen
from shared.screen.signs import fingerprint
from tests.unit.spawner.conftest import MakeWorld
from tests.unit.spawner.world import SpawnerWorld, box, dialog

CHOICE = f"{'─' * 20}\n? Which colour?\n  1. Red\n  2. Blue\n1 to 2 · esc to cancel"


class Terminal:
    """The demo agent's screen: a paste shows in the box, Enter empties it."""

    def __init__(self, world: SpawnerWorld, agent: str = "builder") -> None:
        self.world, self.agent = world, agent
        self.submitted: list[str] = []
        self.holds = ""
        self._seen = 0
        world.shows(box(), agent)

    def catch_up(self) -> None:
        """Take what was typed since the last time."""
        pane_id = self.world.tmux.panes[self.agent].pane_id
        for where, typed in self.world.tmux.typed[self._seen :]:
            if where == pane_id:
                self._take(typed)
        self._seen = len(self.world.tmux.typed)
        self.world.shows(box(self.holds) if self.holds else box(), self.agent)

    def _take(self, typed: str | Sequence[str]) -> None:
        if isinstance(typed, str):
            self.holds += typed
        elif typed == ["Enter"]:
            self.submitted += [self.holds] if self.holds else []
            self.holds = ""
        elif typed:
            self.holds = ""


@pytest.fixture
def world(make: MakeWorld) -> SpawnerWorld:
    world = make()
    world.turn()
    return world


TEXT, OTHER = Send(agent="builder", id="text", text="go"), Send(agent="builder", id="other", text="on")
KEYS, YES = Send(agent="builder", id="keys", keys=["Up"]), Approve(agent="builder", id="yes")
STOP = Interrupt(agent="builder", id="stop")


@pytest.mark.parametrize(
    ("sent", "prompt", "under_way", "first"),
    [
        ([], False, None, (None, None)),
        ([TEXT, OTHER], False, None, ("text", None)),
        ([TEXT, OTHER], False, "other", ("other", None)),
        ([TEXT], True, None, ("prompt", None)),
        ([TEXT], True, "text", ("text", None)),
        ([TEXT, KEYS], True, None, (None, "keys")),
        ([YES, KEYS], False, None, (None, "yes")),
        ([TEXT, KEYS], False, "text", ("text", "keys")),
        ([TEXT, KEYS], True, "prompt", ("prompt", "keys")),
        ([OTHER, KEYS], False, "text", (None, "keys")),
        ([TEXT, YES, KEYS], False, "text", (None, "yes")),
        ([TEXT, STOP], False, "text", (None, "stop")),
    ],
)
def test_what_is_typed_first(
    sent: Sequence[AgentCommand], prompt: bool, under_way: str | None, first: tuple[str | None, str | None]
) -> None:
    pending = [PendingCommand(Request(each.id or "", each.verb, b"", "", 0, 0), each) for each in sent]
    text, press = typed_first(pending, PendingText("prompt", "begin") if prompt else None, under_way)
    assert (text and text.id, press and press.request.id) == first


def stage(world: SpawnerWorld) -> DeliveryStage | None:
    stored = world.turns.memory.get(DELIVERIES.key("builder"))
    return None if stored is None else DELIVERIES.load(stored).stage


def test_a_text_to_an_idle_agent_takes_three_turns(world: SpawnerWorld) -> None:
    terminal = Terminal(world)
    world.turn(Send(agent="builder", id="c1", text="run the tests"))
    assert stage(world) is DeliveryStage.PASTED
    terminal.catch_up()
    world.turn(after=0.01)
    assert stage(world) is DeliveryStage.SUBMITTED
    terminal.catch_up()
    world.turn(after=0.01)
    assert terminal.submitted == ["run the tests"]
    assert world.replies["c1"].ok
    assert isinstance(sent := world.events[-1], AgentSent)
    assert (sent.what, sent.confirmed) == ("text", "screen")


@pytest.mark.parametrize("dies_after", range(4))
def test_a_text_is_submitted_once_though_the_spawner_is_killed_before_it_commits(
    world: SpawnerWorld, dies_after: int
) -> None:
    terminal = Terminal(world)
    world.turn(Send(agent="builder", id="c1", text="run the tests"), commits=dies_after != 0)
    for number in range(1, 60):
        if number == dies_after + 1:
            world.restarts()
        terminal.catch_up()
        world.turn(after=0.3, commits=number != dies_after)
    assert terminal.submitted == ["run the tests"]
    assert world.replies["c1"].ok


def test_the_intent_is_in_the_journal_before_anything_is_typed(world: SpawnerWorld) -> None:
    Terminal(world)
    pasted_at: list[DeliveryStage | None] = []
    paste = world.tmux.paste

    def watched(pane_id: str, text: str, *, spawn: str) -> None:
        pasted_at.append(stage(world))
        paste(pane_id, text, spawn=spawn)

    world.tmux.paste = watched  # type: ignore[method-assign]
    world.turn(Send(agent="builder", id="c1", text="go"))
    assert pasted_at == [DeliveryStage.PASTING]


def test_a_text_waits_for_a_dialog_and_says_so(world: SpawnerWorld) -> None:
    terminal = Terminal(world)
    world.shows(dialog())
    turn = world.turn(Send(agent="builder", id="c1", text="go"))
    assert turn.look_again is not None
    world.turn(after=(turn.look_again - turn.now).total_seconds())
    assert (world.turns.now - turn.now).total_seconds() < 0.7, "whoever waits hears soon what for"
    assert world.said["c1"] == "the text waits: a permission dialog is on the screen: answer it first"
    assert world.tmux.typed == []
    world.shows(box())
    for _ in range(4):
        world.turn(after=0.1)
        terminal.catch_up()
    assert terminal.submitted == ["go"]


def test_an_answer_to_a_dialog_goes_before_the_text_that_waits_for_it(world: SpawnerWorld) -> None:
    Terminal(world)
    pane_id = world.tmux.panes["builder"].pane_id
    world.shows(dialog())
    world.turn(Send(agent="builder", id="c1", text="go"))
    world.turn(Approve(agent="builder", id="c2"), after=1)
    assert world.tmux.typed == [(pane_id, ["1"])], "it is pressed in the turn in which it comes"
    world.shows(box())
    world.turn(after=0.1)
    assert world.replies["c2"].said == "builder was told yes"
    assert "c1" not in world.replies


def test_a_row_of_a_choice_is_pressed_for_the_dialog_that_was_shown(world: SpawnerWorld) -> None:
    Terminal(world)
    pane_id = world.tmux.panes["builder"].pane_id
    world.shows(CHOICE)
    shown = fingerprint(read_screen(shipped()["demo"], CHOICE))
    world.turn(Send(agent="builder", id="c1", keys=["2"], fingerprint="another"))
    assert (world.replies["c1"].ok, world.tmux.typed) == (False, [])
    assert "not the one that was meant" in world.replies["c1"].said
    world.turn(Send(agent="builder", id="c2", keys=["2"], fingerprint=shown), after=1)
    assert world.tmux.typed == [(pane_id, ["2"])]
    world.shows(box())
    sent = [event for event, _ in world.turn(after=0.1).emitted if isinstance(event, AgentSent)]
    assert world.replies["c2"].said == "builder was answered"
    assert [(each.what, each.size, each.confirmed) for each in sent] == [("answer", 1, "screen")]
    world.turn(Send(agent="builder", id="c3", keys=["2"], fingerprint=shown), after=1)
    assert "there is no dialog" in world.replies["c3"].said
    assert len(world.tmux.typed) == 1


@pytest.mark.parametrize(
    ("screen", "keys", "said"),
    [
        (CHOICE, ["3"], "has no row '3'; it offers: 1, 2"),
        (CHOICE, ["C-c"], "has no row 'C-c'"),
        (CHOICE, ["1", "2"], "has no row '1 2'"),
        (dialog(), ["1"], "only a person at the terminal should answer it"),
    ],
)
def test_nothing_but_a_row_of_a_choice_is_pressed_for_an_answer(
    world: SpawnerWorld, screen: str, keys: list[str], said: str
) -> None:
    Terminal(world)
    world.shows(screen)
    shown = fingerprint(read_screen(shipped()["demo"], screen))
    world.turn(Send(agent="builder", id="c1", keys=keys, fingerprint=shown))
    assert said in world.replies["c1"].said
    assert world.tmux.typed == []


def test_a_command_that_is_answered_in_one_round_is_left_alone_in_the_next(world: SpawnerWorld) -> None:
    Terminal(world)
    outdated = Send(agent="builder", id="c1", text="too late", spawn="another")
    turn = world.turn(outdated, Send(agent="builder", id="c2", text="go"))
    assert (turn.checkpoints, list(turn.replies)) == (1, ["c1"])
    assert [typed for _, typed in world.tmux.typed] == ["go"]


def test_texts_come_in_the_order_in_which_they_were_sent(world: SpawnerWorld) -> None:
    terminal = Terminal(world)
    world.turn(Send(agent="builder", id="c1", text="first"), Send(agent="builder", id="c2", text="second"))
    assert world.said["c2"] == "something else is typed into this agent first"
    for _ in range(8):
        terminal.catch_up()
        world.turn(after=0.05)
    assert terminal.submitted == ["first", "second"]


def test_two_agents_are_typed_into_in_the_same_turn(make: MakeWorld) -> None:
    world = make(agents={"tester": {}})
    world.turn()
    for agent in ("builder", "tester"):
        world.shows(box(), agent)
    turn = world.turn(Send(agent="builder", id="c1", text="a"), Send(agent="tester", id="c2", text="b"))
    assert sorted(str(typed) for _, typed in world.tmux.typed) == ["a", "b"]
    assert turn.checkpoints == 1, "one commit serves both"


def test_a_text_for_a_session_that_has_ended_is_refused(world: SpawnerWorld) -> None:
    Terminal(world)
    reply = world.reply(Send(agent="builder", id="c1", text="go", spawn="another"))
    assert (reply.code, world.tmux.typed) == ("refused", [])
    assert "it was meant for the session another" in reply.said


def test_a_text_that_stays_in_the_box_is_not_called_delivered(world: SpawnerWorld) -> None:
    terminal = Terminal(world)
    world.turn(Send(agent="builder", id="c1", text="go"))
    terminal.catch_up()
    world.tmux.press = lambda *_, **__: None  # type: ignore[method-assign]
    world.shows(box("go"))
    for _ in range(200):
        world.turn(after=0.5)
    assert not world.replies["c1"].ok
    assert "it stays in the input box" in world.replies["c1"].said


def test_the_next_text_is_due_as_soon_as_one_has_arrived(world: SpawnerWorld) -> None:
    terminal = Terminal(world)
    turn = world.turn(Send(agent="builder", id="c1", text="first"), Send(agent="builder", id="c2", text="second"))
    while "c1" not in world.replies:
        terminal.catch_up()
        turn = world.turn(after=0.05)
    assert turn.look_again == turn.now


@pytest.mark.parametrize(("redraws_after_s", "clears"), [(0.0, 1), (0.2, 1), (0.5, 2)])
def test_a_box_is_cleared_again_only_when_it_had_time_to_show_it(
    world: SpawnerWorld, redraws_after_s: float, clears: int
) -> None:
    world.shows(box("a person's draft"))
    began = world.turns.now
    world.turn(Send(agent="builder", id="c1", text="go"))
    for _ in range(100):
        if (world.turns.now - began).total_seconds() >= redraws_after_s:
            world.shows(box())
        world.turn(after=0.01)
    keys = [typed for _, typed in world.tmux.typed if not isinstance(typed, str)]
    assert len(keys) == clears


def test_a_clock_that_is_set_back_does_not_hold_a_text_up(world: SpawnerWorld) -> None:
    terminal = Terminal(world)
    world.turn(Send(agent="builder", id="c1", text="go"))
    world.turns.now -= timedelta(hours=1)
    for _ in range(20):
        terminal.catch_up()
        world.turn(after=0.1)
    assert terminal.submitted == ["go"]
    assert world.replies["c1"].ok
