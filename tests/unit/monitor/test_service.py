"""A turn of the monitor: which agents it watches, which screens it captures, and what it reports."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from services.monitor.service import RECORD_WITHIN_S
from shared.contract.events.activity import ApprovalNeeded
from shared.contract.states import Activity, Status
from shared.fleet import SIDE_SERVICE
from shared.system.tmux import TmuxUnavailable
from tests.fakes.records import START
from tests.unit.monitor.samples import record
from tests.unit.monitor.world import AGENTS, WAITS, WORKS, World, asks, told


def signs(text: str) -> dict[str, Any]:
    """A rule of the user's own for the demo agent."""
    screen = f"{'─' * 20}\n› x\n{'─' * 20}\n{text}"
    rule = {"says": "limited", "below": "box", "match": f"^{text}$", "yes": [screen], "no": ["something else"]}
    return {"backends": {"demo": {"screen": {"signs": {"mine": rule}}}}}


# --- whom it watches ---


def test_agents_come_work_and_go(world: World) -> None:
    world.runs("builder", WORKS)
    world.runs("tester")
    assert told(world.turn()) == [("builder", "working"), ("tester", "waiting")]
    assert told(world.turn()) == []
    world.shows("builder", WAITS)
    assert told(world.turn()) == [("builder", "waiting")]
    del world.tmux.panes["builder"]
    assert told(world.turn()) == [], "the record has it running still"
    world.writes(builder=record(Status.EXITED, activity=Activity.FAILED, ended=START))
    assert told(world.turn()) == [("builder", "failed")]
    assert told(world.turn()) == []


def test_a_new_session_of_the_same_agent_begins_anew(world: World) -> None:
    world.runs("builder", WORKS)
    world.turn()
    world.runs("builder", WORKS, spawn="s2")
    turn = world.turn()
    assert told(turn) == [("builder", "working")]
    assert [getattr(event, "was", "") for event, _ in turn.emitted] == [None]


def test_after_a_restart_nothing_is_told_twice(world: World) -> None:
    world.runs("builder", asks())
    assert told(world.turn()) == [("builder", "needs_approval"), ("builder", "approval_needed")]
    world.restarts()
    assert told(world.turn()) == []
    world.restarts()
    world.shows("builder", WORKS)
    assert told(world.turn()) == [("builder", "working")]


def test_side_services_unknown_backends_and_the_unstamped_are_not_watched(world: World) -> None:
    world.starts("builder")
    world.writes(builder=record(backend=SIDE_SERVICE))
    world.starts("tester", spawn="s2")
    world.writes(tester=record(spawn="s2", backend="nobody-knows"))
    world.starts("stranger", spawn="s3")
    assert told(world.turn(after=60)) == []
    world.tmux.panes["tester"] = replace(world.tmux.panes["tester"], spawn=None)
    assert told(world.turn(after=60)) == []
    assert world.tmux.captured[-1] == []


def test_a_backend_that_is_taken_out_of_the_fleet_file_breaks_nothing(world: World) -> None:
    world.declare(AGENTS, backends={"mine": {"like": "demo"}})
    world.starts("builder", WORKS)
    world.writes(builder=record(backend="mine"))
    world.runs("tester")
    assert told(world.turn()) == [("builder", "working"), ("tester", "waiting")]
    world.declare(AGENTS)
    world.shows("builder", WAITS)
    world.shows("tester", WORKS)
    assert told(world.turn()) == [("tester", "working"), ("builder", "unknown")]
    assert told(world.turn()) == [], "once"
    assert "nothing that can be watched" in world.explains("builder").said
    world.declare(AGENTS, backends={"mine": {"like": "demo"}})
    assert told(world.turn()) == [("builder", "waiting")]


def test_a_backend_that_was_chosen_for_one_start_counts_once_it_is_recorded(world: World) -> None:
    """tmux shows a session before the record tells what runs in it; the fleet file would have run another."""
    world.declare({"builder": {"backend": "claude"}, "tester": {}})
    world.starts("builder", WORKS)
    world.turn()
    world.writes(builder=record(backend="demo"))
    assert told(world.turn()) == [("builder", "working")]
    assert world.explains("builder").result["backend"] == "demo"


def test_a_session_is_reported_once_it_is_recorded(world: World) -> None:
    """What is told of another session than the recorded one is lost on the record."""
    world.writes(builder=record(Status.STOPPED, spawn="s0"))
    world.starts("builder")
    assert told(world.turn()) == []
    assert world.explains("builder").ok
    world.writes(builder=record())
    assert told(world.turn()) == [("builder", "waiting")]


