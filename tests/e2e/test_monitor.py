"""What agents are doing, as anybody can see it: real tmux, real broker, every service as a process.

The agents of one fleet are shared out among the tests, each of which has its own.
"""

import json
from collections.abc import Iterator

import pytest

from tests.e2e.watching import (
    call_a_hook,
    dialog,
    events,
    is_doing,
    program,
    say,
    story,
    told,
    wait_for_story,
    without_monitor,
)
from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import RunningFleet, Watcher

RULED = {"backends": {"ruled": {"like": "demo"}}}
AGENTS: dict[str, dict[str, object]] = {
    **{name: {} for name in ("worker", "asker", "refuser", "victim", "leaver", "hooked", "alone")},
    "ruled": {"backend": "ruled"},
    **{name: {"enabled": False} for name in ("late", "never")},
}
SOON_S = 5.0
"""What takes two seconds at most, on a machine that has other things to do."""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFleet]:
    running = RunningFleet(tmp_path_factory.mktemp("fleet"), AGENTS, **RULED, start={"at_once": 20, "gap_s": 0.01})
    try:
        running.up()
        yield running
    finally:
        running.end()


@pytest.fixture
def watcher(fleet: RunningFleet) -> Watcher:
    return fleet.watch()


# --- the story of an agent ---


def test_work_is_told_when_it_begins_and_ends(fleet: RunningFleet, watcher: Watcher) -> None:
    spawn = is_doing(fleet, "worker", "waiting")
    say(fleet, "worker", "work 3")
    (*_, works, waits) = wait_for_story(watcher, "worker", "working", "waiting", spawn=spawn)
    assert (works["was"], works["decided_by"], works["rule"]) == ("waiting", "screen", "working")
    assert works["since"] < waits["since"]
    (state,) = wait_until(
        lambda: [
            doc["data"] for doc in watcher.documents("agent/worker/state")[-1:] if doc["data"]["activity"] == "waiting"
        ],
        "the retained state",
    )
    record = wait_until(
        lambda: next((r for r in [fleet.records()["worker"]] if r.activity == "waiting"), None), "the record"
    )
    assert record.activity_since is not None
    for name in ("activity_reason", "decided_by"):
        assert state[name] == getattr(record, name) != ""
    assert record.activity_since.isoformat()[:19] == state["activity_since"][:19] == waits["since"][:19]


def test_a_question_is_told_with_its_dialog_and_answered_once(fleet: RunningFleet, watcher: Watcher) -> None:
    spawn = is_doing(fleet, "asker", "waiting")
    dialog(fleet, "asker", "ask to write x")
    (*_, asked) = wait_for_story(watcher, "asker", "needs_approval", "approval_needed", spawn=spawn)
    assert "Do you allow this? ask to write x" in asked["dialog"]
    shown = json.loads(fleet.cli("status", "--doing", "needs_approval", "--json").stdout)["agents"]
    assert "asker" in shown
    assert "worker" not in shown
    refused = fleet.ask("approve", agent="asker", fingerprint="0" * 16)
    assert not refused["ok"]
    assert "dialog" in refused["said"]
    assert "Do you allow this? ask to write x" in fleet.screen("asker")
    assert fleet.ask("approve", agent="asker", fingerprint=asked["fingerprint"])["ok"]
    is_doing(fleet, "asker", "waiting", SOON_S)
    assert "* allowed" in fleet.screen("asker")
    assert story(watcher, "asker", spawn).count("approval_needed") == 1
    for verb in ("approve", "deny"):
        nothing = fleet.ask(verb, agent="asker", fingerprint=asked["fingerprint"])
        assert (nothing["ok"], nothing["said"]) == (False, "there is no dialog on the agent's screen to answer")
    dialog(fleet, "asker", "ask to write x")
    wait_for_story(watcher, "asker", "needs_approval", "approval_needed", spawn=spawn)
    assert story(watcher, "asker", spawn).count("approval_needed") == 2, "the same question again is another"
    assert fleet.ask("deny", agent="asker")["ok"]
    is_doing(fleet, "asker", "waiting", SOON_S)
    assert "* refused" in fleet.screen("asker")


def test_a_killed_program_has_failed(fleet: RunningFleet, watcher: Watcher) -> None:
    spawn = is_doing(fleet, "victim", "waiting")
    program(fleet, "victim").kill()
    (*_, failed) = wait_for_story(watcher, "victim", "failed", spawn=spawn)
    assert failed["decided_by"] == "processes"
    fleet.wait_for_new_session("victim", spawn)
    is_doing(fleet, "victim", "waiting")
    assert story(watcher, "victim", spawn)[-1] == "failed"


def test_a_program_that_ends_well_is_done(fleet: RunningFleet, watcher: Watcher) -> None:
    spawn = is_doing(fleet, "leaver", "waiting")
    pane = fleet.pane("leaver")
    assert pane is not None
    fleet.tmux.press(pane.pane_id, ["C-c"], spawn=spawn)
    wait_for_story(watcher, "leaver", "done", spawn=spawn)
    assert "failed" not in story(watcher, "leaver", spawn)


