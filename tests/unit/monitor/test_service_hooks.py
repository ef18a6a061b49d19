"""Calls of hooks in a turn of the monitor: which agent they belong to, when they count, and when they are removed."""

from dataclasses import asdict
from typing import Any

import pytest

from services.monitor.evidence.hook_intake import UNOWNED_KEPT_S
from services.monitor.subject import Subject
from services.monitor.verdict import Verdict
from shared.contract.events.activity import ApprovalNeeded
from tests.unit.monitor.samples import GONE, record
from tests.unit.monitor.world import WAITS, WORKS, World, asks, told


def test_a_call_is_reported_and_removed_once_it_is_committed(world: World) -> None:
    world.runs("builder", "")
    call = world.calls_a_hook("UserPromptSubmit")
    assert told(world.turn()) == [("builder", "working")]
    assert not call.exists()
    assert told(world.turn()) == []


def test_a_call_is_taken_again_if_its_turn_was_not_committed(world: World) -> None:
    world.runs("builder", "")
    call = world.calls_a_hook("UserPromptSubmit")
    world.turn(commits=False)
    assert call.exists()
    assert told(world.turn()) == [("builder", "working")]
    assert not call.exists()
    world.restarts()
    assert told(world.turn()) == []
    assert world.explains("builder").result["status"] == "working"


def test_what_hooks_told_survives_a_restart_of_the_monitor(world: World) -> None:
    world.runs("builder", "")
    world.calls_a_hook("SubagentStart", agent_id="a1")
    world.turn()
    world.restarts()
    world.turn()
    assert world.explains("builder").result["subagents"] == {"a1": "working"}


def test_a_call_that_came_while_the_monitor_was_down_is_taken_later(world: World) -> None:
    world.runs("builder", "")
    world.turn()
    world.calls_a_hook("UserPromptSubmit")
    world.restarts()
    assert told(world.turn(after=600)) == [("builder", "working")]


def test_what_hooks_told_of_an_earlier_session_does_not_count_for_the_next(world: World) -> None:
    world.runs("builder", "")
    world.calls_a_hook("UserPromptSubmit")
    world.turn()
    world.runs("builder", WAITS, spawn="s2")
    world.restarts()
    assert told(world.turn()) == [("builder", "waiting")]


def test_a_call_of_an_earlier_session_counts_for_no_agent(world: World) -> None:
    world.runs("builder", WAITS, spawn="s2")
    call = world.calls_a_hook("UserPromptSubmit", spawn="s1")
    assert told(world.turn()) == [("builder", "waiting")]
    world.turn(after=UNOWNED_KEPT_S + 1)
    assert not call.exists()


@pytest.mark.parametrize("spawn", ["", "s1"])
def test_a_call_of_an_agent_that_is_not_known_yet_is_kept_for_it(world: World, spawn: str) -> None:
    call = world.calls_a_hook("UserPromptSubmit", spawn, ago=-1.01)  # it comes while the turn is under way
    assert told(world.turn()) == []
    assert call.exists()
    world.starts("builder", "")
    world.writes(builder=record(conversation="c1"))
    assert told(world.turn()) == [("builder", "working")]


def test_a_call_without_an_owner_is_dropped_when_it_is_late(world: World) -> None:
    call = world.calls_a_hook("UserPromptSubmit", spawn="")
    world.turn()
    assert call.exists()
    world.turn(after=UNOWNED_KEPT_S)
    assert not call.exists()


def test_what_hooks_told_of_an_agent_that_is_gone_is_forgotten(world: World) -> None:
    world.runs("builder", "")
    world.calls_a_hook("UserPromptSubmit")
    world.turn()
    assert "hooks:builder" in world.memory
    world.tmux.panes.clear()
    world.turn()
    assert "hooks:builder" not in world.memory


def test_a_file_that_is_no_call_breaks_nothing(world: World) -> None:
    world.runs("builder", "")
    bad = world.calls_a_hook("UserPromptSubmit", ago=5)
    bad.write_bytes(b"\xff\x00 not a call")
    world.calls_a_hook("UserPromptSubmit")
    assert told(world.turn()) == [("builder", "working")]
    assert not bad.exists()


