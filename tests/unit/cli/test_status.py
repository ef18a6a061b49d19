"""`muster status`: who is shown, what a row says, what fits a window, and what is wrong with the words given."""

import io
import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from registry import AgentRecord, EndedSession, RegistryFile
from services.cli.__main__ import main
from services.cli.status_filter import ANY, DRIFTS, StatusFilter, WrongWord, split
from services.cli.status_view import StatusView, short_size
from services.cli.tables import width
from services.cli.words import Paint
from shared.client.presence import PresenceReport
from shared.client.processes import SUPERVISOR
from shared.client.snapshot import RecordSource, Snapshot
from shared.contract.services import SERVICES
from shared.contract.states import Desired, Status
from shared.errors import MusterError
from shared.fleet import Declaration, Fleet
from shared.messaging.journal import Journal
from tests.fakes.records import rows_of

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
PLAIN = Paint(io.StringIO())


def record(status: Status = Status.RUNNING, **changes: Any) -> AgentRecord:
    facts: dict[str, Any] = {
        "status": status,
        "desired": Desired.RUNNING,
        "since": NOW - timedelta(minutes=5),
        "reason": "spawned",
        "backend": "demo",
        "workspace": "/work",
    }
    return AgentRecord(**facts | changes)


def ended(agent: str, minutes_ago: int, status: Status = Status.EXITED, **changes: Any) -> EndedSession:
    facts: dict[str, Any] = {
        "agent": agent,
        "status": status,
        "reason": "its program ended with status 3",
        "backend": "demo",
        "workspace": "/work",
        "started": NOW - timedelta(minutes=minutes_ago + 10),
        "ended": NOW - timedelta(minutes=minutes_ago),
        "exit_status": 3,
    }
    return EndedSession(**facts | changes)


RECORDS = {
    "builder": record(session="builder", conversation="1d8d3bb8-aaaa"),
    "helper": record(session="by hand", backend="claude", drifts=["stale_id", "wrong_backend"]),
    "tester": record(Status.EXITED, drifts=["pane_dead"], reason="its program ended with status 3"),
    "writer": record(Status.STOPPED, desired=Desired.STOPPED, reason="asked for"),
}
HISTORY = {"s1": ended("tester", 30), "s2": ended("tester", 5), "s3": ended("gone", 10, Status.TERMINATED)}


def snapshot(**changes: Any) -> Snapshot:
    declared = Declaration.model_validate({"host": "box", "agents": {"builder": {}, "idle": {"backend": "codex"}}})
    pids = dict.fromkeys((SUPERVISOR, "broker", *SERVICES), 7)
    known: dict[str, Any] = {"fleet": Fleet(Path("/f/fleet.yaml"), declared), "bus": PresenceReport(), "pids": pids}
    return Snapshot(**known | {"records": RECORDS, "history": HISTORY} | changes)


def view(filters: StatusFilter | None = None, **changes: Any) -> StatusView:
    return StatusView(snapshot(**changes), filters or StatusFilter(), NOW)


# --- who is shown ---


@pytest.mark.parametrize(
    ("filters", "agents"),
    [
        (StatusFilter(), ["builder", "idle", "helper", "tester", "writer"]),
        (StatusFilter(agents=("tester", "builder")), ["builder", "tester"]),
        (StatusFilter(statuses=("running",)), ["builder", "helper"]),
        (StatusFilter(statuses=("exited", "not_started")), ["idle", "tester"]),
        (StatusFilter(backends=("claude", "codex")), ["idle", "helper"]),
        (StatusFilter(wanted="stopped"), ["writer"]),
        (StatusFilter(drift=ANY), ["helper", "tester"]),
        (StatusFilter(drift="stale_id"), ["helper"]),
        (StatusFilter(statuses=("running",), drift="pane_dead"), []),
        (StatusFilter(agents=("helper", "writer"), wanted="running"), ["helper"]),
    ],
)
def test_names_and_filters_combine(filters: StatusFilter, agents: list[str]) -> None:
    filters.check(snapshot())
    assert filters.agents_in(snapshot()) == agents
    assert list(view(filters).document()["agents"]) == agents


@pytest.mark.parametrize(
    ("filters", "spawns"),
    [
        (StatusFilter(ended=True), ["s2", "s3", "s1"]),
        (StatusFilter(), []),
        (StatusFilter(ended=True, agents=("tester",)), ["s2", "s1"]),
        (StatusFilter(ended=True, agents=("gone",)), ["s3"]),
        (StatusFilter(ended=True, statuses=("terminated",)), ["s3"]),
        (StatusFilter(ended=True, backends=("claude",)), []),
        (StatusFilter(ended=True, drift="pane_dead"), ["s2", "s1"]),
    ],
)
def test_ended_sessions_come_newest_first_and_are_filtered_too(filters: StatusFilter, spawns: list[str]) -> None:
    filters.check(snapshot())
    assert [spawn for spawn, _ in filters.ended_in(snapshot())] == spawns


