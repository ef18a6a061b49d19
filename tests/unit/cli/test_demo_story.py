"""What the demo says about what it sees, and when it counts as healed."""

from datetime import UTC, datetime
from typing import Any

import pytest

from services.cli.demo_story import CHAPTERS, STOPPED, VICTIM, DemoStory
from shared.contract.events.activity import ApprovalNeeded
from shared.contract.events.drift import SessionMissing
from shared.contract.events.lifecycle import AgentGaveUp, AgentRestarted, AgentSpawned, AgentStopped
from shared.contract.events.loops import PhaseAdvanced
from shared.contract.states import AgentState, Desired, Status

NOW = datetime(2026, 1, 31, tzinfo=UTC)
SESSION = {"spawn": "s1", "backend": "demo", "workspace": "/w", "session": "x", "pane": "%1", "pid": 1}
MISSING = SessionMissing(agent=VICTIM, spawn="s1", session=VICTIM)
RESTARTED = AgentRestarted(agent=VICTIM, reason="its session had ended", attempt=1, **SESSION)


def state(status: Status, agent: str = VICTIM) -> AgentState:
    return AgentState(
        agent=agent,
        status=status,
        desired=Desired.RUNNING,
        since=NOW,
        reason="",
        backend="demo",
        workspace="/w",
    )


def asks(agent: str) -> ApprovalNeeded:
    return ApprovalNeeded(agent=agent, spawn="s1", since=NOW, reason="its screen shows a dialog")


def story(*seen: Any, killed: bool = True) -> DemoStory:
    found = DemoStory({VICTIM, "deployer"})
    found.killed = killed
    for data in seen:
        list(found.see(data))
    return found


def test_it_is_ready_once_all_agents_were_started_whatever_became_of_them_since() -> None:
    seen: list[Any] = [state(Status.RUNNING), state(Status.EXITED)]
    assert not story(*seen).ready
    assert not story(*seen, state(Status.STOPPED, "deployer")).ready
    assert story(*seen, state(Status.RUNNING, "deployer")).ready
    assert story(*seen, AgentSpawned(agent="deployer", **SESSION)).ready


HEALING = [MISSING, state(Status.TERMINATED), RESTARTED, state(Status.RUNNING)]


@pytest.mark.parametrize(
    ("left_out", "said"),
    [
        (0, "the drift was not seen"),
        (1, "the registry did not change"),
        (2, "the agent was not restarted"),
        (3, "the restarted agent was not recorded as running"),
    ],
)
def test_it_is_healed_when_nothing_of_it_is_missing(left_out: int, said: str) -> None:
    assert story(*HEALING).healed
    seen = [each for place, each in enumerate(HEALING) if place != left_out]
    assert (story(*seen).healed, story(*seen).missing()) == (False, said)


def test_a_record_may_be_seen_before_the_event_that_led_to_it() -> None:
    assert story(MISSING, state(Status.TERMINATED), state(Status.RUNNING), RESTARTED).healed
    assert not story(MISSING, state(Status.RUNNING), state(Status.TERMINATED), RESTARTED).healed
    assert not story(state(Status.RUNNING), MISSING, RESTARTED, state(Status.RUNNING)).healed


def test_what_happens_before_the_agent_was_killed_heals_nothing() -> None:
    early = story(*HEALING, killed=False)
    assert (early.healed, early.missing()) == (False, "not all agents were running yet")
    ready = story(state(Status.RUNNING), state(Status.RUNNING, "deployer"), killed=False)
    assert ready.missing() == "no agent was killed yet"


def test_everything_is_said_once_when_it_is_first_seen() -> None:
    told = DemoStory(set())
    assert [*told.see(asks("deployer"))] == [
        "deployer asks whether it may run a command, and waits. Answer with: muster approve deployer"
    ]
    assert [*told.see(asks("deployer")), *told.see(asks("writer")), *told.see(None)] == []
    assert len([*told.see(asks("architect"))]) == 1
    assert len([*told.see(AgentStopped(agent=STOPPED, reason="asked for"))]) == 1
    assert [*told.see(AgentGaveUp(agent="tester", reason="it died"))] == []


def test_with_a_board_people_may_answer_there() -> None:
    told = DemoStory(set())
    told.has_board = True
    assert next(told.see(asks("architect"))).endswith("Choose on the board, or with: muster send architect --keys 1")


def test_the_first_phase_that_begins_after_another_is_told() -> None:
    told = DemoStory(set())
    first, second, third = (
        PhaseAdvanced(loop="orders", phase=phase, number=number, phases=3, reason="the loop begins")
        for number, phase in enumerate(("schema", "writes", "reads"), start=1)
    )
    said = [line for event in (first, second, third) for line in told.see(event)]
    assert said == ["a phase of the loop is done. Muster starts builder and reviewer anew for phase 2, writes"]


def test_it_is_told_when_every_chapter_was_seen() -> None:
    told = story(*HEALING)
    assert not told.is_told
    for chapter in CHAPTERS:
        about = {"agent": chapter.agent} if chapter.agent else {"loop": "orders"}
        list(told.see(chapter.event.model_construct(None, **about)))
    assert told.is_told