def test_a_question_of_a_hook_is_told_once_with_the_dialog_that_comes_after_it(world: World) -> None:
    world.runs("builder", "")
    world.calls_a_hook("PermissionRequest", tool_name="Bash", tool_input={"command": "touch x"})
    assert told(world.turn(after=0.1)) == [("builder", "needs_approval")]
    world.shows("builder", asks("touch x"))
    ((event, _),) = world.turn(after=0.5).emitted
    assert isinstance(event, ApprovalNeeded)
    assert "Do you allow this? touch x" in event.dialog
    assert event.reason == "it asks for permission: Bash: touch x"
    world.calls_a_hook("Notification", notification_type="permission_prompt")
    assert told(world.turn(after=6)) == [], "a notice is no other question"
    world.shows("builder", asks("touch  x"))
    assert told(world.turn()) == [], "nor is a dialog that is painted anew"


def test_the_next_question_of_a_hook_is_told_though_its_dialog_is_the_same(world: World) -> None:
    world.runs("builder", asks())
    for _ in range(2):
        world.calls_a_hook("PermissionRequest", tool_name="Bash", tool_input={"command": "touch x"})
        assert ("builder", "approval_needed") in told(world.turn())


def test_a_question_that_was_answered_is_not_believed_again(world: World) -> None:
    """Hooks tell nothing of an Escape, and the next dialog may be one of which they tell nothing either."""
    world.runs("builder", asks("the first"))
    world.calls_a_hook("PermissionRequest", tool_name="Bash", tool_input={"command": "the first"})
    world.turn()
    world.shows("builder", WAITS)
    found = [event for _ in range(3) for event in told(world.turn())]
    assert found == [("builder", "waiting")]
    assert world.memory["hooks:builder"]["state"].get("parts", {}) == {}
    world.shows("builder", asks("the second"))
    found = [event for _ in range(3) for event in told(world.turn())]
    assert found == [("builder", "needs_approval"), ("builder", "approval_needed")]


def test_a_call_from_before_its_pane_was_made_has_no_owner(world: World) -> None:
    """A new tmux server counts panes from the first again, and hooks that were installed know no spawn."""
    world.runs("builder")
    old = world.calls_a_hook("UserPromptSubmit", spawn="", at="%0", ago=7_200)
    assert told(world.turn()) == [("builder", "waiting")]
    assert not old.exists(), "it is too late for anybody"


def test_a_fault_about_one_agent_costs_no_other_its_report(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.runs("builder")
    world.runs("tester", WORKS)

    def judge(subject: Subject, *given: Any) -> Verdict:
        if subject.agent == "builder":
            raise ZeroDivisionError("odd")
        return judges(subject, *given)

    judges = Subject.judge
    monkeypatch.setattr(Subject, "judge", judge)
    taken = world.turn()
    assert told(taken) == [("tester", "working")]
    assert "builder: ZeroDivisionError: odd" in taken.trouble


def test_after_a_restart_hooks_of_a_program_that_is_gone_do_not_count(world: World) -> None:
    world.runs("builder")
    world.calls_a_hook("UserPromptSubmit")
    assert told(world.turn()) == [("builder", "working")]
    world.turns.remember(**{"hooks:builder": {**world.memory["hooks:builder"], "process": asdict(GONE)}})
    world.restarts()
    found = [event for _ in range(3) for event in told(world.turn())]
    assert found == [("builder", "failed")], "what a program said that is gone counts no longer"


def test_a_command_that_fails_is_refused_and_not_left_open(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.runs("builder")

    def explains(*_: Any) -> None:
        raise ZeroDivisionError("odd")

    monkeypatch.setattr("services.monitor.service.explanation", explains)
    reply = world.explains("builder")
    assert (reply.ok, reply.code, "ZeroDivisionError: odd" in reply.said) == (False, "refused", True)