@pytest.mark.parametrize(
    ("filters", "says", "code"),
    [
        (
            StatusFilter(statuses=("runing",)),
            "there is no status 'runing'; did you mean 'running'?"
            " there are: running, stopped, exited, terminated, gave_up, not_started",
            2,
        ),
        (StatusFilter(drift="gone"), f"there is no kind of drift 'gone'; there are: {', '.join(DRIFTS)}", 2),
        (
            StatusFilter(agents=("bulder",)),
            "there is no agent 'bulder'; did you mean 'builder'? there are: builder, idle,",
            1,
        ),
        (StatusFilter(agents=("gone",)), "there is no agent 'gone'", 1),
        (StatusFilter(agents=("\x1b[2J",)), "there is no agent '\\\\x1b[2J'", 1),
        (
            StatusFilter(backends=("clade",)),
            "there is no backend 'clade'; did you mean 'claude'? there are: agy, aider,",
            1,
        ),
    ],
)
def test_an_unknown_value_is_refused_with_a_list_of_what_exists(filters: StatusFilter, says: str, code: int) -> None:
    with pytest.raises(MusterError) as told:
        filters.check(snapshot(history={}))
    assert str(told.value).startswith(says)
    assert told.value.exit_code == code


def test_an_agent_given_as_a_kind_of_drift_gets_a_hint() -> None:
    with pytest.raises(WrongWord, match="agents come first: muster status builder --drift"):
        StatusFilter(drift="builder").check(snapshot())


def test_a_known_backend_without_agents_is_no_error() -> None:
    filters = StatusFilter(backends=("gemini",))
    filters.check(snapshot())
    assert view(filters).text(PLAIN) == "none of the 5 agents is like that"


def test_a_thousand_names_are_not_all_listed() -> None:
    many = {f"agent-{number}": record() for number in range(1000)}
    with pytest.raises(MusterError, match=r"agent-17 and 982 more$"):
        StatusFilter(agents=("x",)).check(snapshot(records=many, history={}))


@pytest.mark.parametrize(("text", "words"), [(None, ()), ("", ()), ("a", ("a",)), ("a, b,,c ", ("a", "b", "c"))])
def test_a_list_with_commas_is_split(text: str | None, words: tuple[str, ...]) -> None:
    assert split(text) == words


# --- what is said ---


def rows(text: str, title: str = "AGENT") -> list[str]:
    """The lines of one table."""
    part = next(part for part in text.split("\n\n") if part.startswith(title))
    return part.splitlines()


def test_a_row_says_what_a_person_wants_to_know() -> None:
    assert rows(view().text(PLAIN)) == [
        "AGENT    STATUS       SINCE  WANTED   BACKEND  SESSION  DRIFT                    CONVERSATION  WHY",
        "builder  running      5m     running  demo                                       1d8d3bb8      spawned",
        "idle     not_started  -      -        codex",
        "helper   running      5m     running  claude   by hand  stale_id, wrong_backend                spawned",
        "tester   exited       5m     running  demo              pane_dead"
        "                              its program ended with status 3",
        "writer   stopped      5m     stopped  demo                                                     asked for",
    ]


def test_columns_that_are_empty_for_all_agents_are_left_out() -> None:
    text = view(records={"builder": record(session="builder")}, fleet=Fleet(Path("/f/fleet.yaml"), Declaration()))
    assert rows(text.text(PLAIN))[0] == "AGENT    STATUS   SINCE  WANTED   BACKEND  WHY"


def test_ended_sessions_say_how_they_ended() -> None:
    assert rows(view(StatusFilter(ended=True)).text(PLAIN), "ENDED") == [
        "ENDED    AGENT   STATUS      RAN  BACKEND  EXIT  WHY",
        "5m ago   tester  exited      10m  demo     3     its program ended with status 3",
        "10m ago  gone    terminated  10m  demo     3     its program ended with status 3",
        "30m ago  tester  exited      10m  demo     3     its program ended with status 3",
    ]
    assert view(StatusFilter(ended=True), history={}).text(PLAIN).endswith("sessions that ended: none")


