"""Usage limits of the real programs: seen with the right reset, held, and gone on with exactly once when they lift.

All programs are limited in one fleet at the same time, in detached sessions, two of them with a sibling on the account;
most of the time is spent waiting for one reset.
"""

import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from services.cli import supervision
from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import RunningFleet
from tests.real_agents.clis import Claude, Codex, Gemini, Opencode
from tests.real_agents.crew import Crew, Member, crew

pytestmark = [pytest.mark.real_agent, pytest.mark.waits_long, pytest.mark.timeout(600)]

NEWER = replace(Claude(), version="2.1.325")
MEMBERS = {
    "session-one": Member(Claude(), "older", "five_hour"),
    "session-two": Member(Claude(), "older", "five_hour"),
    "model-one": Member(NEWER, "newer", "seven_day_opus"),
    "model-two": Member(NEWER, "newer", "seven_day_opus"),
    "week": Member(Claude(), "week", "seven_day"),
    "opus": Member(Claude(), "opus", "seven_day_opus"),
    "weekly": Member(NEWER, "weekly", "seven_day"),
    "hours": Member(NEWER, "hours", "five_hour"),
    "codex-one": Member(Codex(), "codex", "usage"),
    "codex-two": Member(Codex(), "codex", "usage"),
    "opencode": Member(Opencode(), "opencode", "usage"),
}
SIBLINGS = ["session-one", "session-two", "model-one", "model-two", "codex-one", "codex-two"]
RESUMED = [*SIBLINGS, "week", "opus"]
BY_ITSELF = {"weekly": "usage limit has reset", "hours": "usage limit has reset", "opencode": ""}
"""Who goes on by itself, and what it tells its model then: opencode only asks again."""
SCOPES = {
    **{"session": "session", "week": "weekly", "opus": "Opus", "model": "Opus", "weekly": "weekly", "hours": "5-hour"},
    **{"codex": "usage", "opencode": ""},
}
GAP_S, SLACK_S = 4.0, 2.0
LIMITS = {"slack_s": SLACK_S, "gap_s": GAP_S, "patience_s": 240}
READY_S, TOLD_S, OVER_S = 120.0, 60.0, 240.0
"""On a machine of any load. Claude Code 2.1.325 goes on by itself up to two minutes after the reset."""


@contextmanager
def at_work(members: Mapping[str, Member], room: Path, **limits: float) -> Iterator[Crew]:
    with crew(
        members,
        room,
        defaults={"watch": {"limits": {**LIMITS, **limits}, "stall": {"after_s": 0}}},
        tmux={"width": 120, "height": 40},
        start={"at_once": 2, "gap_s": 1.5},
    ) as on_board:
        for agent in members:
            wait_until(lambda agent=agent: _doing(on_board.fleet, agent) == "waiting", f"{agent} is ready", READY_S)  # type: ignore[misc]
        yield on_board


def _doing(fleet: RunningFleet, agent: str) -> str | None:
    record = fleet.records().get(agent)
    return record.activity.value if record is not None and record.activity is not None else None


def told(fleet: RunningFleet, agent: str, kind: str = "limit_") -> list[dict[str, Any]]:
    found = fleet.told()
    return [each for each in found if each["agent"] == agent and each["kind"].startswith(kind)]


def say(on_board: Crew, agent: str, text: str) -> None:
    reply = on_board.fleet.ask("send", agent=agent, text=text)
    assert reply["ok"], reply


