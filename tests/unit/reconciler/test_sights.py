"""How a record compares with what is seen of its agent."""

from pathlib import Path
from typing import Any

import pytest

from services.reconciler.decide import Company, Conversation, DriftKind, Place, Program, Recorded, Session, drifts_of
from services.reconciler.sights import (
    Examined,
    Sight,
    Transcript,
    aspects,
    event_for,
    recorded,
    shared_conversations,
    unregistered,
)
from shared.events import DuplicateId, Identified, Moved, StaleId, WrongBackend
from shared.identity import Identity
from shared.states import Status
from shared.tmux import Pane
from tests.unit.reconciler.seeing import pane, record, sight


@pytest.mark.parametrize("status", Status)
def test_a_status_is_running_or_ended(status: Status) -> None:
    assert recorded(record(status)) is (Recorded.RUNNING if status is Status.RUNNING else Recorded.ENDED)
    assert recorded(None) is Recorded.NOTHING


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (None, Session.ABSENT),
        (pane(), Session.ALIVE),
        (pane(dead=True), Session.DEAD),
        (pane("s2"), Session.OTHER),
        (pane("s2", dead=True), Session.ABSENT),  # the recorded one is gone, whatever became of the next
        (pane(None), Session.OTHER),
    ],
)
def test_what_tmux_shows_is_told_by_the_spawn_stamp(found: Pane | None, says: Session) -> None:
    assert aspects(record(), Sight(found))[0] is says


@pytest.mark.parametrize(
    ("status", "found", "drifts"),
    [
        (Status.RUNNING, None, [DriftKind.MISSING]),
        (Status.RUNNING, pane(dead=True), [DriftKind.PANE_DEAD]),
        (Status.RUNNING, pane(), []),
        (Status.STOPPED, None, []),
        (Status.EXITED, pane(dead=True), []),
        (Status.TERMINATED, pane(), [DriftKind.UNREGISTERED]),
        (Status.RUNNING, pane("s2"), [DriftKind.UNREGISTERED]),
    ],
)
def test_a_drift_is_where_record_and_world_differ(status: Status, found: Pane | None, drifts: list[DriftKind]) -> None:
    about = record(status)
    assert drifts_of(recorded(about), aspects(about, Sight(found))) == drifts


def test_a_session_that_nobody_recorded() -> None:
    assert drifts_of(recorded(None), aspects(None, sight())) == [DriftKind.UNREGISTERED]
    event = unregistered("builder", pane(), "claude", Identity("c1", workspace=Path("/else")))
    assert (event.spawn, event.workspace, event.conversation, event.adopts) == ("s1", "/else", "c1", False)
    assert unregistered("builder", pane(None), "claude", None).workspace == "/work"


# --- conversations ---

C1 = Identity("c1", transcript=Path("/t/c1.jsonl"))
KNOWN: dict[str, Any] = {"conversation": "c1", "transcript": "/t/c1.jsonl"}


@pytest.mark.parametrize(
    ("known", "identity", "transcript", "says"),
    [
        ({}, None, Transcript.UNKNOWN, Conversation.UNKNOWN),
        ({}, Identity("c1"), Transcript.UNKNOWN, Conversation.NEW),
        ({"conversation": "c1"}, Identity("c1"), Transcript.UNKNOWN, Conversation.SAME),
        ({"conversation": "c1"}, C1, Transcript.UNKNOWN, Conversation.NEW),  # it has materialised
        (KNOWN, C1, Transcript.THERE, Conversation.SAME),
        (KNOWN, Identity("c2"), Transcript.THERE, Conversation.NEW),
        (KNOWN, Identity("c1"), Transcript.GONE, Conversation.GONE),  # removed below a running agent
        (KNOWN, None, Transcript.THERE, Conversation.SAME),
        (KNOWN, None, Transcript.GONE, Conversation.GONE),
        (KNOWN, None, Transcript.UNKNOWN, Conversation.UNKNOWN),
        ({"conversation": "c1"}, None, Transcript.GONE, Conversation.UNKNOWN),  # it never was there
    ],
)
def test_what_the_agents_own_files_say(
    known: dict[str, Any], identity: Identity | None, transcript: Transcript, says: Conversation
) -> None:
    seen = aspects(record(**known), sight(identity=identity, transcript=transcript))
    assert [aspect for aspect in seen if isinstance(aspect, Conversation)] == [says]


def test_a_conversation_that_appeared_is_told_with_its_file_and_what_was_before() -> None:
    event = event_for(DriftKind.IDENTIFIED, "builder", record(conversation="c0"), sight(identity=C1))
    assert event == Identified(agent="builder", spawn="s1", conversation="c1", transcript="/t/c1.jsonl", previous="c0")
    same = event_for(DriftKind.IDENTIFIED, "builder", record(conversation="c1"), sight(identity=C1))
    assert isinstance(same, Identified)
    assert same.previous is None