def test_with_a_filter_services_are_shown_only_when_one_is_down() -> None:
    some = StatusFilter(agents=("builder",))
    assert view(some).text(PLAIN).startswith("AGENT")
    assert "SERVICE" in view().text(PLAIN)
    assert "SERVICE" in view(some, pids={}).text(PLAIN)


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 120, 200])
def test_a_table_fits_the_terminal_and_keeps_the_most_useful_columns(columns: int) -> None:
    shown = rows(view().text(PLAIN, columns))
    assert all(width(line) <= columns for line in shown)
    assert shown[0].startswith("AGENT    STATUS")
    assert "DRIFT" in shown[0]


def test_the_conversation_is_the_first_column_to_be_left_out() -> None:
    shown = rows(view().text(PLAIN, 100))
    assert shown[0] == "AGENT    STATUS       SINCE  WANTED   BACKEND  SESSION  DRIFT                  WHY"
    assert shown[3] == "helper   running      5m     running  claude   by hand  stale_id, wrong_back…  spawned"
    assert shown[4].endswith("pane_dead              its program ended wi…")


def test_control_characters_from_elsewhere_do_not_reach_the_terminal() -> None:
    odd = {"builder": record(session="a\x1b[2Jb", reason="\x07", conversation="c\nd", drifts=["\x1b[H"])}
    text = view(records=odd, faults=("bad\x1b[2J\nworse",)).text(PLAIN, 80)
    assert all(line.isprintable() for line in text.splitlines())


@pytest.mark.parametrize(
    ("ids", "size"),
    [
        ([], 8),
        (["1d8d3bb8-aaaa", "2d8d3bb8-aaaa"], 8),
        (["019a1b2c-3d4e-7", "019a1b2c-4d4e-7"], 10),  # they begin with the time
        (["same-conversation"] * 2, 8),
        (["ses_abc", "ses_abd"], 8),
        (["0123456789", "012345678"], 10),
    ],
)
def test_a_short_id_is_long_enough_to_tell_one_from_another(ids: Sequence[str], size: int) -> None:
    assert short_size(ids) == size


# --- a window ---


def frame(columns: int = 100, height: int = 30, filters: StatusFilter | None = None, **changes: Any) -> list[str]:
    lines = view(filters, **changes).frame(PLAIN, columns, height)
    assert len(lines) <= height
    assert all(width(line) <= columns for line in lines)
    return lines


def test_a_window_begins_with_a_summary_in_two_lines() -> None:
    head, services, blank, table, *_ = frame()
    assert head.startswith("box  ")
    assert head.endswith("5 agents: 2 running, 1 not_started, 1 exited, 1 stopped")
    assert services == f"up: supervisor broker  alone: {' '.join(snapshot().fleet.services)}"
    assert (blank, table[:5]) == ("", "AGENT")
    assert frame(filters=StatusFilter(drift=ANY))[0].endswith("2 of 5 agents: 1 running, 1 exited")


def test_a_window_says_that_the_broker_is_down_and_what_is_wrong() -> None:
    lines = frame(bus=None, faults=("registry.yaml, line 3, column 1: no",), source=RecordSource.JOURNAL)
    assert lines[2:5] == [
        "the broker is down: services go on by polling, and commands go through the journal",
        "registry.yaml, line 3, column 1: no",
        "the agents are shown as the journal has them, which is the last good state",
    ]


def test_a_window_says_that_no_service_runs_before_it_speaks_of_a_broker() -> None:
    assert frame(bus=None, pids={})[2].startswith("no service runs: nobody tends the agents")


def test_a_low_window_says_how_many_it_does_not_show() -> None:
    many = {f"agent-{number}": record() for number in range(100)}
    lines = frame(height=12, records=many)
    assert len(lines) == 12
    assert lines[-1] == "… there is no room for 95 more agents"
    lines = frame(height=12, records=many, filters=StatusFilter(ended=True))
    assert lines[-1] == "… there is no room for 95 more agents and 3 more sessions that ended"


def test_a_window_that_is_just_high_enough_shows_everything() -> None:
    assert "no room" not in frame(height=9)[-1]
    assert frame(height=8)[-1] == "… there is no room for 2 more agents"
    with_ended = StatusFilter(ended=True)
    assert "no room" not in frame(height=14, filters=with_ended)[-1]
    assert frame(height=13, filters=with_ended)[-1] == "… there is no room for 2 more sessions that ended"


@pytest.mark.parametrize("columns", [1, 2, 10, 25])
@pytest.mark.parametrize("height", [1, 2, 3, 4, 5])
def test_a_window_of_any_size_shows_something(columns: int, height: int) -> None:
    assert frame(columns, height, filters=StatusFilter(ended=True), faults=("bad",), bus=None)


