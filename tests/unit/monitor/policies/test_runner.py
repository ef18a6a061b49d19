"""Which commands the monitor sends, and which events it emits, as the policies of several agents want it."""

from datetime import timedelta
from typing import Any

import pytest

from shared.contract.commands import Command, Park, Restart, Send, Unpark
from shared.contract.events.activity import LimitHit
from shared.runtime.turn import Turn
from tests.fakes.peers import Peer
from tests.fakes.records import START
from tests.unit.monitor.samples import record
from tests.unit.monitor.world import BOX, RULE, WAITS, WORKS, World, told

LIMITS = {"slack_s": 10, "gap_s": 30, "patience_s": 100}
AGENTS: dict[str, Any] = {
    "builder": {"account": "acme", "watch": {"limits": LIMITS}},
    "tester": {"account": "acme", "watch": {"limits": LIMITS}, "wake": {"every_s": 60}},
}
FOOT = "  demo agent · enter to send"
WARNS = {
    "screen": {
        "warnings": {
            "near": {"match": "^You've used (?P<text>\\d+% of your limit)$", "yes": ["You've used 9% of your limit"]}
        }
    }
}


def limited(reset: str = "00:10:00", *, by_itself: bool = False) -> str:
    more = f" · going on by itself at {reset}" if by_itself else ""
    return f"> heard: go\n! usage limit reached · resets {reset} (UTC){more}\n{BOX}{FOOT}"


@pytest.fixture
def fleet(world: World) -> World:
    world.declare(AGENTS)
    for agent, spawn in (("builder", "s1"), ("tester", "s2")):
        world.runs(agent, WAITS, spawn)
    world.turn()
    return world


def asked(turn: Turn, kind: type[Command] = Send) -> list[Command]:
    return [each for each in turn.outgoing if isinstance(each, kind)]


def answer(world: World, command: Command, *, ok: bool = True) -> None:
    """As the spawner does."""
    spawner = Peer(world.fleet_file.fleet.journal, "spawner", world.fleet_file.fleet.space)
    spawner.answer(command, "ok" if ok else "refused", time=world.now)
    spawner.close()


def hit(world: World, *agents: str, screen: str | None = None) -> Turn:
    for agent in agents:
        world.shows(agent, screen or limited())
    world.turn()
    return world.turn(after=2)


def test_a_limit_parks_its_account_and_its_event_names_the_others_it_concerns(fleet: World) -> None:
    turn = hit(fleet, "builder")
    (event,) = [event for event, _ in turn.emitted if isinstance(event, LimitHit)]
    assert (event.agent, event.account, event.parked) == ("builder", "acme", ["tester"])
    (park,) = asked(turn, Park)
    assert isinstance(park, Park)
    assert (park.account, park.until, park.models) == ("acme", START + timedelta(seconds=600 + 1 + 10), None)
    assert asked(fleet.turn(after=60), Park) == [], "asked once"


def test_no_agent_of_a_limited_account_is_woken_until_the_limit_is_over(fleet: World) -> None:
    hit(fleet, "builder")
    assert asked(fleet.turn(after=120)) == []
    explained = fleet.explains("tester").result["plans"]
    assert "the limit of its account 'acme' is reached, as builder was told" in explained[0]
    (send,) = asked(fleet.turn(after=600))
    assert (getattr(send, "agent", ""), getattr(send, "text", "")) == ("builder", "continue")
    answer(fleet, send)
    fleet.shows("builder", WORKS)
    fleet.turn(after=1)
    assert asked(fleet.turn(after=8)) == [], "in turn"
    woken = [each for _ in range(3) for each in asked(fleet.turn(after=15))]
    assert [getattr(each, "text", "") for each in woken] == ["Look for new work."]


def test_a_promise_of_an_impossible_time_breaks_nothing(fleet: World) -> None:
    for words in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"):
        fleet.calls_a_hook("Stop", last_assistant_message=f"WAITING-UNTIL: {words}")
        for after in (1, 100_000):
            turn = fleet.turn(after=after)
            assert turn.trouble == ""


def test_an_agent_that_lost_its_program_while_limited_is_restarted_after_the_limit(fleet: World) -> None:
    hit(fleet, "builder")
    fleet.writes(builder=record(drifts=["wrong_backend"]))
    assert asked(fleet.turn(after=300), Restart) == []
    turns = [fleet.turn(after=200) for _ in range(4)]
    assert [getattr(each, "agent", "") for turn in turns for each in asked(turn, Restart)] == ["builder"]
    assert ("builder", "fatal") in [each for turn in turns for each in told(turn)]


