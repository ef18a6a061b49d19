"""What people read in a terminal: colours, times, hints, and one line for any document."""

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cli.words import Paint, ago, did_you_mean, event_line, since
from shared.contract.commands import Reply
from shared.contract.envelope import Data, Event
from shared.contract.events.activity import AgentFinished, AgentProgress
from shared.contract.events.drift import (
    DriftResolved,
    DuplicateId,
    Identified,
    Moved,
    PaneDead,
    SessionMissing,
    StaleId,
    Unregistered,
    WrongBackend,
)
from shared.contract.events.lifecycle import AgentExited, AgentGaveUp, AgentRestarted, AgentSpawned, AgentStopped
from shared.contract.states import AgentState, Desired, Presence, ServiceState, Status
from shared.contract.topics import REPLY, Space, row_for
from shared.contract.writer import DocumentWriter

NOW = datetime(2030, 1, 1, tzinfo=UTC)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


PLAIN, COLOURED = Paint(io.StringIO()), Paint(Terminal())


def test_colours_are_for_terminals_only() -> None:
    assert PLAIN.bad("x") == PLAIN.good("x") == PLAIN.dim("x") == PLAIN.bold("x") == "x"
    assert COLOURED.bad("x") == "\x1b[31mx\x1b[0m"


@pytest.mark.parametrize(
    ("text", "painted"),
    [
        ("running", "\x1b[32mrunning\x1b[0m"),
        ("gave_up", "\x1b[31mgave_up\x1b[0m"),
        ("wrong_backend", "\x1b[31mwrong_backend\x1b[0m"),
        ("resolved", "\x1b[32mresolved\x1b[0m"),
        ("stopped", "stopped"),
        ("moved", "moved"),
        ("degraded", "degraded"),
    ],
)
def test_a_status_is_green_red_or_neither(text: str, painted: str) -> None:
    assert COLOURED.status(text) == painted


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "0s"),
        (0, "0s"),
        (0.4, "0s"),
        (119, "119s"),
        (120, "2m"),
        (7_199, "120m"),
        (7_200, "2h"),
        (172_799, "48h"),
        (172_800, "2d"),
        (1e9, "11574d"),
    ],
)
def test_a_length_of_time_has_one_unit(seconds: float, said: str) -> None:
    assert ago(seconds) == said


@pytest.mark.parametrize(
    ("given_", "hint"),
    [("bulder", "did you mean 'builder'? "), ("nobody", ""), ("", ""), ("builder", "did you mean 'builder'? ")],
)
def test_a_typo_is_answered_with_what_was_probably_meant(given_: str, hint: str) -> None:
    assert did_you_mean(given_, ["builder", "tester"]) == hint


def test_a_time_in_iso_format_is_as_long_ago_as_it_is() -> None:
    assert since("2029-12-31T23:00:00+00:00", NOW) == "60m"


