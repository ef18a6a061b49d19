"""Where a text that was sent is looked for: in the agent's own conversation, never in a neighbour's."""

import json
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from services.spawner.sessions.conversations import ConversationRecords
from services.spawner.sessions.memory import AgentMemory, Origin
from services.spawner.typing.texts import PendingText, TextDelivery
from services.spawner.view import SpawnerView
from tests.fakes.tmux import FakeTmux
from tests.unit.spawner.samples import pane, remembered, view

RULE = "─" * 80
EMPTY_BOX = f"{RULE}\n❯\xa0\n{RULE}\n  ? for shortcuts"


class Workspace:
    """Two agents of one backend, their conversations, and what each is remembered by."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.place = home / "work"
        self.place.mkdir()
        self.folder = home / ".claude" / "projects" / "".join(c if c.isalnum() else "-" for c in str(self.place))
        self.folder.mkdir(parents=True)
        self.records = ConversationRecords({"HOME": str(home), "PATH": os.environ["PATH"]})
        self.wrote = time.time() - 100

    def say(self, conversation: str, text: str, at: float | None = None) -> None:
        self.wrote += 1  # each file that is written is the newest from then on
        stamp = datetime.fromtimestamp(at or time.time(), UTC).isoformat()
        entry = {"type": "user", "message": {"role": "user", "content": text}, "timestamp": stamp}
        path = self.folder / f"{conversation}.jsonl"
        with path.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        os.utime(path, (self.wrote, self.wrote))

    def view(self, conversation: str | None, *, alone: bool = False) -> SpawnerView:
        known = remembered(workspace=str(self.place), backend="claude", origin=Origin.ADOPTED)
        there: Mapping[str, AgentMemory] = {"a": known.with_session(conversation=conversation)}
        if not alone:
            there = {**there, "b": known.with_session(spawn="s2", conversation="bbbb")}
        return view(self.home, known=there, panes={name: pane() for name in there})

    def found(self, now: SpawnerView, mark: Any, text: str) -> tuple[bool, str | None]:
        search = self.records.search(now, "a", mark, text)
        return search.readable, search.conversation


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_what_a_neighbour_was_sent_is_no_proof(work: Workspace) -> None:
    work.say("bbbb", "go on")
    work.say("aaaa", "hello")
    now = work.view("aaaa")
    mark = work.records.mark(now, "a")
    work.say("bbbb", "go on")
    assert work.found(now, mark, "go on") == (True, None)
    work.say("aaaa", "go on")
    work.say("bbbb", "more")
    assert work.found(now, mark, "go on") == (True, "aaaa")


def test_where_its_conversation_is_not_known_a_shared_workspace_tells_nothing(work: Workspace) -> None:
    now = work.view(None)
    mark = work.records.mark(now, "a")
    work.say("bbbb", "go on")
    assert work.found(now, mark, "go on") == (False, None)


def test_a_known_conversation_is_the_only_one_that_is_read(work: Workspace) -> None:
    now = work.view("aaaa", alone=True)
    mark = work.records.mark(now, "a")
    work.say("cccc", "go on")
    assert work.found(now, mark, "go on") == (True, None)
    work.say("aaaa", "go on")
    assert work.found(now, mark, "go on") == (True, "aaaa"), "its file came into being since"


def test_alone_the_newest_conversation_is_its_own(work: Workspace) -> None:
    work.say("cccc", "go on")
    now = work.view(None, alone=True)
    mark = work.records.mark(now, "a")
    assert work.found(now, mark, "go on") == (True, None)
    work.say("cccc", "go on")
    assert work.found(now, mark, "go on") == (True, "cccc")


def test_an_older_conversation_that_becomes_the_newest_is_not_read_from_its_beginning(work: Workspace) -> None:
    work.say("old", "go on", at=time.time() - 1000)
    work.say("cccc", "hello")
    now = work.view(None, alone=True)
    mark = work.records.mark(now, "a")
    work.say("old", "something else")
    assert work.found(now, mark, "go on") == (True, None)
    work.say("new", "go on")
    assert work.found(now, mark, "go on") == (True, "new")


@pytest.mark.parametrize(("known", "after"), [("aaaa", "aaaa"), (None, "cccc")])
def test_a_text_tells_a_conversation_only_where_none_was_known(work: Workspace, known: str | None, after: str) -> None:
    now, tmux, text = work.view(known, alone=True), FakeTmux(), PendingText("t1", "go on")
    tmux.panes["a"] = pane(spawn="s1")
    tmux.shown["%1"] = EMPTY_BOX
    texts = TextDelivery(tmux, work.records)

    def steps() -> None:
        for _ in range(5):
            now.turn.now += timedelta(seconds=1)
            texts.step(now, "a", tmux.panes["a"], text)

    steps()
    assert tmux.typed == [("%1", "go on")]
    tmux.shown["%1"] = EMPTY_BOX.replace("❯\xa0", "❯\xa0go on")
    work.say(after, "go on", at=now.now)
    texts.step(now, "a", tmux.panes["a"], text)
    assert [getattr(event, "confirmed", "") for event, _ in now.turn.emitted] == ["transcript"]
    assert now.known("a").session.conversation == after


METADATA = (
    '{"type":"mode","mode":"normal","sessionId":"aaaa"}\n{"type":"summary","summary":"of another one","leafUuid":"1"}\n'
    '{"type":"file-history-snapshot","messageId":"2","snapshot":{"trackedFileBackups":{}},"isSnapshotUpdate":false}\n'
)


@pytest.mark.parametrize("conversation", ["aaaa", None], ids=["known", "the newest"])
def test_a_conversation_in_which_nothing_was_said_is_not_there_to_be_resumed(
    work: Workspace, conversation: str | None
) -> None:
    now = work.view(conversation, alone=True)
    known = now.known("a").with_session(started=0.0)
    (work.folder / "aaaa.jsonl").write_text(METADATA)
    assert work.records.is_silent(now, "a")
    assert work.records.conversation(now, "a", known) is None
    work.say("aaaa", "hello")
    assert not work.records.is_silent(now, "a")
    assert work.records.conversation(now, "a", known) == "aaaa"


def test_a_conversation_that_cant_be_read_or_is_not_there_is_not_said_to_be_silent(work: Workspace) -> None:
    now = work.view("aaaa", alone=True)
    assert not work.records.is_silent(now, "a")
    (work.folder / "aaaa.jsonl").write_text("a format of another version\n")
    assert not work.records.is_silent(now, "a")
