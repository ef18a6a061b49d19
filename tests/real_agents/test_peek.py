"""A copy of a real agent's conversation is asked in the middle of a turn: the answer comes, and the agent, its files
and its turn are as they were.
"""

import hashlib
import json
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from services.monitor.health.query_runner import MARK
from services.monitor.health.question import SIDE_QUESTION
from tests.fixtures.broker import wait_until
from tests.real_agents.clis import Cli
from tests.real_agents.manned import AGENT, Manned, living_in, manned
from tests.real_agents.matrix import PROGRAMS, program_of
from tests.real_agents.model import Model
from tests.real_agents.model.script import STATE

pytestmark = [pytest.mark.real_agent, pytest.mark.timeout(600)]

THINKS = "DO-THINK 60"
QUICK = ("claude", "codex")
MODELS = {"claude": "haiku", "codex": "gpt-6-luna", "gemini": "gemini-2.5-flash-lite", "opencode": "claude-sonnet-4-5"}
"""Who answers; for opencode none is named, so it is the agent's own."""
HARMLESS = {"DeferredToolPlaceholder", "StructuredOutput"}
"""Tools by which Claude Code has its answer given in a form."""
CONVERSATIONS = {
    "claude": ".claude/projects/**/*.jsonl",
    "codex": ".codex/sessions/**/*.jsonl",
    "gemini": ".gemini/tmp/*/chats/*",
    "opencode": ".local/share/opencode/opencode.db",
}


def files(agent: Manned, cli: Cli) -> dict[str, Any]:
    """Every conversation in its HOME, by its content."""
    found = sorted(agent.place.home.glob(CONVERSATIONS[cli.name]))
    read = _rows if cli.name == "opencode" else _digest
    return {str(path.relative_to(agent.place.home)): read(path) for path in found}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _rows(database: Path) -> list[Any]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as opened:
        tables = ("session", "message", "part")
        return [row for table in tables for row in opened.execute(f"SELECT * FROM {table} ORDER BY id")]  # noqa: S608


def activity(agent: Manned) -> str | None:
    record = agent.fleet.records().get(AGENT)
    return record.activity if record is not None else None


def still(agent: Manned, cli: Cli) -> dict[str, Any] | None:
    """The files, once two looks in a row are alike."""
    first = files(agent, cli)
    try:
        wait_until(lambda: files(agent, cli) != first, "", 1.0)
    except AssertionError:
        return first
    return None


def asked(model: Model) -> list[str]:
    """Whole requests that hold a side question."""
    texts = [json.dumps(body) for _, body in model.requests]
    return [text for text in texts if SIDE_QUESTION in text]


def left_running(agent: Manned) -> list[psutil.Process]:
    """What was started to ask and has not ended."""
    found = []
    for process in living_in(agent.place.home):
        with suppress(psutil.Error):
            found += [process] if MARK in process.environ() else []
    return found


@pytest.mark.parametrize("cli", PROGRAMS, ids=program_of)
def test_a_copy_is_asked_in_the_middle_of_a_turn(cli: Cli, model: Model, tmp_path: Path) -> None:
    with manned(cli, model, tmp_path) as agent:
        agent.wait_until_idle()
        early = agent.told("peek")
        assert (early["ok"], "it has had no turn" in early["said"]) == (False, True), early

        agent.told("send", text="say hello")
        agent.wait_for_words("All done")
        agent.told("send", text=THINKS)
        agent.wait_for_prompt(THINKS)
        agent.until(lambda: activity(agent) == "working", "that it works")
        agent.until(lambda: agent.fleet.records()[AGENT].transcript, "its conversation on disk")
        before = agent.until(lambda: still(agent, cli), "files that are not written any more")

        answer = agent.told("peek", timeout_s=60)
        assert answer["ok"], answer
        assert (answer["result"]["state"], answer["result"]["summary"]) == ("working", STATE["summary"])
        if cli.name in QUICK:
            own = agent.told("peek", timeout_s=60, question="Which file?")
            assert (own["said"], own["result"]["state"]) == (f"{AGENT} says: All done.", None)
        limited = agent.told("peek", timeout_s=60, question="DO-LIMIT")
        assert (limited["ok"], limited["said"].partition(":")[0]) == (False, "the model that would answer is limited")

        assert all("say hello" in each for each in asked(model)), "it is a copy of this conversation"
        assert all(MODELS[cli.name] in each.model for each in model.asides)
        assert {tool for each in model.asides for tool in each.tools} <= HARMLESS
        assert files(agent, cli) == before
        assert activity(agent) == "working"
        assert model.prompts[-1] == THINKS
        assert not list((agent.fleet.fleet.home / "peeks").iterdir())
        assert not left_running(agent)
