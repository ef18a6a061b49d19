"""Agents that don't go on, or can't: nudged, woken, healed or held in a whole fleet, and told why.

The agents of one fleet are shared out among the tests, each of which has its own.
"""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.e2e.watching import is_doing, say
from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import RunningFleet

NUDGE = "go on then"
SOON_S = 40.0
AGENTS: dict[str, dict[str, Any]] = {
    "idler": {"watch": {"stall": {"after_s": 4, "nudge": NUDGE, "then": ["nudge", "restart", "tell"]}}},
    "promiser": {"watch": {"stall": {"after_s": 3, "grace_s": 1, "then": "tell"}}},
    "sleeper": {"wake": {"every_s": 5, "text": "work 1"}},
    "stranger": {"watch": {"login": {"retry_s": 6, "prompt": "work 1"}}},
    "frozen": {"watch": {"unresponsive": {"after_s": 4, "then": "restart"}}},
    "leaver": {"watch": {"heal": {"after_s": 1}}, "prompt": "work 1"},
    "quitter": {"backend": "quitter"},
    "calm": {},
}
QUITTER = {
    "binary": "sh",
    # tmux 3.3a may lose what a program writes right before it ends: 6 % of the time under load.
    "argv": ["{binary}", "-c", "echo 'Invalid API key'; sleep 0.2; exit 1"],
    "deliver": "arg",
    "prompt_args": [],
    "screen": {
        "signs": {
            "login": {
                "says": "failed",
                "trouble": "login",
                "match": "^Invalid API key$",
                "reason": "it is not logged in",
                "yes": ["Invalid API key"],
                "no": ["x"],
            }
        }
    },
}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFleet]:
    running = RunningFleet(
        tmp_path_factory.mktemp("fleet"),
        AGENTS,
        backends={"quitter": QUITTER},
        start={"at_once": 20, "gap_s": 0.01},
    )
    try:
        running.up()
        yield running
    finally:
        running.end()


def told(fleet: RunningFleet, agent: str, source: str = "monitor") -> list[dict[str, Any]]:
    """What was told of an agent from the beginning, by the journal."""
    found = fleet.told(source)
    return [each for each in found if each.get("agent") == agent]


def until_told(fleet: RunningFleet, agent: str, kind: str, count: int = 1, source: str = "monitor") -> list[Any]:
    def enough() -> list[dict[str, Any]] | None:
        found = [each for each in told(fleet, agent, source) if each["kind"] == kind]
        return found if len(found) >= count else None

    return wait_until(enough, f"{kind} of {agent}; told was {told(fleet, agent)[-3:]}", SOON_S)


def heard(fleet: RunningFleet, agent: str) -> list[str]:
    """All that it was told, in every conversation that it had."""
    files = sorted((fleet.fleet.home / "demo").glob("*.jsonl"), key=lambda file: file.stat().st_mtime)
    known = {fleet.records()[agent].conversation, *fleet.records()[agent].earlier}
    lines = [json.loads(line) for file in files if file.stem in known for line in file.read_text().splitlines()]
    return [line["text"] for line in lines if line["who"] == "user"]


def test_an_idle_agent_is_nudged_then_restarted_and_nudged_then_told_once(fleet: RunningFleet) -> None:
    spawn = is_doing(fleet, "idler", "waiting")
    stalls = until_told(fleet, "idler", "stalled", 3)
    assert [each["then"] for each in stalls] == ["nudge", "restart", "tell"]
    assert [each["spawn"] == spawn for each in stalls] == [True, True, False]
    assert all(each["reason"].startswith("idle for ") for each in stalls)
    wait_until(lambda: heard(fleet, "idler") == [NUDGE, NUDGE], "it was nudged twice in one conversation")
    (restarted,) = [each for each in told(fleet, "idler", "spawner") if each["kind"] == "restarted"]
    assert (restarted["replaces"], restarted["attempt"]) == (spawn, 1)
    assert "it stalled" in restarted["reason"]
    is_doing(fleet, "idler", "stalled")
    assert "it counts as stalled since" in fleet.cli("explain", "idler").stdout
    say(fleet, "idler", "work 3")
    is_doing(fleet, "idler", "working")
    assert len([each for each in told(fleet, "idler") if each["kind"] == "stalled"]) == 3


