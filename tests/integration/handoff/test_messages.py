"""Messages reach their agents through the spawner: bound to a session, once, and not while they can't be taken."""

from collections.abc import Callable
from datetime import timedelta

from services.handoff.loop_turn import BRANCHES
from shared.contract.commands import PhaseShow, Send
from shared.contract.events.loops import MessageDropped, MessageWaits
from shared.contract.states import Activity
from tests.fixtures.repositories import Clone, git
from tests.integration.handoff.station import Station

Make = Callable[..., Station]
PATTERNS = {"claim": {"to": "review", "text": "{subject}"}}


def sends(world: Station) -> list[Send]:
    return [each for each in world.asked if isinstance(each, Send)]


def push(clone: Clone, *subjects: str) -> None:
    for subject in subjects:
        clone.commit(subject)
    clone.push()


def test_a_message_waits_for_an_agent_that_does_not_run_and_that_is_reported(station: Make, clone: Clone) -> None:
    world = station(patterns=PATTERNS)
    world.settled()
    push(clone, "claim: x")
    world.until(lambda: "claim" in world.kinds(), "the claim")
    world.turns.now += timedelta(seconds=61)
    world.turn()
    world.turn()
    assert [(each.agent, each.reason) for each in world.of(MessageWaits)] == [("reviewer", "it does not run")]
    shown = world.reply(PhaseShow()).result["loops"]["main"]["messages"]
    assert shown == [{"agent": "reviewer", "waiting": 1, "reason": "it does not run"}]
    world.restarts()
    world.runs("reviewer", spawn="s7")
    world.turn()
    assert [(each.text, each.spawn, each.when) for each in sends(world)] == [("claim: x", "s7", "idle")]


def test_messages_that_wait_together_are_one_text_and_one_text_goes_at_a_time(station: Make, clone: Clone) -> None:
    world = station(patterns=PATTERNS, when="now")
    world.runs("reviewer")
    world.settled()
    push(clone, "claim: 1")
    world.until(lambda: sends(world), "the first")
    push(clone, "claim: 2")
    push(clone, "claim: 3")
    world.until(lambda: world.kinds().count("claim") == 3, "all of them")
    world.settled()
    assert [each.text for each in sends(world)] == ["claim: 1"]
    world.answers_all()
    world.until(lambda: len(sends(world)) == 2, "the others")
    assert (sends(world)[1].text, sends(world)[1].when) == ("claim: 2\n\nclaim: 3", "now")


def test_a_message_is_not_typed_into_an_agent_whose_limit_is_reached(station: Make, clone: Clone) -> None:
    world = station(patterns=PATTERNS)
    world.runs("reviewer", activity=Activity.LIMITED, limit="weekly")
    world.settled()
    push(clone, "claim: x")
    world.until(lambda: "claim" in world.kinds(), "the claim")
    world.settled()
    assert sends(world) == []
    world.runs("reviewer")
    world.until(lambda: sends(world), "the message")


def test_a_refused_message_is_sent_again_to_the_session_that_runs_then(station: Make, clone: Clone) -> None:
    world = station(patterns=PATTERNS)
    world.runs("reviewer", spawn="s1")
    world.settled()
    push(clone, "claim: x")
    world.until(lambda: sends(world), "the message")
    world.answers(sends(world)[0], "it was meant for the session s1, and another runs since", ok=False)
    world.runs("reviewer", spawn="s2")
    world.turn()
    assert len(sends(world)) == 1
    world.turns.now += timedelta(seconds=6)
    world.turn()
    assert [each.spawn for each in sends(world)] == ["s1", "s2"]
    world.answers_all()
    world.turn()
    world.settled()
    assert len(sends(world)) == 2


def test_a_message_that_waits_for_a_week_is_dropped_and_reported(station: Make, clone: Clone) -> None:
    world = station(patterns=PATTERNS)
    world.settled()
    push(clone, "claim: x")
    world.until(lambda: "claim" in world.kinds(), "the claim")
    world.turns.now += timedelta(days=8)
    world.turn()
    (dropped,) = world.of(MessageDropped)
    assert (dropped.text, dropped.reason) == ("claim: x", "it could not be said for 7 days: it does not run")
    assert world.turns.memory.keys() == {BRANCHES.key("main")}


def test_a_message_that_begins_with_a_sign_is_no_command_to_the_agents_program(station: Make, clone: Clone) -> None:
    world = station(patterns={"claim": {"to": "review", "text": "{author} says {subject}"}})
    world.runs("reviewer")
    world.settled()
    git(clone.path, "config", "user.name", "/clear")
    push(clone, "claim: x")
    world.until(lambda: sends(world), "the message")
    assert sends(world)[0].text == "Message: /clear says claim: x"