def test_passing_time_alone_is_no_news() -> None:
    later = StatusView(snapshot(), StatusFilter(), NOW + timedelta(hours=1))
    assert view().news() == later.news()
    changed = RECORDS | {"builder": record(Status.TERMINATED)}
    assert view().news() != view(records=changed).news()
    assert (
        view(StatusFilter(agents=("writer",))).news() == view(StatusFilter(agents=("writer",)), records=changed).news()
    )
    assert view().news() != view(bus=None).news()


# --- for programs ---


def test_the_document_has_every_field_of_every_record() -> None:
    document = json.loads(view(StatusFilter(ended=True)).json())
    assert set(document["agents"]["helper"]) == set(AgentRecord.model_fields)
    assert document["agents"]["idle"] is None
    assert document["from"] == "registry"
    assert set(document["history"][0]) == {"spawn", *EndedSession.model_fields}
    assert "history" not in json.loads(view().json())


# --- as a whole, without services ---


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    path = tmp_path / "fleet.yaml"
    path.write_text("host: box\nagents: {builder: {}, tester: {}}\n")
    made = Fleet(path, Declaration(host="box"))
    made.home.mkdir()
    RegistryFile(made.registry).write({"builder": record(), "tester": record(Status.EXITED)})
    return made


def status(fleet: Fleet, *arguments: str) -> int:
    return main(["--fleet", str(fleet.path), "status", *arguments])


def test_filters_hold_for_json_too(fleet: Fleet, capfd: pytest.CaptureFixture[str]) -> None:
    assert status(fleet, "--json", "--status", "exited,terminated") == 3
    assert list(json.loads(capfd.readouterr().out)["agents"]) == ["tester"]


def test_status_makes_no_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "fleet.yaml").write_text("agents: {builder: {}}\n")
    assert main(["--fleet", str(tmp_path / "fleet.yaml"), "status"]) == 3
    assert "builder  not_started" in capfd.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["fleet.yaml"]


def test_a_wrong_name_is_reported_before_a_watch_begins(fleet: Fleet, capfd: pytest.CaptureFixture[str]) -> None:
    assert status(fleet, "--watch", "nobody") == 1
    assert capfd.readouterr().err.startswith("muster: there is no agent 'nobody'; there are: builder, tester")


def test_a_broken_registry_is_reported_and_the_journals_records_are_shown(
    fleet: Fleet, capfd: pytest.CaptureFixture[str]
) -> None:
    journal = Journal(fleet.journal, "registrar")
    kept = record(Status.GAVE_UP)
    with journal.transaction() as transaction:
        for key, value in rows_of("builder", kept, kept).items():
            transaction.remember(key, value)
    journal.close()
    fleet.registry.write_text("version: 1\nagents:\n  builder: [\n")
    assert status(fleet) == 3
    shown = capfd.readouterr().out
    assert f"{fleet.registry}, line " in shown
    assert ", column " in shown
    assert "the agents are shown as the journal has them" in shown
    assert "builder  gave_up" in shown
    assert status(fleet, "--json", "--ended") == 3
    document = json.loads(capfd.readouterr().out)
    assert (document["from"], document["agents"]["builder"]["status"]) == (RecordSource.JOURNAL, "gave_up")


def test_while_the_registry_file_is_behind_the_journals_records_are_shown(
    fleet: Fleet, capfd: pytest.CaptureFixture[str]
) -> None:
    written, kept = record(), record(Status.GAVE_UP)
    journal = Journal(fleet.journal, "registrar")
    for base, shown_from in ((kept, RecordSource.REGISTRY), (written, RecordSource.JOURNAL)):
        with journal.transaction() as transaction:
            for key, value in rows_of("builder", kept, base).items():
                transaction.remember(key, value)
        status(fleet, "--json")
        assert json.loads(capfd.readouterr().out)["from"] == shown_from
    journal.close()
    status(fleet)
    shown = capfd.readouterr().out
    assert "the agents are shown as the journal has them" in shown
    assert "builder  gave_up" in shown


def test_a_broken_registry_without_a_journal_makes_none(fleet: Fleet, capfd: pytest.CaptureFixture[str]) -> None:
    fleet.registry.write_text("agents: [")
    assert status(fleet, "--json") == 3
    assert json.loads(capfd.readouterr().out)["from"] == RecordSource.NOTHING
    assert not fleet.journal.exists()


def test_status_without_watch_does_not_import_the_watch() -> None:
    code = "import sys, services.cli.status; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    dear = {"services.cli.status_watch", "services.cli.live_screen", "shared.client.request", "supervisor", "asyncio"}
    assert dear.isdisjoint(loaded)