def test_a_session_without_a_record_is_reported_after_a_while(world: World) -> None:
    world.starts("builder")
    assert told(world.turn()) == []
    assert told(world.turn(after=RECORD_WITHIN_S)) == [("builder", "waiting")]


def test_a_tmux_that_does_not_answer_does_not_count_as_empty(world: World) -> None:
    world.runs("builder")
    world.turn()
    world.tmux.trouble = TmuxUnavailable("list-panes", "")
    with pytest.raises(TmuxUnavailable):
        world.turn()
    world.tmux.trouble = None
    assert told(world.turn()) == []


def test_an_end_is_not_reported_before_tmux_knows_the_exit_status(world: World) -> None:
    world.runs("builder", WORKS)
    world.turn()
    world.tmux.panes["builder"] = replace(world.tmux.panes["builder"], dead=True)
    assert told(world.turn(after=0.5)) == []
    world.tmux.panes["builder"] = replace(world.tmux.panes["builder"], dead_status=0)
    assert told(world.turn(after=0.5)) == [("builder", "done")]


# --- screens ---


def test_only_screens_on_which_something_changed_are_captured_and_at_once(world: World) -> None:
    world.runs("builder")
    world.runs("tester")
    world.turn()
    assert world.tmux.captured == [["%0", "%1"]]
    world.turn(after=5)
    assert world.tmux.captured[1:] == [[]]
    world.shows("tester", WORKS)
    world.turn()
    assert world.tmux.captured[2:] == [["%1"]]


def test_a_pane_that_goes_before_its_screen_is_captured_breaks_nothing(world: World) -> None:
    world.runs("builder")
    world.runs("tester")
    world.tmux.shown.clear()
    assert told(world.turn()) == [("builder", "unknown"), ("tester", "unknown")]


def test_a_rule_that_is_edited_is_in_force_on_a_screen_that_stays(world: World) -> None:
    world.runs("builder", f"{WAITS[: WAITS.rindex('  demo')]}out of credits")
    assert told(world.turn()) == [("builder", "waiting")]
    world.turn(after=60)
    world.declare(AGENTS, **signs("out of credits"))
    assert told(world.turn(after=60)) == [("builder", "limited")]
    assert told(world.turn(after=2)) == [("builder", "limit_hit")]
    world.path.write_text("agents: [broken")
    assert told(world.turn(after=60)) == [], "the last good one stays in force"
    world.declare(AGENTS)
    assert told(world.turn(after=60)) == [("builder", "waiting")]


def test_a_dialog_is_told_with_its_words_and_fingerprint(world: World) -> None:
    world.runs("builder", asks("ask one"))
    first = [event for event, _ in world.turn().emitted if isinstance(event, ApprovalNeeded)]
    world.shows("builder", asks("ask two"))
    second = [event for event, _ in world.turn().emitted if isinstance(event, ApprovalNeeded)]
    ((one,), (two,)) = (first, second)
    assert "Do you allow this? ask one" in one.dialog
    assert "1. Yes" in one.dialog
    assert one.fingerprint
    assert one.fingerprint != two.fingerprint


def test_it_looks_more_often_while_something_goes_on(world: World) -> None:
    world.runs("builder")
    world.turn(after=60)
    assert world.turn(after=60).look_again == world.now + timedelta(seconds=1)
    world.shows("builder", WORKS)
    assert world.turn().look_again == world.now + timedelta(seconds=0.5)


# --- explaining ---


def test_an_agent_is_explained(world: World) -> None:
    world.runs("builder", WORKS)
    reply = world.explains("builder")
    assert (reply.ok, reply.result["status"], reply.result["decided_by"]) == (True, "working", "screen")
    assert reply.said.startswith("builder is working: ")


@pytest.mark.parametrize(
    ("agent", "code", "said"),
    [
        ("nobody", "unknown_agent", "there is no agent 'nobody'; `muster status` lists them"),
        ("tester", "refused", "tester was not started yet"),
        ("stopped", "refused", "stopped does not run: stopped since 2030-01-01 00:00:00 UTC, asked for by somebody"),
        ("side", "refused", "side runs on service, which is nothing that can be watched for what it is doing"),
        ("stray", "refused", "stray runs on an unknown backend, which is nothing that can be watched"),
    ],
)
def test_explain_says_why_an_agent_is_not_watched(world: World, agent: str, code: str, said: str) -> None:
    world.writes(stopped=record(Status.STOPPED))
    world.starts("side", spawn="s8")
    world.writes(side=record(spawn="s8", backend=SIDE_SERVICE))
    world.starts("stray", spawn="s9")
    reply = world.explains(agent)
    assert (reply.ok, reply.code) == (False, code)
    assert reply.said.startswith(said)