def shortly_before_a_minute(least_s: float) -> float:
    """Programs that tell no seconds are believed up to the end of the minute: so that this is not long."""
    return ((time.time() + least_s) // 60 + 1) * 60 - 4


def kill_and_wait(fleet: RunningFleet, *programs: str) -> None:
    killed = {program: fleet.signal(program, signal.SIGKILL) for program in programs}
    for program, pid in killed.items():
        wait_until(lambda p=program, old=pid: supervision.pids(fleet.fleet).get(p) not in (None, old), program, 60)  # type: ignore[misc]


def test_every_program_is_held_and_goes_on_exactly_once(tmp_path: Path) -> None:
    with at_work(MEMBERS, tmp_path) as on_board:
        _nothing_comes_of_a_quoted_banner(on_board)
        # opencode tells of a limit only what is longer than a minute when its request arrives: it is asked by itself,
        # and with time to spare, not after ten others.
        its_own = time.time() + 105
        _limit(on_board, ["opencode"], its_own)
        until = shortly_before_a_minute(40)
        others = [agent for agent in MEMBERS if agent != "opencode"]
        _limit(on_board, others, until)
        _is_held_until(on_board, "opencode", its_own)
        for agent in others:
            _is_held_until(on_board, agent, until)
        for agent in RESUMED:
            _was_resumed_once(on_board, agent, until)
        for agent, prompt in BY_ITSELF.items():
            _went_on_by_itself(on_board, agent, prompt)
        for account in ("older", "newer", "codex"):
            one, two = (_sent_at(on_board, name) for name in MEMBERS if MEMBERS[name].account == account)
            assert abs(one - two) >= GAP_S - 1, "siblings take turns"


def test_the_same_with_monitor_spawner_and_broker_killed_in_between(tmp_path: Path) -> None:
    """While the limits hold, and once more while the agents are brought to go on."""
    with at_work({name: MEMBERS[name] for name in SIBLINGS}, tmp_path) as on_board:
        until = shortly_before_a_minute(30)
        _limit(on_board, SIBLINGS, until)
        for agent in SIBLINGS:
            _is_held_until(on_board, agent, until)
        for agent in SIBLINGS:
            if agent in SIBLINGS[:2]:
                kill_and_wait(on_board.fleet, "monitor", "spawner", "broker")
            _was_resumed_once(on_board, agent, until)


def test_gemini_goes_on_with_what_was_refused_by_its_own_menu(tmp_path: Path) -> None:
    """Left by another row it would forget what was asked. It does not tell when its limit lifts."""
    members = {"gemini": Member(Gemini(), "gemini", "per_day")}
    with at_work(members, tmp_path, unknown_s=25) as on_board:
        on_board.spend(["gemini"], until := time.time() + 20)
        say(on_board, "gemini", "hello")
        (hit,) = wait_until(lambda: told(on_board.fleet, "gemini"), "its limit", TOLD_S)
        assert (hit.get("resets_at"), hit["continues"]) == (None, False)
        over = _over(on_board, "gemini")
        assert (over["how"], over["tries"]) == ("resumed", 1), over
        assert on_board.models["gemini"].prompts == ["hello"]
        assert time.time() >= until
        wait_until(lambda: "All done." in on_board.fleet.screen("gemini"), "its answer", TOLD_S)


def _limit(on_board: Crew, agents: list[str], until: float) -> None:
    on_board.spend(agents, until)
    for agent in agents:
        say(on_board, agent, "hello")


def _nothing_comes_of_a_quoted_banner(on_board: Crew) -> None:
    for agent in ("session-one", "model-one", "codex-one"):
        say(on_board, agent, "DO-QUOTE limit")
    for agent in ("session-one", "model-one", "codex-one"):
        wait_until(lambda agent=agent: "3:05 PM" in on_board.fleet.screen(agent), f"{agent} quotes it", TOLD_S)  # type: ignore[misc]
        wait_until(lambda agent=agent: _doing(on_board.fleet, agent) == "waiting", f"{agent} is done", TOLD_S)  # type: ignore[misc]
        assert told(on_board.fleet, agent) == []


def _is_held_until(on_board: Crew, agent: str, until: float) -> None:
    (hit,) = wait_until(lambda: told(on_board.fleet, agent), f"the limit of {agent}", TOLD_S)
    resets_at = datetime.fromisoformat(hit["resets_at"]).timestamp()
    exact = MEMBERS[agent].cli == NEWER
    if agent == "opencode":
        assert resets_at == pytest.approx(until, abs=61), hit
    else:
        assert resets_at == (pytest.approx(until, abs=1.1) if exact else int(until) // 60 * 60), hit
    assert hit["scope"] == SCOPES[agent.partition("-")[0]], hit
    assert hit["continues"] is (agent in BY_ITSELF), hit
    members = on_board.members
    siblings = [name for name in members if name != agent and members[name].account == members[agent].account]
    assert hit["parked"] == siblings


def _was_resumed_once(on_board: Crew, agent: str, until: float) -> None:
    over = _over(on_board, agent)
    assert (over["how"], over["tries"]) == ("resumed", 1), over
    model = on_board.models[agent]
    assert model.prompts.count("continue") == 1
    assert model.received[-1].at >= until
    assert [each["kind"] for each in told(on_board.fleet, agent)] == ["limit_hit", "limit_lifted"]


def _went_on_by_itself(on_board: Crew, agent: str, prompt: str) -> None:
    assert _over(on_board, agent)["how"] == "by_itself"
    prompts = on_board.models[agent].prompts
    assert "continue" not in prompts
    assert len([text for text in prompts if prompt and prompt in text]) == bool(prompt)
    assert [each["kind"] for each in told(on_board.fleet, agent)] == ["limit_hit", "limit_lifted"]


def _over(on_board: Crew, agent: str) -> dict[str, Any]:
    def lifted() -> dict[str, Any] | None:
        return next(iter(told(on_board.fleet, agent, "limit_lifted")), None)

    try:
        return wait_until(lifted, f"the limit of {agent} is over", OVER_S)
    except AssertionError as error:
        explained = on_board.fleet.cli("explain", agent, code=None).stdout
        error.add_note(f"{told(on_board.fleet, agent)}\n{explained}\n{on_board.fleet.screen(agent)}")
        raise


def _sent_at(on_board: Crew, agent: str) -> float:
    return next(each.at for each in on_board.models[agent].received if each.text == "continue")
