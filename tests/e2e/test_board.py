"""The board's worker in a whole fleet: cards, comments, monitoring stopped and resumed, with and without a broker."""

import json
import signal
from typing import Any

from tests.e2e.hands import BOTH, maybe_without_broker
from tests.e2e.watching import dialog, is_doing, say
from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import RunningFleet, Watcher


def comments(fleet: RunningFleet, agent: str) -> list[dict[str, Any]]:
    """What was said on a card, by the journal, but for conversations that were identified."""
    told = [each for each in fleet.told("board") if each.get("card") == agent]
    return [each for each in told if each.get("about") != "drift.identified"]


def abouts(fleet: RunningFleet, agent: str) -> list[str]:
    return [each["about"] for each in comments(fleet, agent) if each["kind"] == "observed"]


def card(fleet: RunningFleet, watcher: Watcher, agent: str) -> dict[str, Any]:
    states = watcher.documents(f"muster/box/board/{agent}/state")
    found: dict[str, Any] = states[-1]["data"] if states else {}
    return found


def wait_for_column(fleet: RunningFleet, watcher: Watcher, agent: str, column: str) -> dict[str, Any]:
    return wait_until(
        lambda: found if (found := card(fleet, watcher, agent)).get("column") == column else None,
        f"the card of {agent} in {column}; it is {card(fleet, watcher, agent)}",
    )


def test_a_card_follows_the_facts(fleet: RunningFleet) -> None:
    watcher = fleet.watch("muster/box/board/#")
    wait_for_column(fleet, watcher, "reviewer", "waiting")
    say(fleet, "reviewer", "work 3")
    wait_for_column(fleet, watcher, "reviewer", "working")
    wait_for_column(fleet, watcher, "reviewer", "waiting")
    dialog(fleet, "reviewer", "ask rm -r build")
    asked = wait_until(
        lambda: found if (found := card(fleet, watcher, "reviewer").get("question")) else None, "the question"
    )
    assert "rm -r build" in asked["dialog"]
    assert asked["can"] == ["approve", "deny"]
    assert fleet.ask("approve", agent="reviewer", fingerprint="another")["code"] == "refused"
    assert fleet.ask("approve", agent="reviewer", fingerprint=asked["fingerprint"])["ok"]
    assert wait_for_column(fleet, watcher, "reviewer", "waiting").get("question") is None
    assert "activity.approval_needed" in abouts(fleet, "reviewer")
    fleet.cli("stop", "reviewer")
    assert wait_for_column(fleet, watcher, "reviewer", "stopped")["status"] == "stopped"
    (beat,) = [each for each in fleet.told("board") if each["kind"] == "heartbeat"]
    assert beat["cards"] == 2


def test_an_option_of_a_question_is_chosen_by_its_key_and_only_while_it_is_asked(fleet: RunningFleet) -> None:
    watcher = fleet.watch("muster/box/board/#")
    say(fleet, "reviewer", "choose Which colour? | Red | Blue")
    is_doing(fleet, "reviewer", "needs_approval")
    asked = wait_until(
        lambda: found if (found := card(fleet, watcher, "reviewer").get("question")) else None, "the question"
    )
    assert asked["options"] == [{"key": "1", "text": "Red"}, {"key": "2", "text": "Blue"}]
    wrong = fleet.ask("send", agent="reviewer", keys=["1"], fingerprint="another")
    assert "not the one that was meant" in wrong["said"]
    assert "Blue" in fleet.screen("reviewer")
    answered = fleet.ask("send", agent="reviewer", keys=["2"], fingerprint=asked["fingerprint"])
    assert (answered["ok"], answered["result"]["confirmed"]) == (True, "screen")
    gone = fleet.ask("send", agent="reviewer", keys=["2"], fingerprint=asked["fingerprint"])
    assert "no dialog" in gone["said"]


@BOTH
def test_each_drift_is_one_comment_and_a_stopped_card_gets_none(fleet: RunningFleet, alone: bool) -> None:
    watcher = fleet.watch("muster/box/board/#")
    with maybe_without_broker(fleet, without=alone):
        old = fleet.kill_session("builder")
        fleet.wait_for_new_session("builder", after=old)
        wait_until(lambda: "lifecycle.restarted" in abouts(fleet, "builder"), "the comments on the drift")
        assert abouts(fleet, "builder") == ["drift.missing", "lifecycle.restarted"]
        missing = comments(fleet, "builder")[0]
        assert (missing["recorded"], missing["found"]) == ("running in session builder", "tmux has no such session")

        stopped = fleet.cli("board", "comment", "builder", "Stop", "monitoring")
        assert "not monitored any more" in stopped.stdout
        told = comments(fleet, "builder")[-1]
        assert told["kind"] == "monitoring_stopped"
        assert told["by"].endswith("(cli)")
        old = fleet.kill_session("builder")
        fleet.wait_for_new_session("builder", after=old)
        wait_until(lambda: "restarted" in [e["kind"] for e in fleet.told("spawner")][-2:], "the second restart")
        resumed = json.loads(fleet.cli("board", "comment", "builder", "resume", "--json").stdout)
        assert resumed["result"] == {"card": "builder", "monitoring": True}
        last = comments(fleet, "builder")[-1]
        assert last["kind"] == "monitoring_resumed"
        assert last["missed"]["drift.missing"] == 1
        assert abouts(fleet, "builder") == ["drift.missing", "lifecycle.restarted"], "none while it was stopped"
    wait_until(
        lambda: watcher.kinds("board/builder/comment")[-1:] == ["monitoring_resumed"], "all of it at a subscriber"
    )
    wait_until(lambda: card(fleet, watcher, "builder").get("monitoring"), "the card is monitored again")


def test_a_comment_is_a_command_on_the_bus_and_a_wrong_one_is_answered_in_words(fleet: RunningFleet) -> None:
    watcher = fleet.watch("muster/box/board/#")
    said = fleet.ask("comment", agent="builder", text="look at the tests first", by="ada")
    assert said["ok"]
    wait_until(lambda: "said" in watcher.kinds("board/builder/comment"), "the comment at a subscriber")
    assert comments(fleet, "builder")[-1]["text"] == "look at the tests first"
    assert fleet.ask("comment", agent="bilder", text="stop")["said"].startswith("there is no card of 'bilder'; did you")
    assert fleet.ask("comment", agent="builder", text=" ")["code"] == "malformed"
    fleet.ask("comment", agent="builder", text="stop", by="ada")
    stopped = wait_until(
        lambda: found if not (found := card(fleet, watcher, "builder"))["monitoring"] else None, "the card says so"
    )
    assert stopped["stopped_by"] == "ada"


def test_a_killed_board_loses_nothing_and_says_nothing_twice(fleet: RunningFleet) -> None:
    watcher = fleet.watch("muster/box/board/#")
    fleet.ask("comment", agent="reviewer", text="stop", by="ada")
    fleet.signal("board", signal.SIGKILL)
    old = fleet.kill_session("builder")
    fleet.wait_for_new_session("builder", after=old)
    wait_until(lambda: "lifecycle.restarted" in abouts(fleet, "builder"), "the comments of the next board")
    assert abouts(fleet, "builder") == ["drift.missing", "lifecycle.restarted"]
    numbers = [each["number"] for each in fleet.told("board") if each.get("card") == "builder"]
    assert numbers == list(range(1, len(numbers) + 1))
    fleet.signal("board", signal.SIGKILL)
    wait_until(lambda: card(fleet, watcher, "reviewer").get("stopped_by") == "ada", "who stopped it is known still")
    assert fleet.ask("comment", agent="reviewer", text="resume", by="bob")["said"].startswith("monitoring resumed")
