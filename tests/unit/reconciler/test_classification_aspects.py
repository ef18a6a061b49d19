"""How a record compares with what was observed of its agent."""

from pathlib import Path
from typing import Any

import pytest

from services.reconciler import classification as table
from services.reconciler.classification import (
    Comparison,
    ConversationState,
    ConversationUse,
    Drift,
    Examination,
    Observation,
    PlaceState,
    ProgramState,
    Recorded,
    SessionState,
    TranscriptFile,
    aspects,
    drifts_of,
    recorded,
    shared_conversations,
    unregistered,
)
from shared.agents.identity import ConversationIdentity
from shared.contract.events.drift import DuplicateId, Identified, Moved, StaleId, WrongBackend
from shared.contract.states import Status
from shared.system.tmux import Pane
from tests.unit.reconciler.samples import observation, pane, record


@pytest.mark.parametrize("status", Status)
def test_a_status_is_running_or_ended(status: Status) -> None:
    assert recorded(record(status)) is (Recorded.RUNNING if status is Status.RUNNING else Recorded.ENDED)
    assert recorded(None) is Recorded.NOTHING


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (None, SessionState.ABSENT),
        (pane(), SessionState.ALIVE),
        (pane(dead=True), SessionState.DEAD),
        (pane("s2"), SessionState.OTHER),
        (pane("s2", dead=True), SessionState.ABSENT),  # the recorded one is gone, whatever became of the next
        (pane(None), SessionState.OTHER),
    ],
)
def test_the_recorded_session_is_recognised_by_its_spawn_stamp(found: Pane | None, says: SessionState) -> None:
    assert aspects(record(), Observation(found))[0] is says


@pytest.mark.parametrize(
    ("status", "found", "drifts"),
    [
        (Status.RUNNING, None, [table.MISSING]),
        (Status.RUNNING, pane(dead=True), [table.PANE_DEAD]),
        (Status.RUNNING, pane(), []),
        (Status.STOPPED, None, []),
        (Status.EXITED, pane(dead=True), []),
        (Status.TERMINATED, pane(), [table.UNREGISTERED]),
        (Status.RUNNING, pane("s2"), [table.UNREGISTERED]),
    ],
)
def test_a_drift_is_where_record_and_world_differ(status: Status, found: Pane | None, drifts: list[Drift]) -> None:
    about = record(status)
    assert drifts_of(Comparison("builder", about, Observation(found))) == drifts


def test_a_session_without_a_record_is_unregistered() -> None:
    assert drifts_of(Comparison("builder", None, observation())) == [table.UNREGISTERED]
    event = unregistered("builder", pane(), "claude", ConversationIdentity("c1", workspace=Path("/else")))
    assert (event.spawn, event.workspace, event.conversation, event.adopts) == ("s1", "/else", "c1", False)
    assert unregistered("builder", pane(None), "claude", None).workspace == "/work"


# --- conversations ---

C1 = ConversationIdentity("c1", transcript=Path("/t/c1.jsonl"))
KNOWN: dict[str, Any] = {"conversation": "c1", "transcript": "/t/c1.jsonl"}


@pytest.mark.parametrize(
    ("known", "identity", "transcript", "says"),
    [
        ({}, None, TranscriptFile.UNKNOWN, ConversationState.UNKNOWN),
        ({}, ConversationIdentity("c1"), TranscriptFile.UNKNOWN, ConversationState.NEW),
        ({"conversation": "c1"}, ConversationIdentity("c1"), TranscriptFile.UNKNOWN, ConversationState.SAME),
        ({"conversation": "c1"}, C1, TranscriptFile.UNKNOWN, ConversationState.NEW),  # it has materialised
        (KNOWN, C1, TranscriptFile.THERE, ConversationState.SAME),
        (KNOWN, ConversationIdentity("c2"), TranscriptFile.THERE, ConversationState.NEW),
        (
            KNOWN,
            ConversationIdentity("c1"),
            TranscriptFile.GONE,
            ConversationState.GONE,
        ),  # removed below a running agent
        (KNOWN, None, TranscriptFile.THERE, ConversationState.SAME),
        (KNOWN, None, TranscriptFile.GONE, ConversationState.GONE),
        (KNOWN, None, TranscriptFile.UNKNOWN, ConversationState.UNKNOWN),
        ({"conversation": "c1"}, None, TranscriptFile.GONE, ConversationState.UNKNOWN),  # it never was there
    ],
)
def test_the_conversation_is_compared_by_the_agents_own_files(
    known: dict[str, Any], identity: ConversationIdentity | None, transcript: TranscriptFile, says: ConversationState
) -> None:
    seen = aspects(record(**known), observation(identity=identity, transcript=transcript))
    assert [aspect for aspect in seen if isinstance(aspect, ConversationState)] == [says]


