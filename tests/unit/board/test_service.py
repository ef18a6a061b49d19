"""The board turn by turn: cards that follow the records, comments once each, and a heartbeat."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from services.board.comments import MOST_IN_A_MINUTE
from services.board.memory import CARDS, COMMENTS, FIGURES
from shared.contract.asyncapi_examples import fill
from shared.contract.commands import Comment
from shared.contract.events.activity import ApprovalNeeded, LimitHit, StatusChanged
from shared.contract.events.board import CardObserved, MonitoringResumed, MonitoringStopped
from shared.contract.events.drift import DriftEvent, DriftResolved, Moved, SessionMissing, WrongBackend
from shared.contract.events.lifecycle import AgentDeleted, AgentExited, AgentGaveUp
from shared.contract.events.loops import PhaseAdvanced, PhaseDone
from shared.contract.services import entry_of
from shared.contract.states import Activity, AnswerOption, CardColumn, Presence, ServiceState, Status
from shared.contract.topics import CARD_STATE, row_for, rows
from shared.contract.writer import DocumentWriter
from shared.errors import Retryable
from shared.messaging.cursors import LocatedMessage
from shared.system.lock import hold
from tests.fakes.records import START, make_record
from tests.unit.board.samples import AGENTS, after, doing
from tests.unit.board.world import BoardWorld, cards, comments, heartbeats, located

WORKING, WAITING, ASKS = doing(Activity.WORKING), doing(Activity.WAITING), doing(Activity.NEEDS_APPROVAL, 5)
MISSING = SessionMissing(agent="builder", spawn="s1", session="builder")
ASKED = ApprovalNeeded(
    agent="builder",
    spawn="s1",
    since=after(5),
    reason="it asks for permission: Bash",
    dialog="Allow rm?\n1. Yes\n2. No",
    fingerprint="f1",
    can=["approve", "deny"],
    options=[AnswerOption(key="1", text="Yes")],
)


def moved(to: str) -> Moved:
    return Moved(agent="builder", spawn="s1", session="b", workspace=to, was_session="b", was_workspace="/work")


def columns(world: BoardWorld) -> dict[str, str]:
    return {name: card.column.value for name, card in world.shown.items()}


def begun(world: BoardWorld) -> BoardWorld:
    """After its first turn, with one agent that works."""
    world.records(builder=WORKING)
    world.turn(poll=True)
    return world


# --- cards ---


def test_every_declared_and_every_recorded_agent_has_a_card(world: BoardWorld) -> None:
    world.records(builder=WORKING, stranger=WAITING)
    world.turn(poll=True)
    assert columns(world) == {
        "builder": "working",
        "reviewer": "stopped",
        "sender": "starting",
        "mover": "starting",
        "sleeper": "stopped",
        "stranger": "waiting",
    }
    assert cards(world.board.states()) == world.shown


def test_a_card_is_published_when_it_changes_and_not_again(world: BoardWorld) -> None:
    begun(world)
    assert world.turn(poll=True, after=60).states == []
    turn = world.turn(hints=[world.state("builder", WAITING)])
    assert {name: card.column for name, card in cards(turn.states).items()} == {"builder": CardColumn.WAITING}
    assert world.turn(hints=[world.state("builder", WAITING)]).states == []
    assert turn.coalesce_s > 0


def test_there_are_states_before_the_first_turn(world: BoardWorld) -> None:
    begun(world)
    world.restart()
    assert cards(world.board.states()) == world.shown
    assert world.turn(poll=True).states == [], "a restart is no change"


def test_without_hints_the_poll_reads_the_journal(world: BoardWorld) -> None:
    begun(world)
    world.records(builder=WAITING)
    assert world.turn().states == []
    world.turn(poll=True)
    assert columns(world)["builder"] == "waiting"


def test_a_new_fleet_file_changes_the_cards_at_once(world: BoardWorld) -> None:
    begun(world)
    world.declare({"builder": AGENTS["builder"], "sleeper": {}, "new": {}}, loops={})
    turn = world.turn()
    assert set(world.shown) == {"builder", "sleeper", "new"}
    assert {ids["card"] for row, ids in turn.cleared if row is CARD_STATE} == {"reviewer", "sender", "mover"}
    assert columns(world)["sleeper"] == "starting"


def test_an_agent_that_is_taken_out_keeps_its_card_while_it_has_a_record(world: BoardWorld) -> None:
    begun(world)
    world.declare({"reviewer": {}})
    world.turn()
    assert set(world.shown) == {"builder", "reviewer"}
    assert (world.shown["builder"].model, world.shown["builder"].loop) == (None, None)


def test_the_card_of_a_deleted_agent_is_cleared_and_forgotten(world: BoardWorld) -> None:
    world.records(stranger=WAITING)
    world.turn(poll=True)
    world.turn(events=[AgentGaveUp(agent="stranger", reason="it died 6 times")])
    assert COMMENTS.key("stranger") in world.turns.memory
    world.records(stranger=None)
    deleted = AgentDeleted(agent="stranger", reason="asked for by ada")
    turn = world.turn(events=[deleted], hints=[world.state("stranger", None)])
    assert [ids for _, ids in turn.cleared] == [{"card": "stranger"}]
    assert "stranger" not in world.shown
    assert [key for key in world.turns.memory if key.endswith("stranger")] == []
    assert "stranger" not in world.board.days


def test_an_agent_that_came_back_has_a_card_though_its_end_is_told_late(world: BoardWorld) -> None:
    world.records(stranger=WAITING)
    world.turn(poll=True)
    again = doing(Activity.WORKING, spawn="s2")
    world.records(stranger=again)
    writer = DocumentWriter(world.fleet.space, "registrar", world.journal.epoch)
    back = located(*writer.state(again.state("stranger"), seq=1, time=datetime.now(UTC)))
    turn = world.turn(hints=[world.state("stranger", None), back], poll=True)
    assert turn.cleared == []
    assert columns(world)["stranger"] == "working"


def test_what_is_remembered_of_an_agent_that_is_gone_is_forgotten_after_a_while(world: BoardWorld) -> None:
    begun(world)
    world.turn(events=[WrongBackend(agent="early", spawn="s1", expected="demo", command="sh")])
    assert CARDS.key("early") in world.turns.memory, "its record may come a moment later"
    world.turn(poll=True, after=500)
    assert CARDS.key("early") in world.turns.memory
    world.turn(poll=True, after=101)
    assert CARDS.key("early") not in world.turns.memory
    assert COMMENTS.key("early") not in world.turns.memory
    assert CARDS.key("builder") in world.turns.memory


def test_the_last_words_of_an_agent_that_ended_are_on_its_card_until_it_runs_again(world: BoardWorld) -> None:
    begun(world)
    world.turn(events=[AgentExited(agent="builder", spawn="s1", exit_status=1, last_words="no space left on device")])
    assert world.shown["builder"].last_words == "", "it runs, by its record"
    world.turn(hints=[world.state("builder", make_record(Status.GAVE_UP, reason="it died 6 times"))])
    assert world.shown["builder"].last_words == "no space left on device"
    world.turn(hints=[world.state("builder", make_record(spawn="s2"))])
    assert world.shown["builder"].last_words == ""


def test_a_branch_is_on_the_card(world: BoardWorld, tmp_path: Path) -> None:
    head = tmp_path / "work" / ".git" / "HEAD"
    head.parent.mkdir(parents=True)
    head.write_text("ref: refs/heads/topic\n")
    world.records(builder=WORKING.model_copy(update={"workspace": str(tmp_path / "work")}))
    world.turn(poll=True)
    assert world.shown["builder"].branch == "topic"
    head.write_text("ref: refs/heads/other\n")
    world.turn(poll=True, after=1)
    assert world.shown["builder"].branch == "topic", "it is not read all the time"
    world.turn(poll=True, after=30)
    assert world.shown["builder"].branch == "other"


# --- limits ---

HIT = doing(Activity.LIMITED, limit="weekly", account="claude", limit_resets=after(3600))


def test_a_limit_changes_the_cards_of_its_account(world: BoardWorld) -> None:
    world.records(builder=WORKING, reviewer=WAITING)
    world.turn(poll=True)
    world.turn(hints=[world.state("builder", HIT)])
    assert columns(world)["reviewer"] == "limited"
    assert world.shown["reviewer"].limit_resets == after(3600)
    later = HIT.model_copy(update={"limit_resets": after(7200)})
    world.turn(hints=[world.state("builder", later)])
    assert world.shown["reviewer"].limit_resets == after(7200), "it is another time now"
    world.turn(hints=[world.state("builder", WORKING)])
    assert columns(world)["reviewer"] == "waiting"


# --- comments ---


@pytest.mark.parametrize("kind", list(DriftEvent.kinds()), ids=lambda kind: str(kind.__name__))
def test_each_drift_is_one_comment(world: BoardWorld, kind: type[DriftEvent]) -> None:
    begun(world)
    drift = fill(kind)
    received = world.told(drift)
    turn = world.turn(events=[received])
    ((comment, cause),) = turn.emitted
    assert isinstance(comment, CardObserved)
    assert (comment.card, comment.number, comment.by) == ("builder", 1, "muster")
    assert (comment.about, comment.text) == (
        f"drift.{drift.kind}",
        f"{drift.kind.replace('_', ' ')}: {drift.sentence()}",
    )
    assert (comment.recorded, comment.found) == drift.difference()
    assert (comment.tells, comment.needs, comment.at) == (drift.tone, drift.urgency, START)
    assert cause == received.envelope.id
    assert world.shown["builder"].comments == 1
    assert comments(world.turn(events=[drift])) == [], "the same again"
    (stored,) = COMMENTS.load(world.turns.memory[COMMENTS.key("builder")]).comments
    assert stored.times == 2


def test_every_event_that_the_board_follows_is_taken(world: BoardWorld) -> None:
    begun(world)
    followed = [kind for row in rows(entry_of("board").follows) for kind in row.carries.kinds()]  # type: ignore[attr-defined]
    for kind in followed:
        turn = world.turn(events=[fill(kind)], after=61)
        assert turn.trouble == "", kind
    assert len(followed) > 20


def test_what_happened_before_the_first_start_gets_no_comments(world: BoardWorld) -> None:
    old = world.told(MISSING, START - timedelta(hours=1))
    question = world.told(ASKED, START - timedelta(seconds=1))
    world.records(builder=ASKS)
    turn = world.turn(poll=True, events=[old, question], after=6)
    assert comments(turn) == []
    assert world.shown["builder"].question is not None, "what counts now is shown"
    world.restart()
    assert len(comments(world.turn(events=[world.told(moved("/x"), START + timedelta(seconds=6))]))) == 1


def test_a_clock_that_was_set_back_after_the_first_start_costs_no_comments(world: BoardWorld) -> None:
    begun(world)
    world.turn(after=-7200)
    assert len(comments(world.turn(events=[MISSING], after=10))) == 1


def test_comments_go_to_the_page(world: BoardWorld) -> None:
    begun(world)
    version, whole = world.feed.whole()
    assert whole["cards"]["builder"]["column"] == "working"
    world.turn(events=[MISSING])
    _, news = world.feed.since(version)
    assert news is not None
    ((comment),) = news["comments"]
    assert (comment["card"], comment["number"], comment["kind"]) == ("builder", 1, "observed")
    assert news["cards"]["builder"]["comments"] == 1


def test_a_turn_that_is_not_committed_loses_and_doubles_nothing(world: BoardWorld) -> None:
    begun(world)
    event = world.told(MISSING)
    world.records(builder=WAITING)
    for _ in range(3):
        lost = world.turn(events=[event], hints=[world.state("builder", WAITING)], commits=False)
        assert [comment.number for comment in comments(lost)] == [1]
    turn = world.turn(events=[event])
    assert [comment.number for comment in comments(turn)] == [1]
    assert (world.card().column, world.card().comments) == (CardColumn.WAITING, 1)
    stored = CARDS.load(world.turns.memory[CARDS.key("builder")])
    assert (stored.column, stored.comments) == (CardColumn.WAITING, 1)
    assert FIGURES.load(world.turns.memory[FIGURES.key()]).drifts == 1


def test_too_many_are_held_back_and_summed_up_later(world: BoardWorld) -> None:
    begun(world)
    flood = [moved(f"/{place}") for place in range(MOST_IN_A_MINUTE + 4)]
    turn = world.turn(events=flood)
    assert len(comments(turn)) == MOST_IN_A_MINUTE
    assert turn.look_again is not None
    waits = (turn.look_again - turn.now).total_seconds()
    assert 60 <= waits < 61
    assert comments(world.turn(after=30)) == []
    assert comments(world.turn(after=waits - 30, commits=False)) != []
    (summary,) = comments(world.turn())
    assert isinstance(summary, CardObserved)
    assert (summary.about, summary.held_back, summary.number) == ("held_back", 4, MOST_IN_A_MINUTE + 1)
    assert summary.text.endswith("4 × moved")
    assert FIGURES.load(world.turns.memory[FIGURES.key()]).comments == MOST_IN_A_MINUTE + 1
    assert comments(world.turn(after=99)) == []


def test_what_was_held_back_is_summed_up_after_a_restart(world: BoardWorld) -> None:
    begun(world)
    world.turn(events=[moved(f"/{place}") for place in range(MOST_IN_A_MINUTE + 1)])
    world.restart()
    assert [comment.text for comment in comments(world.turn(after=61))] == [
        "held back, because there were too many: 1 × moved"
    ]


def test_a_fault_about_one_event_costs_only_that_one(world: BoardWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(world)

    def breaks(_: object) -> str:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(SessionMissing, "sentence", breaks)
    turn = world.turn(events=[MISSING, moved("/x")])
    assert [comment.text for comment in comments(turn)] == [f"moved: {moved('/x').sentence()}"]
    assert "a bug" in turn.trouble


# --- questions ---


def test_a_question_is_on_its_card(world: BoardWorld) -> None:
    begun(world)
    turn = world.turn(events=[ASKED], hints=[world.state("builder", ASKS)], after=6)
    (comment,) = comments(turn)
    assert isinstance(comment, CardObserved)
    assert (comment.about, comment.needs.value) == ("activity.approval_needed", "action")
    card = world.shown["builder"]
    assert card.column is CardColumn.NEEDS_YOU
    assert card.question is not None
    assert (card.question.fingerprint, card.question.can) == ("f1", ["approve", "deny"])
    assert card.question.options == [AnswerOption(key="1", text="Yes")]
    world.turn(hints=[world.state("builder", doing(Activity.WORKING, 9))], after=4)
    assert world.shown["builder"].question is None
    assert CARDS.load(world.turns.memory[CARDS.key("builder")]).question is None


def test_a_question_may_come_before_or_after_its_record(world: BoardWorld) -> None:
    begun(world)
    world.turn(events=[ASKED], after=6)
    assert world.shown["builder"].question is None
    world.turn(hints=[world.state("builder", ASKS)])
    assert world.shown["builder"].question is not None
    world.restart()
    world.turn(poll=True)
    world.records(builder=ASKS)
    world.turn(poll=True)
    assert world.shown["builder"].question is not None
    other = ASKED.model_copy(update={"fingerprint": "f2", "since": after(8)})
    world.turn(events=[other], after=3)
    assert world.shown["builder"].question is not None
    assert world.shown["builder"].question.fingerprint == "f2"


# --- what people say ---


def test_people_comment(world: BoardWorld) -> None:
    begun(world)
    turn, reply = world.says("  please look at this  ")
    (comment,) = comments(turn)
    assert (comment.kind, comment.by, comment.text) == ("said", "ada", "please look at this")
    assert reply.ok
    assert reply.said == "the comment is on the card of builder"
    assert reply.result == {"card": "builder", "monitoring": True}
    assert [cause for _, cause in turn.emitted] == [reply.id]
    assert comments(world.says("hm", by=None)[0])[0].by == "somebody"
    assert comments(world.says("hm", by="board: ada on her phone")[0])[0].by == "ada on her phone"


def test_monitoring_is_stopped_and_resumed(world: BoardWorld) -> None:
    begun(world)
    turn, reply = world.says("Stop monitoring.")
    (stopped,) = comments(turn)
    assert isinstance(stopped, MonitoringStopped)
    assert reply.said == "builder is not monitored any more; comment `resume` to start it again"
    assert reply.result["monitoring"] is False
    card = world.shown["builder"]
    assert (card.monitoring, card.stopped_by, card.stopped_at) == (False, "ada", START)
    assert comments(world.turn(events=[MISSING, ASKED], after=60)) == []
    assert world.shown["builder"].missed == 2
    again, reply = world.says("stop", by="bob")
    assert comments(again) == []
    assert reply.ok
    assert reply.said == "monitoring of builder was stopped by ada at 2030-01-01 00:00:00 UTC already"
    turn, reply = world.says("RESUME", by="bob", after=60)
    (resumed,) = comments(turn)
    assert isinstance(resumed, MonitoringResumed)
    assert resumed.missed == {"drift.missing": 1, "activity.approval_needed": 1}
    assert reply.said == resumed.text
    assert "missed in 2 min: 1 × missing, 1 × approval_needed; now: Works" in reply.said
    assert (world.shown["builder"].monitoring, world.shown["builder"].missed) == (True, 0)
    assert world.says("resume")[1].said == "builder is monitored already"
    assert len(comments(world.turn(events=[moved("/x")]))) == 1


def test_monitoring_stays_stopped_after_a_restart(world: BoardWorld) -> None:
    begun(world)
    world.says("stop")
    world.restart()
    assert comments(world.turn(events=[MISSING], poll=True)) == []
    assert (world.card().monitoring, world.card().missed) == (False, 1)


def test_only_one_card_is_concerned(world: BoardWorld) -> None:
    begun(world)
    world.says("stop")
    gave_up = AgentGaveUp(agent="reviewer", reason="it died 6 times")
    assert [comment.card for comment in comments(world.turn(events=[gave_up]))] == ["reviewer"]


def test_a_comment_about_nobody_is_refused_with_a_hint(world: BoardWorld) -> None:
    begun(world)
    turn, reply = world.says("hello", agent="bulider")
    assert (reply.ok, reply.code, comments(turn)) == (False, "unknown_agent", [])
    assert "there is no card of 'bulider'" in reply.said
    assert "did you mean 'builder'" in reply.said
    assert CARDS.key("bulider") not in world.turns.memory


def test_a_comment_acts_once(world: BoardWorld) -> None:
    begun(world)
    said = Comment(id="once", agent="builder", text="hello", by="ada")
    assert len(comments(world.turn(said, commits=False))) == 1
    assert [comment.number for comment in comments(world.turn())] == [1], "it comes again, and is new"
    assert comments(world.turn(said)) == []
    assert world.card().comments == 1


# --- loops ---


def test_loops_go_to_the_page_and_to_the_cards_of_those_that_play(world: BoardWorld) -> None:
    begun(world)
    advanced = PhaseAdvanced(loop="main", number=1, phase="draft", phases=1, reason="asked for")
    turn = world.turn(events=[advanced])
    assert [(comment.card, comment.number) for comment in comments(turn)] == [("builder", 1), ("reviewer", 1)]
    (loop,) = world.feed.whole()[1]["loops"]
    assert loop["said"] == "phase 1 of 1, draft"
    world.turn(events=[fill(PhaseDone)])
    world.restart()
    world.turn()
    assert world.feed.whole()[1]["loops"][0]["waits"]


# --- the heartbeat ---


def test_a_heartbeat_every_five_minutes_and_none_between(world: BoardWorld) -> None:
    begun(world)
    assert heartbeats(world.turn(after=10)) == []
    turn = world.turn(after=289)
    assert heartbeats(turn) == []
    assert turn.look_again == START + timedelta(minutes=5)
    assert len(heartbeats(world.turn(after=1))) == 1
    world.restart()
    assert heartbeats(world.turn(after=299)) == []
    assert len(heartbeats(world.turn(after=1))) == 1
    assert len(heartbeats(world.turn(after=86_400))) == 1
    assert len(heartbeats(world.turn(after=-7 * 86_400))) == 1, "the clock was set back"


def test_the_first_turn_says_that_it_is_alive(world: BoardWorld) -> None:
    world.records(builder=WORKING)
    assert len(heartbeats(world.turn(commits=False))) == 1
    (beat,) = heartbeats(world.turn())
    assert (beat.cards, beat.drifts, beat.comments, beat.last_drift, beat.needs_you_s) == (5, 0, 0, None, None)


def test_a_heartbeat_says_what_it_saw(world: BoardWorld) -> None:
    begun(world)
    resolved = DriftResolved(agent="builder", drift="moved", reason="it is back")
    world.turn(events=[MISSING, moved("/x"), resolved], after=10)
    world.turn(events=[ASKED], hints=[world.state("builder", ASKS)], after=10)
    world.says("hello")
    (beat,) = heartbeats(world.turn(after=280))
    assert (beat.cards, beat.drifts, beat.last_drift) == (5, 2, START + timedelta(seconds=10))
    assert beat.comments == 4, "its own"
    assert beat.needs_you_s == 295.0
    assert beat.columns == {
        "needs_you": 1,
        "trouble": 0,
        "limited": 0,
        "working": 0,
        "waiting": 0,
        "starting": 2,
        "done": 0,
        "stopped": 2,
    }
    assert (
        "5 cards (1 needs_you, 2 starting, 2 stopped); 2 drifts, the last at 2030-01-01 00:00:10 UTC" in beat.sentence()
    )
    end = world.feed.subscribe(lambda: None)
    assert heartbeats(world.turn(after=300))[0].pages == 1
    end()
    assert heartbeats(world.turn(after=300))[0].pages == 0


# --- the fleet ---


def presence(world: BoardWorld, status: Presence, reason: str = "") -> LocatedMessage:
    """What the monitor says of itself, from this process."""
    writer = DocumentWriter(world.fleet.space, "monitor", world.journal.epoch)
    state = ServiceState(service="monitor", status=status, connection=1, pid=os.getpid(), version="1", reason=reason)
    return located(*writer.state(state, seq=1, time=world.now))


def shown_fleet(world: BoardWorld) -> dict[str, Any]:
    fleet: dict[str, Any] = world.feed.whole()[1]["fleet"]
    return fleet


def test_the_page_is_told_whether_a_broker_answers(world: BoardWorld) -> None:
    begun(world)
    assert shown_fleet(world)["broker"]["up"] is False
    assert "polling" in shown_fleet(world)["broker"]["said"]
    world.turns.broker_answers = True
    world.turn()
    assert shown_fleet(world)["broker"] == {"up": True, "said": "up"}
    world.turns.broker_answers = False
    world.turn()
    assert shown_fleet(world)["broker"]["up"] is False


def test_the_page_is_told_how_services_are(world: BoardWorld) -> None:
    begun(world)
    world.turns.broker_answers = True

    def monitor() -> tuple[str, str]:
        (found,) = [each for each in shown_fleet(world)["services"] if each["name"] == "monitor"]
        return found["status"], found["said"]

    world.turn()
    assert monitor() == ("down", "start it with: muster up")
    with hold(world.fleet.home / "run" / "monitor.lock"):
        world.turn(hints=[presence(world, Presence.DEGRADED, "tmux does not answer")])
        assert monitor() == ("degraded", "tmux does not answer")
        world.turn(hints=[presence(world, Presence.ONLINE)])
        assert monitor() == ("online", "")
    world.turn(poll=True)
    assert monitor()[0] == "down"


def test_a_broken_fleet_file_is_told_and_the_last_good_one_stays(world: BoardWorld) -> None:
    begun(world)
    world.written.path.write_text("agents: [broken")
    world.turn(poll=True)
    assert shown_fleet(world)["faults"]
    assert set(world.shown) == set(AGENTS)


# --- the day ---


def test_the_day_is_kept_over_a_restart(world: BoardWorld) -> None:
    begun(world)
    world.turn(hints=[world.state("builder", WAITING)], after=130)
    world.turn(after=130)
    assert world.board.days["builder"].letters == "wi"
    world.records(builder=WAITING)
    world.restart()
    world.turn(poll=True, after=240)
    assert world.board.days["builder"].letters == "wii.", "nobody looked meanwhile"
    world.turn(after=120)
    assert world.board.days["builder"].letters == "wii.i"


# --- when something fails ---


def breaks(*_: object, **__: object) -> None:
    raise Retryable("no luck")


def test_a_turn_that_raises_is_made_up_for(world: BoardWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(world)
    world.records(builder=WAITING, stranger=WAITING)
    world.turn(poll=True)
    world.records(builder=ASKS, stranger=None)
    with monkeypatch.context() as patched:
        patched.setattr("services.board.service.fleet_document", breaks)
        with pytest.raises(Retryable):
            world.turn(poll=True, after=30)
    turn = world.turn(poll=True)
    stored = CARDS.load(world.turns.memory[CARDS.key("builder")])
    assert stored.column is CardColumn.NEEDS_YOU
    _, whole = world.feed.whole()
    assert whole["cards"]["builder"]["column"] == "needs_you"
    assert "stranger" not in whole["cards"]
    assert [ids for _, ids in turn.cleared] == [{"card": "stranger"}]
    assert world.turn(poll=True).cleared == []


def test_a_change_that_no_memory_tells_of_is_made_up_for(world: BoardWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(world)
    busy = doing(Activity.WORKING, reason="it uses Bash: ls")
    world.records(builder=busy)
    with monkeypatch.context() as patched:
        patched.setattr(world.feed, "put_cards", breaks)
        with pytest.raises(Retryable):
            world.turn(hints=[world.state("builder", busy)])
    world.turn()
    assert world.feed.whole()[1]["cards"]["builder"]["headline"] == "Uses Bash"


def test_what_came_by_a_hint_alone_is_remembered_though_a_turn_was_not_committed(world: BoardWorld) -> None:
    begun(world)
    world.records(builder=WAITING)
    world.turn(hints=[world.state("builder", WAITING)], commits=False)
    assert CARDS.load(world.turns.memory[CARDS.key("builder")]).column is CardColumn.WORKING
    world.turn()
    assert CARDS.load(world.turns.memory[CARDS.key("builder")]).column is CardColumn.WAITING


def test_the_removal_of_a_card_that_was_not_committed_is_repeated(world: BoardWorld) -> None:
    world.records(stranger=WAITING)
    world.turn(poll=True)
    world.records(stranger=None)
    gone = world.state("stranger", None)
    assert len(world.turn(hints=[gone], commits=False).cleared) == 1
    assert world.turn(poll=True).cleared == [(CARD_STATE, {"card": "stranger"})]
    assert world.turn(poll=True).cleared == []
    world.records(stranger=WAITING)
    world.turn(poll=True)
    world.records(stranger=None)
    assert len(world.turn(hints=[gone]).cleared) == 1
    world.records(stranger=WAITING)
    back = world.turn(poll=True)
    assert (back.cleared, list(cards(back.states))) == ([], ["stranger"]), "it is back"
    assert world.turn(poll=True).cleared == []
    assert "stranger" in world.feed.whole()[1]["cards"]


def test_status_events_alone_are_no_comments(world: BoardWorld) -> None:
    begun(world)
    changed = StatusChanged(
        agent="builder", spawn="s1", status=Activity.WAITING, since=START, reason="x", decided_by="hooks"
    )
    assert comments(world.turn(events=[changed, fill(StatusChanged)])) == []
    assert len(comments(world.turn(events=[fill(LimitHit)]))) == 1


def test_the_end_of_a_session_is_on_the_card(world: BoardWorld) -> None:
    begun(world)
    ended: Callable[[Status], Any] = lambda status: make_record(status, reason="asked for by ada", backend="claude")  # noqa: E731
    world.turn(hints=[world.state("builder", ended(Status.TERMINATED))])
    assert columns(world)["builder"] == "trouble"
    world.turn(hints=[world.state("builder", ended(Status.STOPPED))])
    assert (columns(world)["builder"], world.shown["builder"].headline) == ("stopped", "Stopped: asked for by ada")
    assert row_for(world.shown["builder"]) is CARD_STATE
