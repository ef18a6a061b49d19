"""What the limits of single agents mean for others on their account."""

import json
from pathlib import Path
from typing import Any

import pytest

from services.monitor.limits.accounts import CONFIRMED_WITHIN_S, Accounts
from services.monitor.limits.hold import LimitHold
from shared.fleet import Fleet, load_fleet

NOW = 1_000.0
AGENTS: dict[str, Any] = {
    "one": {"account": "acme", "model": "opus-5"},
    "two": {"account": "acme", "model": "opus-5"},
    "three": {"account": "acme", "model": "sonnet"},
    "four": {"account": "acme"},
    "other": {"account": "else"},
}


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    path = tmp_path / "fleet.yaml"
    path.write_text(json.dumps({"agents": AGENTS, "services": {"web": {"argv": ["true"]}}}))
    return load_fleet(path)


def hold(model: str | None = None, resume_at: float = 2_000.0, **more: Any) -> LimitHold:
    known: dict[str, Any] = {"scope": "session", "spawn": "s1", "conversation": None, "since": 900.0}
    return LimitHold("acme", model, resets_at=1_900.0, exact_to_s=60, resume_at=resume_at, **{**known, **more})


def test_a_limit_of_the_account_concerns_all_on_it(fleet: Fleet) -> None:
    assert Accounts(fleet, {"one": hold()}).concerned("one") == ("two", "three", "four")


def test_a_limit_of_a_model_concerns_those_on_it(fleet: Fleet) -> None:
    assert Accounts(fleet, {"one": hold("opus")}).concerned("one") == ("two",)
    assert Accounts(fleet, {"four": hold("opus")}).concerned("four") == ("one", "two")


def test_agents_of_the_same_account_are_held_as_long_as_the_limit_lasts(fleet: Fleet) -> None:
    accounts = Accounts(fleet, {"one": hold()})
    assert accounts.why_held("one", "acme", NOW) == "its session limit is reached"
    assert "as one was told" in accounts.why_held("three", "acme", NOW)
    assert accounts.why_held("three", "acme", 2_000.0), "until one is known to go on"
    assert accounts.why_held("three", "acme", 2_000.0 + CONFIRMED_WITHIN_S) == ""
    assert accounts.why_held("other", "else", NOW) == ""
    assert Accounts(fleet, {"one": hold(stuck=True)}).why_held("three", "acme", NOW) == ""
    assert Accounts(fleet, {"one": hold("opus")}).why_held("three", "acme", NOW) == ""


def test_agents_of_an_account_go_on_one_after_the_other(fleet: Fleet) -> None:
    accounts = Accounts(fleet, {"one": hold(), "two": hold()})
    assert accounts.may_resume_at("two", NOW, 0.0, 15) == 0.0
    assert accounts.may_resume_at("two", NOW, NOW - 5, 15) == NOW + 10


def test_the_others_wait_until_the_first_is_known_to_go_on(fleet: Fleet) -> None:
    accounts = Accounts(fleet, {"one": hold(command="e1", asked_at=NOW - 5, tries=1), "two": hold()})
    assert accounts.may_resume_at("two", NOW, 0.0, 0) > NOW
    assert accounts.may_resume_at("one", NOW, 0.0, 0) == 0.0
    assert accounts.may_resume_at("two", NOW + 3_600, 0.0, 0) == 0.0, "who vanished holds nobody up"


def test_the_limit_of_an_agent_that_was_only_found_holds_no_other(fleet: Fleet) -> None:
    accounts = Accounts(fleet, {"stranger": hold()})
    assert (accounts.why_held("one", "acme", NOW), list(accounts.parks(NOW))) == ("", [])
    assert accounts.why_held("stranger", "acme", NOW) == "its session limit is reached"


def test_one_refusal_after_the_reset_delays_the_others(fleet: Fleet) -> None:
    again = hold(tries=1, since=2_010.0, resume_at=5_000.0)
    accounts = Accounts(fleet, {"one": again, "two": hold(), "three": hold("sonnet")})
    assert accounts.may_resume_at("two", 2_020.0, 0.0, 0) == 5_000.0
    assert accounts.may_resume_at("three", 2_020.0, 0.0, 0) == 0.0, "a limit of another kind"


def test_an_account_is_parked_until_the_last_of_its_limits(fleet: Fleet) -> None:
    accounts = Accounts(fleet, {"one": hold(resume_at=2_000), "two": hold(resume_at=3_000), "four": hold("opus")})
    parks = {(park.models, park.until) for park in accounts.parks(NOW)}
    assert parks == {(None, 3_000), (("", "opus"), 2_000)}
    assert list(accounts.parks(3_000)) == []
    assert list(Accounts(fleet, {"one": hold(stuck=True)}).parks(NOW)) == []