# --- hooks, and a monitor that dies ---


def test_calls_of_hooks_count_and_a_restarted_monitor_reports_nothing_twice(
    fleet: RunningFleet, watcher: Watcher
) -> None:
    spawn = is_doing(fleet, "hooked", "waiting")
    is_doing(fleet, "refuser", "waiting")
    dialog(fleet, "refuser", "ask to delete all")
    wait_for_story(watcher, "refuser", "needs_approval", "approval_needed")
    call_a_hook(fleet, spawn, "UserPromptSubmit")
    (*_, works) = wait_for_story(watcher, "hooked", "working", spawn=spawn)
    assert (works["decided_by"], works["reason"]) == ("hooks", "a prompt was sent to it")
    before = [*events(watcher, "hooked"), *events(watcher, "refuser")]
    with without_monitor(fleet):
        call_a_hook(fleet, spawn, "Stop")
    (*_, waits) = wait_for_story(watcher, "hooked", "working", "waiting", spawn=spawn)
    assert (waits["decided_by"], waits["was"]) == ("hooks", "working")
    assert [*events(watcher, "hooked")[:-1], *events(watcher, "refuser")] == before
    spool = fleet.fleet.home / "hooks" / "spool"
    wait_until(lambda: not list(spool.glob("[0-9]*")), "what was heard is removed")
    assert "refuser was told no" in fleet.cli("deny", "refuser").stdout


# --- rules ---


def declare(fleet: RunningFleet, **rule: str) -> None:
    declared = json.loads(fleet.path.read_text())
    declared["backends"]["ruled"] = {"like": "demo", **({"screen": {"signs": {"mine": rule}}} if rule else {})}
    fleet.path.write_text(json.dumps(declared))


def test_an_edited_rule_counts_while_all_runs(fleet: RunningFleet) -> None:
    is_doing(fleet, "ruled", "waiting")
    mine = {"says": "limited", "below": "box", "match": "^  demo agent · enter to send$"}
    declare(fleet, **mine)
    is_doing(fleet, "ruled", "limited", SOON_S)
    declare(fleet, **{**mine, "says": "nonsense"})
    said = wait_until(lambda: next(iter(_complaints(fleet)), None), "the fault is told")
    assert "ruled.screen.signs.mine.says" in said
    explained = fleet.ask("explain", agent="ruled")["result"]
    assert (explained["status"], explained["decided_by"]) == ("limited", "screen")
    declare(fleet)
    is_doing(fleet, "ruled", "waiting", SOON_S)


def _complaints(fleet: RunningFleet) -> list[str]:
    said = fleet.cli("status", code=None).stdout
    return [line for line in said.splitlines() if "the last good one stays in force" in line]


# --- explaining ---


def test_explain_answers_about_watched_agents_and_says_why_another_is_not(fleet: RunningFleet) -> None:
    is_doing(fleet, "worker", "waiting")
    text = fleet.cli("explain", "worker").stdout
    assert text.startswith("worker (demo) is waiting for ")
    assert [line.split()[0] for line in text.splitlines() if line.endswith(" nothing")][:2] == ["hooks", "live_file"]
    found = json.loads(fleet.cli("explain", "worker", "--json").stdout)
    believed = [each for each in found["evidence"] if each["believed"]]
    assert [each["source"] for each in believed] == [found["decided_by"]]
    assert "there is no agent 'nobody'" in fleet.cli("explain", "nobody", code=1).stderr
    assert fleet.ask("explain", agent="never")["said"] == "never was not started yet"


# --- without a broker ---


@pytest.mark.long
def test_everything_works_without_a_broker(fleet: RunningFleet) -> None:
    """By polling, through the journal and the registry file."""
    is_doing(fleet, "alone", "waiting")
    with fleet.broker_down():
        fleet.cli("send", "alone", "ask to write x")
        is_doing(fleet, "alone", "needs_approval")
        explained = json.loads(fleet.cli("explain", "alone", "--json").stdout)
        assert (explained["status"], explained["decided_by"]) == ("needs_approval", "screen")
        fleet.cli("spawn", "late")
        is_doing(fleet, "late", "waiting")
        assert "alone was told yes" in fleet.cli("approve", "alone").stdout
        is_doing(fleet, "alone", "waiting")
        fleet.cli("stop", "late")
        # Without a broker the registrar learns of the stop at its next poll.
        stopped = "late does not run: stopped since"
        wait_until(lambda: stopped in fleet.cli("explain", "late", code=1).stderr, "a record of the stop")
    assert told(fleet, "alone")[-3:] == ["needs_approval", "approval_needed", "waiting"]
    assert told(fleet, "late")[-1] == "waiting"
