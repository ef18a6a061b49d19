"""The `muster` command: what it answers to wrong words, with which exit code, and what `events` makes of documents."""

import argparse
import importlib
import io
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.cli import status
from services.cli.__main__ import VERBS as LOCAL_VERBS
from services.cli.__main__ import main
from services.cli.commands import verbs
from services.cli.words import Paint, event_line
from shared.client.follow import FollowedDocument, Follower
from shared.contract.commands import Reply
from shared.contract.events.lifecycle import AgentGaveUp
from shared.contract.states import Presence, ServiceState
from shared.contract.topics import Space
from shared.contract.writer import DocumentWriter
from shared.errors import MusterError
from shared.fleet import Declaration, Fleet
from shared.messaging.inbox import MessageArrived
from shared.messaging.journal import Journal
from shared.version import __version__

SPACE = Space("box")
NOW = datetime(2030, 1, 1, tzinfo=UTC)


VERBS = {**LOCAL_VERBS, **verbs()}


def exit_code(*arguments: str) -> int:
    """What the shell would see."""
    try:
        return main(arguments)
    except SystemExit as end:
        return int(end.code or 0)


# --- usage ---


def test_without_a_verb_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code() == 2
    shown = capsys.readouterr().out
    assert all(verb in shown for verb in VERBS)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nosuch"], "invalid choice: 'nosuch'"),
        (["resume"], "the following arguments are required: agent"),
        (["resume", "a", "b"], "unrecognized arguments: b"),
        (["send", "a", "text", "--keys", "b"], "not allowed with argument"),
        (["spawn", "a", "--wait", "long"], "invalid float value: 'long'"),
        (["status", "--now"], "unrecognized arguments: --now"),
        (["status", "--wanted", "dead"], "invalid choice: 'dead'"),
        (["rebuild", "builder"], "unrecognized arguments: builder"),
        (["adopt", "builder"], "the following arguments are required: session"),
        (["--nosuch", "status"], "unrecognized arguments: --nosuch"),
        (["--fleet"], "expected one argument"),
        (["events", "--seconds", "x"], "invalid float value"),
    ],
)
def test_wrong_arguments_are_a_usage_error(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(*arguments) == 2
    assert says in capsys.readouterr().err


def test_a_shortened_option_is_understood_or_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = exit_code("--fl", str(tmp_path / "nowhere.yaml"), "status")
    assert code in (2, 78)
    assert capsys.readouterr().err


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--version") == 0
    assert capsys.readouterr().out == f"muster {__version__}\n"


@pytest.mark.parametrize("verb", sorted(LOCAL_VERBS))
def test_every_verb_can_be_run(verb: str) -> None:
    module = importlib.import_module(f"services.cli.{verb}")
    module.arguments(argparse.ArgumentParser())
    assert callable(module.run)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(verb, "--help") == 0
    assert f"usage: muster {verb}" in capsys.readouterr().out


# --- exit codes ---


@pytest.mark.parametrize("verb", ["status", "up", "down", "events", "spawn a"])
def test_a_missing_fleet_file_has_its_own_exit_code(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("--fleet", str(tmp_path / "nowhere.yaml"), *verb.split()) == 78
    assert capsys.readouterr().err.startswith("muster: there is no fleet file ")


def test_a_bad_fleet_file_has_its_own_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text("agnets: {}\n")
    assert exit_code("--fleet", str(path), "up") == 78
    assert capsys.readouterr().err == (
        f"muster: {path}, line 1: agnets: unknown key; did you mean 'agents'?"
        f" allowed are: {', '.join(sorted(Declaration.model_fields))}\n"
    )


def test_the_word_after_the_fleet_option_is_no_verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code("--fleet", "status", "status") == 78
    assert exit_code("--fleet=status", "status") == 78


@pytest.mark.parametrize("since", ["5x", "m", "-5m", "5 m", "1e3s", "٥m5"])
def test_an_invalid_time_is_refused_with_a_sentence(
    since: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fleet.yaml").write_text("")
    assert exit_code("--fleet", str(tmp_path / "fleet.yaml"), "events", f"--since={since}") == 1
    assert "write a number and s, m, h or d" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [(MusterError("no luck"), 1), (KeyboardInterrupt(), 130), (BrokenPipeError(), 0)],
)
def test_a_verb_that_fails_gives_its_exit_code(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: argparse.Namespace) -> int:
        raise error

    monkeypatch.setattr(status, "run", fails)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert exit_code("status") == code


@pytest.mark.parametrize("code", [0, 1, 3])
def test_a_verbs_own_exit_code_is_kept(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "run", lambda _: code)
    assert exit_code("status") == code


# --- events: every event once, whichever way it comes, and any document ---


class Rig:
    """A fleet with a journal, and what `muster events` has shown of it."""

    def __init__(self, path: Path) -> None:
        self.fleet = Fleet(path / "fleet.yaml", Declaration(host="box"))
        self.journal = Journal(self.fleet.journal, "spawner")
        self.follower = Follower(self.fleet)
        self.wire: list[MessageArrived] = []

    def tell(self) -> None:
        def build(seq: int) -> tuple[str, bytes]:
            teller = DocumentWriter(SPACE, "spawner", self.journal.epoch)
            return teller.event(AgentGaveUp(agent="a", reason=str(seq)), seq=seq, time=NOW, cause=None)

        with self.journal.transaction() as transaction:
            transaction.append([build], float(self.journal.last_seq() + 1))
        entry = self.journal.entries("spawner", self.journal.last_seq() - 1)[0]
        self.wire.append(arrived(entry.topic, entry.payload))


def arrived(topic: str, payload: bytes) -> MessageArrived:
    return MessageArrived(topic, payload, retained=False, repeated=False, mid=1, qos=1, connection=1)


def seqs(told: Iterator[FollowedDocument]) -> list[int]:
    return [each.document.seq for each in told if not isinstance(each.document, Reply)]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.journal.close()


def test_without_a_time_only_what_is_new_is_shown(rig: Rig) -> None:
    rig.tell()
    assert seqs(rig.follower.begin(None)) == []
    rig.tell()
    assert seqs(rig.follower.take(rig.wire[0])) == []
    assert seqs(rig.follower.take(rig.wire[1])) == [2]


def test_with_a_time_the_journals_events_come_first(rig: Rig) -> None:
    for _ in range(4):
        rig.tell()
    assert seqs(rig.follower.begin(3.0)) == [3, 4]
    assert seqs(rig.follower.take(rig.wire[3])) == []


def test_without_a_broker_events_come_from_the_journal(rig: Rig) -> None:
    list(rig.follower.begin(None))
    rig.tell()
    rig.tell()
    assert seqs(rig.follower.take(rig.wire[0])) == [1]
    assert seqs(rig.follower.read_journal()) == [2]
    assert seqs(rig.follower.take(rig.wire[1])) == []
    assert seqs(rig.follower.read_journal()) == []


def test_an_event_that_the_broker_lost_is_shown_from_the_journal(rig: Rig) -> None:
    list(rig.follower.begin(None))
    for _ in range(3):
        rig.tell()
    shown = [seq for message in (rig.wire[0], rig.wire[2]) for seq in seqs(rig.follower.take(message))]
    shown += seqs(rig.follower.read_journal())
    assert sorted(shown) == [1, 2, 3]


def test_there_may_be_no_journal_yet(tmp_path: Path) -> None:
    follower = Follower(Fleet(tmp_path / "fleet.yaml", Declaration()))
    assert list(follower.begin(0.0)) == []
    assert list(follower.read_journal()) == []
    assert not (tmp_path / ".muster").exists()


def test_a_heartbeat_is_no_news_and_a_change_is(rig: Rig) -> None:
    def state(status: Presence, reason: str = "") -> MessageArrived:
        said = ServiceState(service="spawner", status=status, connection=1, pid=7, version="1", reason=reason)
        return arrived(*DocumentWriter(SPACE, "spawner", "e").state(said, seq=1, time=NOW))

    heard = [state(Presence.ONLINE), state(Presence.ONLINE), state(Presence.DEGRADED, "x"), state(Presence.ONLINE)]
    shown = [json.loads(told.payload)["data"]["status"] for each in heard for told in rig.follower.take(each)]
    assert shown == ["online", "degraded", "online"]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=6), inner, max_size=2),
    max_leaves=5,
)
likely = st.sampled_from(["2030-01-01T00:00:00Z", "restarted", "spawned", "missing", "exited", "builder", "spawner", 1])
inner = st.dictionaries(
    st.sampled_from(["kind", "agent", "service", "status", "reason", "pid", "session"]), likely | values, max_size=6
)
documents = st.dictionaries(
    st.sampled_from(["data", "verb", "ok", "said", "time", "subject", "source", "epoch", "seq", "id"]),
    likely | values | inner,
    max_size=10,
)
payloads = st.one_of(
    documents.map(json.dumps).map(str.encode), values.map(json.dumps).map(str.encode), st.binary(max_size=20)
)
topics = st.sampled_from(
    ["agent/a/state", "agent/a/lifecycle", "agent/a/drift", "service/s/state", "command/spawn", "reply/c1", "other/x"]
)


