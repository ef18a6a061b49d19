"""What people send from the page: only what is allowed, bound to what they saw, sent once, and followed to its end."""

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from services.board import page_commands
from services.board.page_commands import MOST_KEPT, MOST_OPEN, TooManyCommands
from services.board.page_verbs import page_command
from services.board.web.source import FINAL, CommandProgress
from shared.contract.commands import Command, Explain, Reply, Send
from shared.errors import Retryable
from shared.messaging.journal import Journal
from tests.unit.board.world import BoardWorld, comments

WITHIN_S = 10.0


def eventually(holds: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline, f"not so in time: {what}"
        time.sleep(0.005)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, world: BoardWorld) -> Iterator[None]:
    monkeypatch.setattr(page_commands, "READ_EVERY_S", 0.005)
    world.turns.now = datetime.now(UTC)  # replies and expiries are compared with the real time
    yield
    for limit in ("COMMAND_EXPIRES_AFTER_S", "LATE_S", "FOLLOWED_FOR_S"):
        monkeypatch.setattr(page_commands, limit, 0.0)
    eventually(lambda: not following(), "its thread has ended")


def following() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == "follows commands"]


def state(world: BoardWorld, command_id: str) -> str:
    found = world.commands.progress(command_id)
    return found.state if found is not None else "unknown"


def is_over(world: BoardWorld, command_id: str) -> bool:
    return state(world, command_id) in FINAL


def reaches(world: BoardWorld, command_id: str, wanted: str) -> CommandProgress:
    eventually(lambda: state(world, command_id) == wanted, f"{wanted}, not {state(world, command_id)}")
    found = world.commands.progress(command_id)
    assert found is not None
    return found


def defers(world: BoardWorld, command_id: str, said: str) -> None:
    """The spawner says what a command waits for."""
    peer = world.peers["spawner"]
    known: dict[str, Any] = {"id": command_id, "verb": "send", "ok": False, "code": "waiting", "final": False}
    reply = Reply(**known, said=said, by="spawner", time=world.now)
    with peer.journal.transaction() as transaction:
        transaction.defer(command_id, reply.model_dump_json().encode(), world.now.timestamp() + 3600)


def sent(world: BoardWorld, **turn: Any) -> list[Command]:
    return world.turn(**turn).outgoing


# --- what is sent ---


def test_what_is_sent(world: BoardWorld) -> None:
    command = Send(agent="builder", text="go", when="idle")
    command_id = world.commands.submit(command, "ada on a phone")
    (outgoing,) = sent(world)
    assert outgoing.id == command_id
    assert outgoing.by == "board: ada on a phone"
    assert outgoing.made is not None
    assert outgoing.expires is not None
    assert outgoing.model_copy(update={"id": None, "by": None, "made": None, "expires": None}) == command
    assert world.nudges == [None], "a turn is asked for"


# --- how far it is ---


def test_a_command_is_sent_waits_and_is_done(world: BoardWorld) -> None:
    woken: list[None] = []
    end = world.commands.subscribe(lambda: woken.append(None))
    command_id = world.commands.submit(page_command("send", {"agent": "builder", "text": "go"}), "ada")
    found = world.commands.progress(command_id)
    assert found is not None
    assert (found.id, found.verb, found.agent, found.state, found.said) == (
        command_id,
        "send",
        "builder",
        "sent",
        "handed over",
    )
    sent(world)
    defers(world, command_id, "the text waits: a dialog is on the screen")
    assert reaches(world, command_id, "waiting").said == "the text waits: a dialog is on the screen"
    defers(world, command_id, "the text waits: it works")
    eventually(lambda: world.commands.progress(command_id).said == "the text waits: it works", "told")  # type: ignore[union-attr]
    assert world.commands.reply(command_id) is None
    (request,) = world.peers["spawner"].open()
    world.peers["spawner"].answer(request, said="the text arrived", time=world.now, agent="builder")
    done = reaches(world, command_id, "done")
    assert (done.said, done.verb, done.agent) == ("the text arrived", "send", "builder")
    reply = world.commands.reply(command_id)
    assert reply is not None
    assert reply.result == {"agent": "builder"}
    eventually(lambda: len(woken) == 3, "each step wakes the pages")
    end()
    assert sent(world) == []


def test_a_refusal_says_why(world: BoardWorld) -> None:
    command_id = world.commands.submit(page_command("approve", {"agent": "builder", "fingerprint": "f"}), "ada")
    (command,) = sent(world)
    world.peers["spawner"].answer(command, "refused", "there is no dialog", time=world.now)
    assert reaches(world, command_id, "refused").said == "there is no dialog"
    assert "refused" in FINAL


def test_a_command_that_nobody_answers_is_lost(world: BoardWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_commands, "COMMAND_EXPIRES_AFTER_S", 0.05)
    monkeypatch.setattr(page_commands, "LATE_S", 0.05)
    command_id = world.commands.submit(page_command("stop", {"agent": "builder"}), "ada")
    assert "the spawner gave no answer" in reaches(world, command_id, "lost").said
    assert sent(world) == [], "it is not sent any more"