def test_a_promise_is_believed_until_it_is_broken(fleet: RunningFleet) -> None:
    wait_until(lambda: fleet.pane("promiser"), "its session")
    until = datetime.now(UTC) + timedelta(seconds=8)
    say(fleet, "promiser", f"promise {until.isoformat(timespec='seconds')}")
    wait_until(lambda: "WAITING-UNTIL" in fleet.screen("promiser"), "its promise")
    broken = wait_until(
        lambda: [e for e in told(fleet, "promiser") if e["kind"] == "stalled" and e.get("promised_until")],
        "it is told",
        SOON_S,
    )
    assert datetime.now(UTC) > until
    assert "it promised to wait until" in broken[0]["reason"]


def test_an_idle_agent_is_woken_on_its_schedule_and_left_alone_while_it_works(fleet: RunningFleet) -> None:
    is_doing(fleet, "sleeper", "waiting")
    until_told(fleet, "sleeper", "woken", 2)
    wait_until(lambda: heard(fleet, "sleeper").count("work 1") >= 2, "it has the texts")
    say(fleet, "sleeper", "work 12")
    is_doing(fleet, "sleeper", "working")
    before = len(heard(fleet, "sleeper"))
    is_doing(fleet, "sleeper", "waiting")
    assert len(heard(fleet, "sleeper")) <= before + 1
    assert "it is woken next at" in fleet.cli("explain", "sleeper").stdout


def test_an_agent_that_is_not_logged_in_is_held_told_once_and_asked_again_now_and_then(fleet: RunningFleet) -> None:
    spawn = is_doing(fleet, "stranger", "waiting")
    say(fleet, "stranger", "login")
    (fatal,) = until_told(fleet, "stranger", "fatal")
    assert (fatal["trouble"], fatal["then"], fatal["spawn"]) == ("login", "hold", spawn)
    assert "it is held until somebody has logged it in" in fatal["reason"]
    wait_until(lambda: "work 1" in heard(fleet, "stranger"), "it is asked again", SOON_S)
    is_doing(fleet, "stranger", "waiting")
    assert fleet.spawn_of("stranger") == spawn
    assert len([each for each in told(fleet, "stranger") if each["kind"] == "fatal"]) == 1


def test_an_agent_that_hangs_at_work_is_restarted(fleet: RunningFleet) -> None:
    spawn = is_doing(fleet, "frozen", "waiting")
    say(fleet, "frozen", "freeze")
    (silent,) = until_told(fleet, "frozen", "unresponsive")
    assert (silent["spawn"], silent["then"]) == (spawn, "restart")
    fleet.wait_for_new_session("frozen", spawn, SOON_S)
    restarts = until_told(fleet, "frozen", "restarted", source="spawner")
    assert "writes nothing" in restarts[0]["reason"]


def test_a_program_that_is_gone_from_its_pane_is_started_again_within_its_limits(fleet: RunningFleet) -> None:
    """Its pane goes on with something else: a person's shell, say."""
    spawn = is_doing(fleet, "leaver", "waiting")
    pane = fleet.pane("leaver")
    assert pane is not None
    fleet.tmux.ask(("respawn-pane", "-k", "-t", pane.pane_id, "sleep 1000"))
    (fatal,) = until_told(fleet, "leaver", "fatal")
    assert (fatal["trouble"], fatal["then"]) == ("gone", "restart")
    fleet.wait_for_new_session("leaver", spawn, SOON_S)
    (restarted,) = until_told(fleet, "leaver", "restarted", source="spawner")
    assert restarted["attempt"] == 1, "it counts as a death"


def test_an_agent_that_ends_over_its_login_is_given_up_at_once_and_told_once(fleet: RunningFleet) -> None:
    (gave_up,) = until_told(fleet, "quitter", "gave_up", source="spawner")
    assert "it is not logged in; log it in, then start it again" in gave_up["reason"]
    seen = told(fleet, "quitter", "spawner")
    assert "restarted" not in [each["kind"] for each in seen], seen
    fleet.cli("spawn", "quitter", code=None)
    until_told(fleet, "quitter", "gave_up", 2, source="spawner")


def test_nothing_is_typed_into_an_agent_whose_policies_are_off(fleet: RunningFleet) -> None:
    is_doing(fleet, "calm", "waiting")
    waits: Callable[[], bool] = lambda: len(told(fleet, "idler")) > 3  # noqa: E731 - others have been told by then
    wait_until(waits, "others")
    assert heard(fleet, "calm") == []
    assert {each["kind"] for each in told(fleet, "calm")} == {"status_changed"}