@given(st.lists(st.tuples(topics, payloads), min_size=1, max_size=4))
@settings(max_examples=100, deadline=None, report_multiple_bugs=False)
def test_any_document_on_any_topic_is_shown_or_passed_over(
    tmp_path_factory: pytest.TempPathFactory, messages: list[tuple[str, bytes]]
) -> None:
    """`muster events` listens to everything, and commands are whatever somebody typed."""
    follower = Follower(Fleet(tmp_path_factory.getbasetemp() / "fleet.yaml", Declaration(host="box")))
    for topic, payload in messages:
        for told in follower.take(arrived(f"muster/box/{topic}", payload)):
            assert event_line(told.host, told.row, told.document, Paint(io.StringIO()))


@pytest.mark.parametrize(
    ("topic", "document"),
    [
        ("command/spawn", {"agent": "a", "verb": "spawn", "seq": 1}),
        ("command/spawn", {"data": 1, "seq": "x"}),
        (
            "agent/a/lifecycle",
            {"data": {"kind": "restarted"}, "seq": 1, "time": "2030-01-01T00:00:00Z", "subject": "a"},
        ),
        ("agent/a/state", {"data": []}),
        ("reply/c1", {"verb": "spawn"}),
    ],
)
def test_a_document_of_the_wrong_shape_is_passed_over(rig: Rig, topic: str, document: dict[str, Any]) -> None:
    told = rig.follower.take(arrived(f"muster/box/{topic}", json.dumps(document).encode()))
    assert "" not in [event_line(each.host, each.row, each.document, Paint(io.StringIO())) for each in told]


def test_nesting_of_any_depth_is_passed_over(rig: Rig) -> None:
    assert list(rig.follower.take(arrived("muster/box/command/spawn", b"[" * 100_000))) == []
