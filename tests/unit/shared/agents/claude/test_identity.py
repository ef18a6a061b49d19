"""Claude's live file, as it was recorded: right process, reused number, half written, another agent's."""

import json
from pathlib import Path
from typing import Any

import pytest

from shared.agents.identity import IDENTITY_READERS, ConversationIdentity
from shared.system.processes import Process
from tests.fakes.processes import Details, FakeProcesses
from tests.unit.shared.agents.process_samples import SAMPLES, ident, put

SAMPLE = SAMPLES / "claude-2.1.197"
PID, STARTED, TICKS = 4711, 1794834790.9, 250950
CLAUDE = Process(PID, 1, "claude", STARTED, TICKS)
WORKS = Path("/srv/app/ws")


def live(moment: str, **other: Any) -> str:
    return json.dumps({**json.loads((SAMPLE / f"{moment}.json").read_text()), **other})


def seen(home: Path, process: Process = CLAUDE, **variables: str) -> FakeProcesses:
    return FakeProcesses({process: Details(["claude"], {"HOME": str(home), **variables})})


def identify(processes: FakeProcesses, pid: int = PID) -> ConversationIdentity | None:
    return IDENTITY_READERS["claude"](processes, processes.process(pid), WORKS)


def sessions(home: Path) -> Path:
    return home / ".claude" / "sessions" / f"{PID}.json"


@pytest.mark.parametrize(
    ("moment", "conversation", "status"),
    [("ready", 1, "idle"), ("busy", 1, "busy"), ("idle", 1, "idle"), ("cleared", 2, "idle")],
)
def test_the_live_file_is_heeded(moment: str, conversation: int, status: str, tmp_path: Path) -> None:
    put(sessions(tmp_path), live(moment))
    assert identify(seen(tmp_path)) == ConversationIdentity(ident(conversation), None, WORKS, status)


def test_the_transcript_is_named_once_it_is_there(tmp_path: Path) -> None:
    put(sessions(tmp_path), live("idle"))
    transcript = put(tmp_path / ".claude" / "projects" / "-srv-app-ws" / f"{ident(1)}.jsonl", "{}\n")
    found = identify(seen(tmp_path))
    assert found is not None
    assert found.transcript == transcript


def test_its_own_directory_is_looked_into(tmp_path: Path) -> None:
    put(tmp_path / "mine" / "sessions" / f"{PID}.json", live("idle"))
    assert identify(seen(tmp_path)) is None
    assert identify(seen(tmp_path, CLAUDE_CONFIG_DIR=str(tmp_path / "mine"))) is not None


def test_a_reused_number_is_another_process(tmp_path: Path) -> None:
    put(sessions(tmp_path), live("idle"))
    later = Process(PID, 1, "claude", STARTED + 60, TICKS + 6000)
    assert identify(seen(tmp_path, later)) is None


@pytest.mark.parametrize(("later", "known"), [(-0.5, True), (1.5, True), (60.0, False)])
def test_without_ticks_the_start_decides(later: float, known: bool, tmp_path: Path) -> None:
    put(sessions(tmp_path), live("idle"))
    elsewhere = Process(PID, 1, "claude", STARTED + later)
    assert (identify(seen(tmp_path, elsewhere)) is not None) is known


@pytest.mark.parametrize(
    "text",
    [
        "",
        live("idle")[:90],
        "[]",
        "null",
        "[" * 100_000,
        "\0\xff",
        live("idle", pid=1),
        live("idle", pid=str(PID)),
        live("idle", sessionId=None),
        live("idle", sessionId="--dangerous"),
        live("idle", sessionId={"id": 1}),
        live("idle", procStart=None),
        live("idle", name="x" * (5 << 20)),
    ],
    ids=range(13),
)
def test_what_is_no_live_file_says_nothing(text: str, tmp_path: Path) -> None:
    put(sessions(tmp_path), text)
    assert identify(seen(tmp_path)) is None


def test_odd_details_are_left_out(tmp_path: Path) -> None:
    put(sessions(tmp_path), live("idle", cwd="\0", status=3))
    assert identify(seen(tmp_path)) == ConversationIdentity(ident(1))


def test_nothing_is_known_of_a_process_that_hides_its_variables(tmp_path: Path) -> None:
    put(sessions(tmp_path), live("idle"))
    assert identify(FakeProcesses({CLAUDE: Details(["claude"])})) is None


def test_a_directory_or_a_dangling_link_in_its_place_says_nothing(tmp_path: Path) -> None:
    sessions(tmp_path).mkdir(parents=True)
    assert identify(seen(tmp_path)) is None
    sessions(tmp_path).rmdir()
    sessions(tmp_path).symlink_to(tmp_path / "nowhere")
    assert identify(seen(tmp_path)) is None


def test_a_wrapper_of_its_name_leads_to_it(tmp_path: Path) -> None:
    put(sessions(tmp_path), live("idle"))
    wrapper = Process(4700, 1, "sh", STARTED - 1, 1)
    claude = Process(PID, 4700, "claude", STARTED, TICKS)
    env = {"HOME": str(tmp_path)}
    processes = FakeProcesses(
        {wrapper: Details(["sh", "/usr/local/bin/claude"], env), claude: Details(["claude"], env)}
    )
    assert identify(processes, 4700) is not None


def test_a_claude_that_a_claude_runs_is_not_it(tmp_path: Path) -> None:
    """The outer one waits at its trust dialog, say, and has no file."""
    put(sessions(tmp_path), live("idle"))
    env = {"HOME": str(tmp_path)}
    outer, shell = Process(4700, 1, "claude", STARTED - 9, 1), Process(4701, 4700, "bash", STARTED - 1, 2)
    inner = Process(PID, 4701, "claude", STARTED, TICKS)
    processes = FakeProcesses(
        {
            outer: Details(["claude"], env),
            shell: Details(["bash", "-c", "claude -p hello"], env),
            inner: Details(["claude", "-p", "hello"], env),
        }
    )
    assert identify(processes, 4700) is None
    put(sessions(tmp_path).with_name("4700.json"), live("idle", pid=4700, procStart="1", sessionId=ident(9)))
    assert identify(processes, 4700) == ConversationIdentity(ident(9), None, WORKS, "idle")
