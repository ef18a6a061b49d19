"""Health checks and peeks in a turn of the monitor: which agents are asked, when, and what follows from the answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from services.monitor import service
from services.monitor.health.query import Query
from services.monitor.health.query_runner import QueryRunner
from services.monitor.limits.decision import LimitMemory
from services.monitor.limits.hold import LimitHold
from services.monitor.policies.memory import POLICIES, PolicyMemory
from shared.agents.fork import ForkAnswer, ForkFailed, ForkSilent, Result, TimedResult
from shared.contract.commands import Peek, Reply, Stop
from shared.contract.events.activity import AgentFinished
from shared.runtime.turn import Turn
from tests.unit.monitor.samples import record
from tests.unit.monitor.world import WAITS, WORKS, World, told

EVERY_S = 60.0
WATCHED = {"watch": {"health": {"every_s": EVERY_S}}}
SAID = json.dumps({"state": "working", "summary": "half done", "output": ""})
DONE = json.dumps({"state": "finished", "summary": "done", "output": "x" * 600})


class FakeQueries(QueryRunner):
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.asked: dict[str, Query] = {}
        self.answers: dict[str, TimedResult] = {}
        self.cancelled: list[str] = []

    def ask(self, key: str, query: Query, *, soon: bool = False) -> None:
        assert key not in self.asked
        assert soon is key.startswith("peek:"), "people come first"
        self.asked[key] = query

    def take(self, key: str) -> TimedResult | None:
        return self.answers.pop(key, None)

    def cancel(self, key: str) -> None:
        self.cancelled.append(key)
        self.asked.pop(key, None)

    def answer(self, key: str, result: Result) -> None:
        del self.asked[key]
        self.answers[key] = TimedResult(result, 1.5)


@pytest.fixture
def queries(world: World) -> FakeQueries:
    made = FakeQueries()
    world.queries = made
    world.declare({"builder": WATCHED, "tester": {}})
    world.restarts()
    return made


def runs(world: World, tmp_path: Path, **changes: Any) -> None:
    """A session that began just now, in a workspace that is there, with a conversation."""
    world.starts("builder", WORKS, created=int(world.now.timestamp()))
    known = {"spawn": "s1", "workspace": str(tmp_path), "conversation": "c1"}
    world.writes(builder=record(**{**known, **changes}))


def works(turn: Turn) -> list[tuple[str, str]]:
    return [each for each in told(turn) if each[1] in ("progress", "finished", "unresponsive")]


# --- on an interval ---


def test_an_agent_is_asked_an_interval_after_its_start_and_after_each_answer(
    world: World, queries: FakeQueries, tmp_path: Path
) -> None:
    runs(world, tmp_path)
    turn = world.turn()
    assert not queries.asked
    assert turn.look_again is not None
    world.turn(after=EVERY_S)
    assert list(queries.asked) == ["check:builder"]
    world.turn(after=EVERY_S)
    queries.answer("check:builder", ForkAnswer(SAID))
    assert works(world.turn()) == [("builder", "progress")]
    world.turn(after=EVERY_S - 1)
    assert not queries.asked
    world.turn()
    assert list(queries.asked) == ["check:builder"]


def test_the_copy_has_the_agent_s_environment_and_is_not_taken_for_it(
    world: World, queries: FakeQueries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTER_SPAWN", "other")
    world.declare({"builder": {**WATCHED, "env": {"KEY": "1"}, "env_from": ["MUSTER_*"]}})
    runs(world, tmp_path)
    world.turn(after=EVERY_S)
    (query,) = queries.asked.values()
    env = query.original.env
    assert (env["KEY"], env["MUSTER_HOOKS"], env["MUSTER_FLEET"]) == ("1", "none", str(world.path))
    assert not {"MUSTER_SPAWN", "MUSTER_AGENT"} & env.keys()
    assert (query.original.workspace, query.original.session) == (tmp_path, "c1")
    assert query.argv[-2:] == ["--answer", "c1"]


@pytest.mark.parametrize("changes", [{"conversation": None}, {"spawn": "s0"}])
def test_an_agent_is_not_asked_before_its_conversation_is_known(
    world: World, queries: FakeQueries, tmp_path: Path, changes: dict[str, Any]
) -> None:
    runs(world, tmp_path, **changes)
    world.turn(after=EVERY_S)
    assert not queries.asked


def test_an_agent_is_not_asked_while_its_account_is_limited(world: World, queries: FakeQueries, tmp_path: Path) -> None:
    account = {"account": "acme", **WATCHED}
    world.declare({"builder": account, "tester": {"account": "acme"}})
    runs(world, tmp_path)
    until = world.now.timestamp() + 10_000
    hold = LimitHold("acme", None, "session", "s2", "c2", until, resets_at=until, exact_to_s=1.0, resume_at=until)
    world.turns.remember(**{"policy:tester": POLICIES.dump(PolicyMemory(LimitMemory(hold)))})
    world.turn(after=EVERY_S)
    assert not queries.asked
    world.turns.remember(**{"policy:tester": None})
    world.turn()
    assert list(queries.asked) == ["check:builder"]


def test_the_check_of_a_session_that_ended_is_cancelled_and_forgotten(
    world: World, queries: FakeQueries, tmp_path: Path
) -> None:
    runs(world, tmp_path)
    world.turn(after=EVERY_S)
    queries.answer("check:builder", ForkAnswer(SAID))
    world.turn()
    assert world.memory["health:builder"]["spawn"] == "s1"
    world.turn(after=EVERY_S)
    world.tmux.panes.clear()
    world.turn()
    assert queries.cancelled == ["check:builder"]
    assert "health:builder" not in world.memory


def test_a_new_session_begins_anew(world: World, queries: FakeQueries, tmp_path: Path) -> None:
    runs(world, tmp_path)
    world.turn(after=EVERY_S)
    world.starts("builder", WORKS, spawn="s2", created=int(world.now.timestamp()))
    world.writes(builder=record(spawn="s2", workspace=str(tmp_path), conversation="c1"))
    world.turn()
    assert (queries.cancelled, list(queries.asked)) == (["check:builder"], [])
    world.turn(after=EVERY_S)
    assert list(queries.asked) == ["check:builder"]


def test_a_check_is_cancelled_when_its_interval_is_removed(world: World, queries: FakeQueries, tmp_path: Path) -> None:
    runs(world, tmp_path)
    world.turn(after=EVERY_S)
    world.declare({"builder": {}})
    world.turn()
    assert queries.cancelled == ["check:builder"]


def test_a_finished_task_is_stopped_and_its_result_is_written_before_it_is_told(
    world: World, queries: FakeQueries, tmp_path: Path
) -> None:
    world.declare({"builder": {**WATCHED, "kind": "task"}})
    runs(world, tmp_path)
    world.turn(after=EVERY_S)
    queries.answer("check:builder", ForkAnswer(DONE))
    assert [kind for _, kind in works(world.turn())] == ["progress"], "who works is not finished, whatever is believed"
    world.shows("builder", WAITS)
    world.turn(after=EVERY_S)
    queries.answer("check:builder", ForkAnswer(DONE))
    turn = world.turn()
    assert works(turn) == [("builder", "finished")]
    (stop,) = turn.outgoing
    assert isinstance(stop, Stop)
    assert (stop.agent, stop.spawn) == ("builder", "s1")
    (finished,) = [event for event, _ in turn.emitted if isinstance(event, AgentFinished)]
    assert finished.file is not None
    assert Path(finished.file).read_text() == "x" * 600


def test_a_result_that_can_t_be_written_is_still_told(world: World, queries: FakeQueries, tmp_path: Path) -> None:
    (world.fleet_file.fleet.home / "jobs").write_text("in the way")
    runs(world, tmp_path)
    world.shows("builder", WAITS)
    world.turn(after=EVERY_S)
    queries.answer("check:builder", ForkAnswer(DONE))
    turn = world.turn()
    (finished,) = [event for event, _ in turn.emitted if isinstance(event, AgentFinished)]
    assert (finished.file, finished.output) == (None, "x" * 500)
    assert "can't be kept" in turn.trouble


def test_a_failed_question_is_explained_and_asked_again_later(
    world: World, queries: FakeQueries, tmp_path: Path
) -> None:
    runs(world, tmp_path)
    world.turn(after=EVERY_S)
    queries.answer("check:builder", ForkFailed("not logged in"))
    assert works(world.turn()) == []
    health = world.explains("builder").result["health"]
    assert (health["trouble"], health["state"]) == ("not logged in", "")
    world.turn()
    assert not queries.asked


def test_a_workspace_that_is_gone_is_explained(world: World, queries: FakeQueries, tmp_path: Path) -> None:
    runs(world, tmp_path, workspace="/nowhere")
    world.turn(after=EVERY_S)
    assert not queries.asked
    assert "/nowhere" in world.explains("builder").result["health"]["trouble"]


# --- by hand ---

ASKS = Peek(agent="builder", id="p1")


def reply(turn: Turn, ident: str = "p1") -> Reply:
    return turn.replies[ident][1]


def test_a_peek_is_deferred_until_the_answer_is_there(world: World, queries: FakeQueries, tmp_path: Path) -> None:
    runs(world, tmp_path)
    turn = world.turn(asks=[ASKS])
    assert (list(turn.deferred), list(turn.replies)) == (["p1"], [])
    world.turn(asks=[ASKS])
    assert list(queries.asked) == ["peek:p1"]
    queries.answer("peek:p1", ForkAnswer(SAID))
    given = reply(world.turn(asks=[ASKS]))
    assert (given.ok, given.said) == (True, "builder is working: half done")
    known = {"agent": "builder", "state": "working", "summary": "half done", "output": "", "seconds": 1.5}
    assert given.result == {**known, "text": SAID, "model": None}


def test_a_person_s_own_question_is_answered_in_free_words(world: World, queries: FakeQueries, tmp_path: Path) -> None:
    runs(world, tmp_path)
    command = Peek(agent="builder", id="p1", question="Which file?", model="tiny", timeout_s=7)
    world.turn(asks=[command])
    (query,) = queries.asked.values()
    assert query.question.endswith("Which file?")
    assert (query.argv[-2:], query.timeout_s) == (["--model", "tiny"], 7)
    queries.answer("peek:p1", ForkAnswer('{"state": "finished"}'))
    given = reply(world.turn(asks=[command]))
    assert given.said == 'builder says: {"state": "finished"}'
    assert (given.result["state"], given.result["model"]) == (None, "tiny")


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (ForkSilent(), "builder did not answer within 120 s"),
        (ForkFailed("no such model"), "builder can't be asked: no such model"),
        (ForkFailed("resets at 9", limited=True), "the model that would answer is limited: resets at 9"),
    ],
)
def test_a_peek_without_an_answer_is_refused_with_the_reason(
    world: World, queries: FakeQueries, tmp_path: Path, result: Result, sentence: str
) -> None:
    runs(world, tmp_path)
    world.turn(asks=[ASKS])
    queries.answer("peek:p1", result)
    given = reply(world.turn(asks=[ASKS]))
    assert (given.ok, given.code, given.said) == (False, "refused", sentence)


def test_an_answer_without_the_form_is_given_as_it_is(world: World, queries: FakeQueries, tmp_path: Path) -> None:
    runs(world, tmp_path)
    world.turn(asks=[ASKS])
    queries.answer("peek:p1", ForkAnswer("It goes well."))
    given = reply(world.turn(asks=[ASKS]))
    assert (given.ok, given.said, given.result["state"]) == (True, "builder says: It goes well.", None)


def test_a_peek_at_an_agent_that_can_t_be_asked_is_refused_at_once(
    world: World, queries: FakeQueries, tmp_path: Path
) -> None:
    runs(world, tmp_path, conversation=None)
    world.starts("stranger", spawn="s3")
    world.writes(
        builder=record(workspace=str(tmp_path), conversation=None), stranger=record(spawn="s3", conversation="c")
    )
    asks = [Peek(agent=agent, id=f"p-{agent}") for agent in ("builder", "stranger", "tester", "nobody")]
    turn = world.turn(asks=asks, after=10.0)
    said = {ident: each.said for ident, (_, each) in turn.replies.items()}
    assert "no conversation of builder is known yet: it has had no turn" in said["p-builder"]
    assert "stranger is not in the fleet file" in said["p-stranger"]
    assert said["p-tester"] == "tester was not started yet"
    assert reply(turn, "p-nobody").code == "unknown_agent"
    assert not queries.asked


def test_a_model_that_looks_like_an_option_is_refused(world: World, queries: FakeQueries, tmp_path: Path) -> None:
    runs(world, tmp_path)
    given = reply(world.turn(asks=[Peek(agent="builder", id="p1", model="--yolo")]))
    assert given.said.startswith("builder can't be asked: '--yolo' is no name of a model")
    assert not queries.asked


def test_a_peek_is_refused_when_its_session_ends(world: World, queries: FakeQueries, tmp_path: Path) -> None:
    runs(world, tmp_path)
    world.turn(asks=[ASKS])
    world.tmux.panes.clear()
    given = reply(world.turn(asks=[ASKS]))
    assert (given.ok, queries.cancelled) == (False, ["peek:p1"])
    assert given.said == ("its session ended before it answered: builder does not run any more: its session is gone")


def test_a_peek_does_not_ask_a_later_session_instead(world: World, queries: FakeQueries, tmp_path: Path) -> None:
    runs(world, tmp_path)
    world.turn(asks=[ASKS])
    world.starts("builder", WORKS, spawn="s2", created=int(world.now.timestamp()))
    world.writes(builder=record(spawn="s2", workspace=str(tmp_path), conversation="c1"))
    given = reply(world.turn(asks=[ASKS]))
    assert given.said == "its session ended before it answered: builder was started anew"
    assert not queries.asked


def test_a_question_is_cancelled_when_its_command_is_gone(world: World, queries: FakeQueries, tmp_path: Path) -> None:
    runs(world, tmp_path)
    world.turn(asks=[ASKS])
    with world.journal.transaction() as transaction:
        transaction.answer("p1", b"{}", world.now.timestamp())
    world.turn()
    assert queries.cancelled == ["peek:p1"]


def test_a_restarted_monitor_asks_again(world: World, queries: FakeQueries, tmp_path: Path) -> None:
    runs(world, tmp_path)
    world.turn(asks=[ASKS])
    queries.asked.clear()
    world.restarts()
    assert list(world.turn(asks=[ASKS]).deferred) == ["p1"]
    assert list(queries.asked) == ["peek:p1"]


def test_a_report_that_fails_does_not_have_the_agent_asked_again(
    world: World, queries: FakeQueries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def odd(*_: object) -> None:
        raise ValueError("odd")

    runs(world, tmp_path)
    world.turn(after=EVERY_S + 1)
    monkeypatch.setattr(service, "report", odd)
    asked = 0
    for _ in range(20):
        if "check:builder" in queries.asked:
            asked += 1
            queries.answer("check:builder", ForkAnswer(SAID))
        world.turn(after=0.5)
    assert asked == 1