def test_a_conversation_of_an_ended_agent_may_be_kept_elsewhere_or_gone() -> None:
    ended = record(Status.EXITED, **KNOWN)
    moved = Sight(None, transcript=Transcript.THERE, moved_to=Path("/other/c1.jsonl"))
    assert drifts_of(recorded(ended), aspects(ended, moved)) == [DriftKind.IDENTIFIED]
    event = event_for(DriftKind.IDENTIFIED, "builder", ended, moved)
    assert isinstance(event, Identified)
    assert (event.conversation, event.transcript) == ("c1", "/other/c1.jsonl")
    gone = Sight(None, transcript=Transcript.GONE)
    assert drifts_of(recorded(ended), aspects(ended, gone)) == [DriftKind.STALE_ID]
    assert event_for(DriftKind.STALE_ID, "builder", ended, gone) == StaleId(
        agent="builder", spawn="s1", conversation="c1", transcript="/t/c1.jsonl"
    )


def test_agents_on_one_conversation_are_told_of_each_other() -> None:
    records = {
        "a": record(),
        "b": record(spawn="s2", conversation="c1"),
        "c": record(),
        "d": record(Status.EXITED, **KNOWN),
    }
    sights = {
        "a": sight(identity=C1),
        "b": sight(pane("s2")),
        "c": sight(identity=Identity("c9")),
        "d": sight(),
    }
    shared = shared_conversations(records, sights)
    assert shared == {"a": ["b"], "b": ["a"]}
    assert Company.SHARED in aspects(records["a"], sights["a"], shared["a"])
    event = event_for(DriftKind.DUPLICATE_ID, "a", records["a"], sights["a"], shared["a"])
    assert event == DuplicateId(agent="a", spawn="s1", conversation="c1", others=["b"])


def test_who_left_a_shell_behind_shares_no_conversation() -> None:
    records = {"a": record(conversation="c1"), "b": record(spawn="s2", conversation="c1")}
    left = Sight(pane(command="bash"), Examined(runs_its_backend=False))
    assert shared_conversations(records, {"a": left, "b": sight(pane("s2"))}) == {}
    unknown = Sight(pane(), Examined())
    assert shared_conversations(records, {"a": unknown, "b": sight(pane("s2"))}) == {"a": ["b"], "b": ["a"]}


def test_agents_without_a_conversation_share_none() -> None:
    assert shared_conversations({"a": record(), "b": record()}, {"a": sight(), "b": sight()}) == {}


# --- program and place ---


@pytest.mark.parametrize(("runs", "says"), [(True, Program.RIGHT), (False, Program.WRONG), (None, Program.UNKNOWN)])
def test_what_runs_in_the_pane(runs: bool | None, says: Program) -> None:
    seen = aspects(record(), Sight(pane(), Examined(runs_its_backend=runs)))
    assert says in seen


def test_a_shell_that_an_agent_left_behind_is_told_with_its_name() -> None:
    left = Sight(pane(command="bash"), Examined(runs_its_backend=False))
    assert event_for(DriftKind.WRONG_BACKEND, "builder", record(), left) == WrongBackend(
        agent="builder", spawn="s1", expected="claude", found=None, command="bash"
    )


def test_nothing_of_the_inside_is_compared_once_it_has_ended() -> None:
    wrong = Examined(runs_its_backend=False)
    assert drifts_of(Recorded.RUNNING, aspects(record(), Sight(pane(dead=True), wrong))) == [DriftKind.PANE_DEAD]


def test_a_session_with_another_name_or_an_agent_in_another_directory_moved(tmp_path: Path) -> None:
    renamed = sight(pane(session="other"))
    assert Place.MOVED in aspects(record(), renamed)
    elsewhere = sight(identity=Identity("c1", workspace=tmp_path / "b"))
    about = record(workspace=str(tmp_path / "a"), conversation="c1")
    assert Place.MOVED in aspects(about, elsewhere)
    assert event_for(DriftKind.MOVED, "builder", about, elsewhere) == Moved(
        agent="builder",
        spawn="s1",
        session="builder",
        workspace=str(tmp_path / "b"),
        was_session="builder",
        was_workspace=str(tmp_path / "a"),
    )


def test_a_directory_by_another_name_is_the_same_place(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    about = record(workspace=str(tmp_path / "link"))
    assert Place.SAME in aspects(about, sight(identity=Identity("c1", workspace=tmp_path / "a")))
