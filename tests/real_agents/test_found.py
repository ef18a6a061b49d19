"""Real agents that a person started in tmux are found, adopted and spoken to like any other; and one after a reboot."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.cli import supervision
from shared.agents.transcript import READERS, Speaker, same_prompt
from shared.system.tmux.server import end_server
from tests.fixtures.broker import wait_until
from tests.fixtures.by_hand import run_tmux
from tests.fixtures.fleet import RunningFleet
from tests.real_agents.clis import Claude, Cli, Codex, Place
from tests.real_agents.installs import installed
from tests.real_agents.manned import AGENT, WITHIN_S, living_in, manned
from tests.real_agents.model import Model

pytestmark = [pytest.mark.real_agent, pytest.mark.timeout(600)]


@contextlib.contextmanager
def found_fleet(cli: Cli, model: Model, room: Path) -> Iterator[tuple[RunningFleet, Place]]:
    """A fleet that has none of these agents, and a home and a directory for one."""
    place = Place(room / "home", room / "work", model.url, trusted=True)
    place.home.mkdir()
    place.work.mkdir()
    cli.prepare(place)
    fleet = RunningFleet(room, {"other": {}})
    try:
        fleet.up()
        fleet.wait_for_status("other", "running")
        yield fleet, place
    finally:
        fleet.end()
        for process in living_in(place.home):
            with contextlib.suppress(ProcessLookupError):
                process.kill()


@pytest.mark.parametrize(
    ("cli", "alone"),
    [(Claude(), False), (Claude(), True), (Codex(), False)],
    ids=["claude by push", "claude without a broker", "codex by push"],
)
def test_an_agent_that_a_person_started_is_adopted(cli: Cli, model: Model, tmp_path: Path, alone: bool) -> None:
    with found_fleet(cli, model, tmp_path) as (fleet, place), contextlib.ExitStack() as stack:
        if alone:
            stack.enter_context(fleet.broker_down())
        given = [word for name, value in cli.environment(place).items() for word in ("-e", f"{name}={value}")]
        window = ["new-session", "-d", "-s", "My Work", "-x", "120", "-y", "40", "-c", str(place.work), *given]
        program = [str(installed(cli)), *cli.arguments()]
        run_tmux(fleet.socket, *window, "--", *program)

        record = fleet.wait_for_status("my-work", "running", WITHIN_S)
        assert (record.backend, record.session) == (cli.name, "My Work")
        assert Path(record.workspace) == place.work
        known = wait_until(lambda: fleet.records()["my-work"].conversation, "its own id of the conversation", WITHIN_S)

        assert fleet.cli("send", "my-work", "hello from afar", "--wait", "80").returncode == 0
        transcript = Path(wait_until(lambda: fleet.records()["my-work"].transcript, "its file", WITHIN_S))
        record = fleet.records()["my-work"]
        assert record.conversation == known, "what was known before the first prompt is what it is in"
        said = [entry.text for entry in READERS[cli.name].entries(transcript, known) if entry.who is Speaker.USER]
        assert any(same_prompt("hello from afar", text) for text in said)


def test_a_real_agent_is_resumed_after_a_reboot(model: Model, tmp_path: Path) -> None:
    with manned(Claude(), model, tmp_path, prompt="remember the word heron") as before:
        before.wait_for_prompt("remember the word heron")
        before.wait_until_idle()
        fleet = before.fleet
        wait_until(lambda: fleet.records()[AGENT].transcript, "its conversation on disk", WITHIN_S)
        known = fleet.records()[AGENT]
        pids = supervision.pids(fleet.fleet)
        for pid in (pids.pop("supervisor"), *pids.values()):
            os.kill(pid, signal.SIGKILL)
        end_server(fleet.socket)
        wait_until(lambda: not supervision.pids(fleet.fleet), "all is gone")

        fleet.up()
        before.wait_for_words("remember the word heron")
        now = wait_until(
            lambda: next((r for r in fleet.records().values() if r.spawn not in (None, known.spawn)), None),
            "the new session is recorded",
            WITHIN_S,
        )
        assert (now.status, now.conversation) == ("running", known.conversation)
        assert model.prompts.count("remember the word heron") == 1