def test_a_restart_that_was_refused_is_asked_for_again(fleet: World) -> None:
    fleet.writes(builder=record(drifts=["wrong_backend"]))
    fleet.turn()
    (first,) = asked(fleet.turn(after=60), Restart)
    assert asked(fleet.turn(after=100), Restart) == [], "it is under way"
    answer(fleet, first, ok=False)
    (second,) = asked(fleet.turn(after=100), Restart)
    assert first.id != second.id


def test_two_limited_agents_of_an_account_are_resumed_one_after_the_other(fleet: World) -> None:
    fleet.declare({name: {**each, "wake": None} for name, each in AGENTS.items()})
    hit(fleet, "builder", "tester")
    fleet.now = START + timedelta(seconds=611)
    (first,) = asked(fleet.turn(after=1))
    assert asked(fleet.turn(after=20)) == [], "the other one waits for it"
    answer(fleet, first)
    fleet.shows("builder", WORKS)
    fleet.turn(after=1)
    assert ("builder", "limit_lifted") in told(fleet.turn(after=8))
    (second,) = asked(fleet.turn(after=10))
    assert (getattr(first, "agent", ""), getattr(second, "agent", "")) == ("builder", "tester")


def test_an_agent_that_goes_on_before_the_reset_unparks_its_account(fleet: World) -> None:
    fleet.declare({name: {**each, "wake": None} for name, each in AGENTS.items()})
    hit(fleet, "builder")
    fleet.shows("builder", WORKS)
    fleet.turn(after=1)
    turn = fleet.turn(after=10)
    assert ("builder", "limit_lifted") in told(turn)
    assert [type(each) for each in turn.outgoing] == [Unpark]


def test_a_restarted_monitor_sends_no_command_twice(fleet: World) -> None:
    hit(fleet, "builder")
    fleet.restarts()
    turn = fleet.turn(after=2)
    assert (told(turn), turn.outgoing) == ([], [])
    fleet.now = START + timedelta(seconds=611)
    (send,) = [each for each in asked(fleet.turn(after=1)) if getattr(each, "agent", "") == "builder"]
    fleet.restarts()
    assert [each for each in asked(fleet.turn(after=1)) if getattr(each, "agent", "") == "builder"] == []
    assert send.id


def test_a_turn_that_was_not_committed_sends_the_same_command_id_again(fleet: World) -> None:
    hit(fleet, "builder")
    fleet.now = START + timedelta(seconds=611)
    lost = fleet.turn(after=1, commits=False)
    again = fleet.turn(after=0)
    ids = [[each.id for each in asked(turn) if getattr(each, "agent", "") == "builder"] for turn in (lost, again)]
    assert ids[0] == ids[1] != []


def test_an_agent_that_is_gone_is_forgotten_when_its_limit_is_over(fleet: World) -> None:
    hit(fleet, "builder")
    fleet.declare({"tester": AGENTS["tester"]})
    del fleet.tmux.panes["builder"]
    fleet.turn(after=5)
    assert "policy:builder" in fleet.memory, "its account is limited still"
    turn = fleet.turn(after=700)
    assert ("builder", "limit_lifted") in told(turn), "so that no record tells of it for ever"
    assert "policy:builder" not in fleet.memory


def test_an_agent_that_may_come_back_is_remembered(fleet: World) -> None:
    hit(fleet, "builder")
    del fleet.tmux.panes["builder"]
    fleet.turn(after=700)
    assert "policy:builder" in fleet.memory
    fleet.runs("builder", WAITS, "s3")
    fleet.writes(builder=record(spawn="s3"))
    fleet.turn(after=1)
    sends = [each for each in asked(fleet.turn(after=5)) if getattr(each, "agent", "") == "builder"]
    assert [getattr(each, "spawn", "") for each in sends] == ["s3"]


def test_a_warning_is_told_once_for_an_account(fleet: World) -> None:
    fleet.declare(AGENTS, backends={"demo": WARNS})
    for agent in ("builder", "tester"):
        fleet.shows(agent, f"You've used 93% of your limit\n{BOX}{FOOT}")
    assert [kind for _, kind in told(fleet.turn())] == ["limit_near"]
    fleet.shows("builder", f"You've used 94% of your limit\n{BOX}{FOOT}")
    assert told(fleet.turn()) == []
    fleet.shows("builder", WAITS)
    fleet.turn(after=3_600)
    fleet.shows("builder", f"You've used 95% of your limit\n{BOX}{FOOT}")
    assert ("builder", "limit_near") in told(fleet.turn())


def test_a_screen_that_only_quotes_a_limit_shows_none(fleet: World) -> None:
    fleet.shows("builder", f"> heard: ! usage limit reached · resets 00:10:00 (UTC)\n{RULE[:5]}\n{BOX}{FOOT}")
    assert told(fleet.turn(after=5)) == []
