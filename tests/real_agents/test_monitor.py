"""One life of each real agent, and what is told of it: above all where its hooks tell nothing.

Every situation of every program is played by `python -m tests.real_agents.matrix --live`, with the time that it took.
"""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.broker import wait_until
from tests.real_agents.clis import Cli
from tests.real_agents.matrix import PROGRAMS, program_of
from tests.real_agents.rehearsal import Rehearsal
from tests.real_agents.screen_words import SIGHTS
from tests.real_agents.situations import Situation
from tests.real_agents.stage import Stage, stage
from tests.real_agents.steps import Answer, Ask, Kill, Press, Reached, Running, See, Step

QUICK = [cli for cli in PROGRAMS if program_of(cli) in ("claude-2.1.325", "codex-0.166.0")]
"""With and without a live file. The others are played by the matrix: they take longest to start."""

pytestmark = [pytest.mark.real_agent, pytest.mark.timeout(600)]

LIFE = Situation("life", "failed", (), asks=True)
TOLD_WITHIN_S = 30.0
"""On a machine of any load; what is promised is measured, not asserted."""
TAKEN_WITHIN_S, TAKEN_AT_THE_LATEST = 5.0, 3


def told(on_stage: Stage, status: str) -> dict[str, Any]:
    """Wait until that is the last thing told of it."""

    def last() -> dict[str, Any] | None:
        changes = on_stage.changes(LIFE.name)
        return changes[-1] if changes and changes[-1]["status"] == status else None

    try:
        return wait_until(last, f"{status} to be told", TOLD_WITHIN_S)
    except AssertionError as error:
        error.add_note(f"{on_stage.changes(LIFE.name)}\n{on_stage.fleet.cli('explain', LIFE.name, code=None).stdout}")
        raise


def questions(on_stage: Stage) -> list[dict[str, Any]]:
    documents = on_stage.watcher.documents(f"agent/{LIFE.name}/activity")
    return [doc["data"] for doc in documents if doc["data"]["kind"] == "approval_needed"]


def press(on_stage: Stage, agent: Rehearsal, step: Step, ends: str) -> None:
    """Press a key, and once more where it was not taken: a dialog that has just been drawn may not listen yet."""
    sight = re.compile(SIGHTS[on_stage.cli.name][ends])
    for _ in range(TAKEN_AT_THE_LATEST):
        agent.step(step)
        with suppress(AssertionError):
            agent.bench.wait_for(lambda: not sight.search(agent.bench.screen()), TAKEN_WITHIN_S)
            return
    pytest.fail(f"{on_stage.cli.name} does not take {step}:\n{agent.bench.screen()}")


@pytest.mark.parametrize("cli", QUICK, ids=program_of)
def test_what_hooks_do_not_tell_is_told_all_the_same(cli: Cli, tmp_path: Path) -> None:
    with stage(cli, [LIFE], tmp_path) as on_stage, on_stage.on(LIFE) as agent:
        told(on_stage, "waiting")
        refused = on_stage.fleet.ask("approve", agent=LIFE.name)
        assert (refused["ok"], "no dialog" in refused["said"]) == (False, True)

        _interrupt_while_it_thinks(on_stage, agent)
        _refuse_a_command(on_stage, agent)
        _approve_a_slow_command(on_stage, agent)

        agent.step(Kill())
        told(on_stage, "failed")
        statuses = [change["status"] for change in on_stage.changes(LIFE.name)]
        assert statuses == [status for place, status in enumerate(statuses) if statuses[place - 1 : place] != [status]]


def _interrupt_while_it_thinks(on_stage: Stage, agent: Rehearsal) -> None:
    for step in (Ask("DO-THINK 60"), Reached(), See("busy")):
        agent.step(step)
    told(on_stage, "working")
    press(on_stage, agent, Answer("interrupt"), "busy")
    told(on_stage, "waiting")


def _refuse_a_command(on_stage: Stage, agent: Rehearsal) -> None:
    agent.bench.keys("C-u")  # Claude Code gives back what it had not begun with
    for step in (Ask("DO-BASH touch here.txt"), See("approval-command")):
        agent.step(step)
    told(on_stage, "needs_approval")
    question = wait_until(lambda: questions(on_stage), "the question to be told")[-1]
    assert "touch here.txt" in question["dialog"]
    press(on_stage, agent, Press(("Escape",)), "approval-command")
    told(on_stage, "waiting")
    late = on_stage.fleet.ask("approve", agent=LIFE.name, fingerprint=question["fingerprint"])
    assert late["ok"] is False
    assert not (on_stage.places[LIFE.name].work / "here.txt").exists()


def _approve_a_slow_command(on_stage: Stage, agent: Rehearsal) -> None:
    before = len(questions(on_stage))
    for step in (Ask("DO-BASH touch there.txt && sleep 45"), See("approval-command")):
        agent.step(step)
    told(on_stage, "needs_approval")
    question = wait_until(lambda: questions(on_stage)[before:], "the next question to be told")[-1]
    other = on_stage.fleet.ask("approve", agent=LIFE.name, fingerprint="0" * 16)
    assert (other["ok"], "not the one that was meant" in other["said"]) == (False, True)
    approved = on_stage.fleet.ask("approve", agent=LIFE.name, fingerprint=question["fingerprint"])
    assert approved["ok"], approved
    agent.step(Running())
    told(on_stage, "working")
    assert (on_stage.places[LIFE.name].work / "there.txt").exists()