FACTS: dict[str, Any] = {
    "agent": "builder",
    "spawn": "s1",
    "backend": "demo",
    "workspace": "/work",
    "session": "builder",
    "pane": "%1",
    "pid": 7,
}


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (AgentSpawned(**FACTS), "builder      lifecycle spawned            session builder, pid 7, in /work"),
        (
            AgentRestarted(**FACTS, replaces=None, reason="it ended", attempt=2),
            "builder      lifecycle restarted          it ended; session builder, pid 7, attempt 2",
        ),
        (
            AgentStopped(agent="a", spawn=None, reason="asked for"),
            "a            lifecycle stopped            asked for",
        ),
        (
            AgentExited(agent="a", spawn="s", exit_status=None),
            "a            lifecycle exited             its program ended with status None",
        ),
        (AgentGaveUp(agent="a", reason="too often"), "a            lifecycle gave_up            too often"),
        (
            SessionMissing(agent="a", spawn="s", session="a"),
            "a            drift     missing            recorded as running, but tmux has no session a",
        ),
        (
            PaneDead(agent="a", spawn="s", session="a", exit_status=-9),
            "a            drift     pane_dead          its program ended with status -9",
        ),
        (
            Unregistered(agent="a", backend="codex", workspace="/w", session="s", pane="%1", pid=7, adopts=True),
            "a            drift     unregistered       runs codex in session s, pid 7, and no record said so;"
            " the spawner is asked to adopt it",
        ),
        (
            Unregistered(agent="a", spawn="s", backend="codex", workspace="/w", session="s", pane="%1", pid=7),
            "a            drift     unregistered       runs codex in session s, pid 7, and no record said so",
        ),
        (
            Identified(agent="a", spawn="s", conversation="c2"),
            "a            drift     identified         is in conversation c2",
        ),
        (
            Identified(agent="a", spawn="s", conversation="c2", previous="c1"),
            "a            drift     identified         went on to conversation c2; it was c1",
        ),
        (
            StaleId(agent="a", conversation="c1", transcript="/t/c1.jsonl"),
            "a            drift     stale_id           its conversation c1 is no longer at /t/c1.jsonl",
        ),
        (
            DuplicateId(agent="a", spawn="s", conversation="c1", others=["b", "c"]),
            "a            drift     duplicate_id       runs on conversation c1, and so does b, c",
        ),
        (
            WrongBackend(agent="a", spawn="s", expected="claude", found="codex", command="node"),
            "a            drift     wrong_backend      recorded as claude, but its pane runs codex (node)",
        ),
        (
            WrongBackend(agent="a", spawn="s", expected="claude", command="bash"),
            "a            drift     wrong_backend      recorded as claude, but its pane runs bash",
        ),
        (
            Moved(agent="a", spawn="s", session="b", workspace="/w", was_session="a", was_workspace="/w"),
            "a            drift     moved              recorded as session a, but it is called b",
        ),
        (
            Moved(agent="a", spawn="s", session="b", workspace="/v", was_session="a", was_workspace="/w"),
            "a            drift     moved              recorded as session a, but it is called b;"
            " recorded in /w, but it works in /v",
        ),
        (
            DriftResolved(agent="a", drift="stale_id", reason="its conversation is on disk"),
            "a            drift     resolved           stale_id: its conversation is on disk",
        ),
        (
            AgentProgress(agent="builder", spawn="s1", state="blocked", summary="It needs a key."),
            "builder      activity  progress           blocked: It needs a key.",
        ),
        (
            AgentFinished(agent="builder", spawn="s1", summary="All is done.", output="x", file="/jobs/b.txt"),
            "builder      activity  finished           All is done.; its result is in /jobs/b.txt",
        ),
        (
            AgentFinished(agent="builder", spawn="s1", summary="All is done."),
            "builder      activity  finished           All is done.",
        ),
    ],
)
def test_an_event_is_one_line(event: Event, words: str) -> None:
    row = row_for(event)
    document = row.read(DocumentWriter(Space("box"), "spawner", "e").event(event, seq=1, time=NOW, cause=None)[1])
    clock, host, rest = event_line("box", row, document, PLAIN).split(" ", 2)
    assert len(clock) == len("12:34:56.789")
    assert (host, rest) == ("box", words)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (
            ServiceState(service="spawner", status=Presence.ONLINE, connection=3, pid=7, version="1"),
            "spawner      state     online             pid 7, connection 3",
        ),
        (
            ServiceState(service="spawner", status=Presence.OFFLINE, connection=3, pid=7, version="1", reason="gone"),
            "spawner      state     offline            gone",
        ),
        (
            AgentState(
                agent="builder",
                status=Status.RUNNING,
                since=NOW,
                reason="spawned",
                desired=Desired.RUNNING,
                backend="demo",
                workspace="/",
            ),
            "builder      state     running            spawned",
        ),
    ],
)
def test_a_state_is_one_line(state: Data, words: str) -> None:
    row = row_for(state)
    document = row.read(DocumentWriter(Space("box"), "spawner", "e").state(state, seq=1, time=NOW)[1])
    assert event_line("box", row, document, PLAIN).split(" ", 2)[2] == words


@pytest.mark.parametrize(("code", "outcome"), [("ok", "ok"), ("refused", "error")])
def test_a_reply_is_one_line(code: str, outcome: str) -> None:
    reply = Reply(id="c1", verb="spawn", ok=code == "ok", said="well", code=code, by="spawner", time=NOW)
    line = event_line("box", REPLY, reply, PLAIN)
    assert line.split(" ", 2)[2] == f"spawn        reply     {outcome:<18} well"


@given(st.text(max_size=30))
def test_control_characters_from_elsewhere_do_not_reach_the_terminal(text: str) -> None:
    reply = Reply(id="c1", verb="spawn", ok=False, said=text, by="spawner", time=NOW)
    assert event_line("box", REPLY, reply, PLAIN).isprintable()


def test_an_escape_from_elsewhere_is_shown_as_it_is_written() -> None:
    reply = Reply(id="c1", verb="spawn", ok=False, said="a\x1b[2Jb\nc ü", by="spawner", time=NOW)
    assert event_line("box", REPLY, reply, PLAIN).endswith("a\\x1b[2Jb\\nc ü")