def test_a_command_that_waits_for_very_long_is_not_followed_for_ever(
    world: BoardWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_commands, "FOLLOWED_FOR_S", 0.1)
    command_id = world.commands.submit(page_command("send", {"agent": "builder", "text": "go"}), "ada")
    sent(world)
    defers(world, command_id, "it works")
    assert "still waits" in reaches(world, command_id, "lost").said


def test_an_unknown_command_has_no_progress(world: BoardWorld) -> None:
    assert world.commands.progress("nothing") is None
    assert world.commands.reply("nothing") is None


# --- sent once ---


def test_a_turn_that_is_not_committed_sends_it_again_and_it_acts_once(world: BoardWorld) -> None:
    command_id = world.commands.submit(page_command("stop", {"agent": "builder"}), "ada")
    assert [command.id for command in sent(world, commits=False)] == [command_id]
    assert world.peers["spawner"].open() == []
    assert [command.id for command in sent(world)] == [command_id]
    sent(world)
    (request,) = world.peers["spawner"].open()
    assert request.id == command_id
    world.peers["spawner"].answer(request, time=world.now)
    reaches(world, command_id, "done")
    assert sent(world) == []
    assert world.peers["spawner"].open() == []


def test_what_is_in_the_journal_is_not_sent_in_every_turn_until_it_is_answered(world: BoardWorld) -> None:
    world.commands.submit(page_command("stop", {"agent": "builder"}), "ada")
    assert len(sent(world)) == 1
    eventually(lambda: sent(world) == [], "it waits for its owner")
    assert len(world.peers["spawner"].open()) == 1


def test_a_comment_from_the_page_is_on_the_card_once(world: BoardWorld) -> None:
    command_id = world.commands.submit(page_command("comment", {"agent": "builder", "text": "hello"}), "ada on a phone")
    turns = [world.turn() for _ in range(4)]
    told = [comment for turn in turns for comment in comments(turn)]
    assert [(comment.by, comment.text) for comment in told] == [("ada on a phone", "hello")]
    assert reaches(world, command_id, "done").said == "the comment is on the card of builder"


# --- many ---


def test_there_is_a_limit_to_what_is_open(world: BoardWorld) -> None:
    for _ in range(MOST_OPEN):
        world.commands.submit(Explain(agent="builder"), "the page")
    with pytest.raises(TooManyCommands, match="200 commands are open"):
        world.commands.submit(Explain(agent="builder"), "the page")
    commands = sent(world)
    assert len(commands) == MOST_OPEN
    for command in commands:
        world.peers["monitor"].answer(command, time=world.now)
    eventually(lambda: not following(), "all are answered")


def test_what_is_open_is_followed_however_many_came_since(world: BoardWorld) -> None:
    """What has ended is forgotten after a while, what is open is not."""
    first = world.commands.submit(page_command("send", {"agent": "builder", "text": "go"}), "ada")
    sent(world)
    defers(world, first, "it works")
    reaches(world, first, "waiting")
    others: list[str] = []
    while len(others) < MOST_KEPT + 20:
        others += [world.commands.submit(Explain(agent="builder"), "the page") for _ in range(130)]
        for command in sent(world):
            if isinstance(command, Explain):
                world.peers["monitor"].answer(command, time=world.now)
        eventually(partial(is_over, world, others[-1]), "answered")
    assert state(world, first) == "waiting"
    defers(world, first, "it still works")
    eventually(lambda: world.commands.progress(first).said == "it still works", "followed")  # type: ignore[union-attr]
    assert state(world, others[0]) == "unknown"
    assert state(world, others[-1]) == "done"
    (request,) = world.peers["spawner"].open()
    world.peers["spawner"].answer(request, time=world.now)
    reaches(world, first, "done")


# --- when the journal can't be read ---


def test_a_journal_that_can_not_be_read_for_a_moment_loses_nothing(
    world: BoardWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_commands, "TRIED_AGAIN_AFTER_S", 0.01)
    tries: list[None] = []

    def fails_at_first(path: Any, service: str) -> Journal:
        tries.append(None)
        if len(tries) < 3:
            raise Retryable("the journal is locked")
        return Journal(path, service)

    monkeypatch.setattr(page_commands, "Journal", fails_at_first)
    command_id = world.commands.submit(page_command("stop", {"agent": "builder"}), "ada")
    (command,) = sent(world)
    world.peers["spawner"].answer(command, time=world.now)
    reaches(world, command_id, "done")
    assert "the journal is locked" in world.log.getvalue()


def test_an_answer_that_can_not_be_read_is_told_and_the_next_command_is_followed(world: BoardWorld) -> None:
    command_id = world.commands.submit(page_command("stop", {"agent": "builder"}), "ada")
    sent(world)
    with world.peers["spawner"].journal.transaction() as transaction:
        transaction.answer(command_id, b"nonsense", 1.0)
    assert "its answer can't be read" in reaches(world, command_id, "lost").said
    following_one = world.commands.submit(page_command("stop", {"agent": "builder"}), "ada")
    (command,) = sent(world)
    world.peers["spawner"].answer(command, time=world.now)
    reaches(world, following_one, "done")