def test_a_new_conversation_is_reported_with_its_file_and_the_previous_one() -> None:
    event = table.IDENTIFIED.build(Comparison("builder", record(conversation="c0"), observation(identity=C1)))
    assert event == Identified(agent="builder", spawn="s1", conversation="c1", transcript="/t/c1.jsonl", previous="c0")
    same = table.IDENTIFIED.build(Comparison("builder", record(conversation="c1"), observation(identity=C1)))
    assert isinstance(same, Identified)
    assert same.previous is None


def test_the_conversation_of_an_ended_agent_may_have_moved_or_be_gone() -> None:
    ended = record(Status.EXITED, **KNOWN)
    moved = Observation(None, transcript=TranscriptFile.THERE, moved_to=Path("/other/c1.jsonl"))
    assert drifts_of(Comparison("builder", ended, moved)) == [table.IDENTIFIED]
    event = table.IDENTIFIED.build(Comparison("builder", ended, moved))
    assert isinstance(event, Identified)
    assert (event.conversation, event.transcript) == ("c1", "/other/c1.jsonl")
    gone = Observation(None, transcript=TranscriptFile.GONE)
    assert drifts_of(Comparison("builder", ended, gone)) == [table.STALE_ID]
    assert table.STALE_ID.build(Comparison("builder", ended, gone)) == StaleId(
        agent="builder", spawn="s1", conversation="c1", transcript="/t/c1.jsonl"
    )


def test_agents_on_one_conversation_are_reported_with_the_others() -> None:
    records = {
        "a": record(),
        "b": record(spawn="s2", conversation="c1"),
        "c": record(),
        "d": record(Status.EXITED, **KNOWN),
    }
    observations = {
        "a": observation(identity=C1),
        "b": observation(pane("s2")),
        "c": observation(identity=ConversationIdentity("c9")),
        "d": observation(),
    }
    shared = shared_conversations(records, observations)
    assert shared == {"a": ["b"], "b": ["a"]}
    assert ConversationUse.SHARED in aspects(records["a"], observations["a"], shared["a"])
    event = table.DUPLICATE_ID.build(Comparison("a", records["a"], observations["a"], tuple(shared["a"])))
    assert event == DuplicateId(agent="a", spawn="s1", conversation="c1", others=["b"])


def test_an_agent_that_left_a_shell_behind_shares_no_conversation() -> None:
    records = {"a": record(conversation="c1"), "b": record(spawn="s2", conversation="c1")}
    left = Observation(pane(command="bash"), Examination(runs_its_backend=False))
    assert shared_conversations(records, {"a": left, "b": observation(pane("s2"))}) == {}
    unknown = Observation(pane(), Examination())
    assert shared_conversations(records, {"a": unknown, "b": observation(pane("s2"))}) == {"a": ["b"], "b": ["a"]}


def test_agents_without_a_conversation_share_none() -> None:
    assert shared_conversations({"a": record(), "b": record()}, {"a": observation(), "b": observation()}) == {}


# --- program and place ---


@pytest.mark.parametrize(
    ("runs", "says"), [(True, ProgramState.RIGHT), (False, ProgramState.WRONG), (None, ProgramState.UNKNOWN)]
)
def test_the_program_in_the_pane_is_right_wrong_or_unknown(runs: bool | None, says: ProgramState) -> None:
    seen = aspects(record(), Observation(pane(), Examination(runs_its_backend=runs)))
    assert says in seen


def test_a_shell_that_an_agent_left_behind_is_reported_with_its_name() -> None:
    left = Observation(pane(command="bash"), Examination(runs_its_backend=False))
    assert table.WRONG_BACKEND.build(Comparison("builder", record(), left)) == WrongBackend(
        agent="builder", spawn="s1", expected="claude", found=None, command="bash"
    )


def test_a_dead_pane_is_not_compared_further() -> None:
    wrong = Examination(runs_its_backend=False)
    assert drifts_of(Comparison("builder", record(), Observation(pane(dead=True), wrong))) == [table.PANE_DEAD]


def test_a_renamed_session_and_an_agent_in_another_directory_have_moved(tmp_path: Path) -> None:
    renamed = observation(pane(session="other"))
    assert PlaceState.MOVED in aspects(record(), renamed)
    elsewhere = observation(identity=ConversationIdentity("c1", workspace=tmp_path / "b"))
    about = record(workspace=str(tmp_path / "a"), conversation="c1")
    assert PlaceState.MOVED in aspects(about, elsewhere)
    assert table.MOVED.build(Comparison("builder", about, elsewhere)) == Moved(
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
    assert PlaceState.SAME in aspects(about, observation(identity=ConversationIdentity("c1", workspace=tmp_path / "a")))
