"""What is done about one agent whose limit is reached, case by case, and over whole lives of pretended agents."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.monitor.limits.decision import (
    FAR_S,
    LIFTED_AFTER_WORK_S,
    MAX_UNTYPED,
    MIN_RETRY_S,
    SOURCES_AGREE_AFTER_S,
    TAKES_UP_WITHIN_S,
    LimitMemory,
    decide,
)
from services.monitor.limits.hold import LimitHold
from services.monitor.policies.memory import POLICIES, PolicyMemory
from services.monitor.policies.policy import AgentObservation, PolicyOutcome
from shared.contract.commands import Reply, Send
from shared.contract.events.activity import LimitHit, LimitLifted
from shared.contract.states import Activity
from shared.fleet import Agent
from shared.fleet.policies import LimitPolicy
from shared.runtime.moments import moved, mover
from tests.unit.monitor.policies.samples import NOW, claim, kinds, observation, only, reply, verbs

POLICY = LimitPolicy(slack_s=30, patience_s=100, gap_s=10)
LIMITED, WORKING, WAITING = Activity.LIMITED, Activity.WORKING, Activity.WAITING
RESET = NOW + 600
DUE = RESET + 60 + 30


def limited(**more: Any) -> AgentObservation:
    return observation(LIMITED, NOW - 10, **{"claim": claim(RESET), **more})


def hit(policy: LimitPolicy = POLICY, **more: Any) -> LimitMemory:
    return decide(LimitMemory(), limited(**more), policy).memory


def asked(policy: LimitPolicy = POLICY) -> tuple[LimitMemory, str]:
    outcome = decide(hit(policy), limited(now=DUE), policy)
    return outcome.memory, str(only(outcome).id)


def hold(limits: LimitMemory) -> LimitHold:
    assert limits.hold is not None
    return limits.hold


# --- hit ---


def test_a_limit_is_told_once_with_its_reset_and_what_will_be_done() -> None:
    first = decide(LimitMemory(), limited(), POLICY)
    (told,) = first.events
    assert isinstance(told, LimitHit)
    assert (told.account, told.scope) == ("acme", "session")
    assert told.resets_at is not None
    assert told.resets_at.timestamp() == RESET
    assert told.resumes_at is not None
    assert told.resumes_at.timestamp() == DUE
    assert first.look_at == DUE
    again = decide(first.memory, limited(now=NOW + 1), POLICY)
    assert (kinds(again), verbs(again), again.look_at) == ([], [], DUE)


def test_a_limit_is_told_only_after_all_sources_had_time_to_speak() -> None:
    young = decide(LimitMemory(), limited(claim=claim(RESET, at=NOW - 0.1)), POLICY)
    assert (kinds(young), young.look_at) == ([], NOW - 0.1 + SOURCES_AGREE_AFTER_S)


def test_without_a_known_reset_the_agent_is_asked_after_a_while() -> None:
    after = hit(claim=claim(None))
    assert hold(after).resume_at == NOW - 10 + POLICY.unknown_s
    later = decide(after, limited(claim=claim(None), now=NOW + POLICY.unknown_s), POLICY)
    assert verbs(later) == ["send"]


def test_a_limit_that_was_over_is_not_hit_again_by_its_old_banner() -> None:
    assert kinds(decide(LimitMemory(over_at=NOW - 5), limited(), POLICY)) == []
    assert kinds(decide(LimitMemory(over_at=NOW - 15), limited(), POLICY)) == ["limit_hit"]


def test_a_reset_that_becomes_known_later_counts() -> None:
    after = hit(claim=claim(None))
    outcome = decide(after, limited(now=NOW + 1), POLICY)
    assert (kinds(outcome), hold(outcome.memory).resume_at) == (["limit_hit"], DUE)


def test_a_reset_to_the_second_replaces_one_to_the_minute_without_an_event() -> None:
    exact = claim(RESET + 16, exact_to_s=1.0)
    outcome = decide(hit(), limited(claim=exact, now=NOW + 1), POLICY)
    assert (kinds(outcome), hold(outcome.memory).resume_at) == ([], RESET + 16 + 1 + 30)
    other = claim(RESET + 86, exact_to_s=1.0)
    assert hold(decide(hit(), limited(claim=other, now=NOW + 1), POLICY).memory).resets_at == RESET


@pytest.mark.parametrize("drift", [-90.0, 30.0, 100.0])
def test_a_countdown_that_is_not_exact_is_no_new_limit(drift: float) -> None:
    words = claim(RESET + drift, said="it tries again in 9m")
    outcome = decide(hit(), limited(claim=words, now=NOW + 1), POLICY)
    assert (kinds(outcome), hold(outcome.memory).resets_at) == ([], RESET)


def test_a_banner_that_is_read_again_on_another_day_is_the_same_limit() -> None:
    """Its words name a time of day: after a restart they might be read as tomorrow's."""
    outcome = decide(hit(), limited(claim=claim(RESET + 86_400, at=NOW - 9), now=DUE), POLICY)
    assert (kinds(outcome), verbs(outcome)) == ([], ["send"])


# --- bringing it to go on ---


def test_at_the_reset_the_agent_is_asked_once_to_go_on() -> None:
    after, command_id = asked()
    for later in (1, 5, 20):
        outcome = decide(after, limited(now=DUE + later), POLICY)
        assert (kinds(outcome), verbs(outcome)) == ([], [])
        after = outcome.memory
    arrived = decide(after, limited(now=DUE + 21, replies=reply(command_id)), POLICY)
    assert hold(arrived.memory).sent_at == DUE + 21


def test_the_prompt_is_typed_only_into_its_own_session_while_it_is_idle_and_soon() -> None:
    command = only(decide(hit(), limited(now=DUE), POLICY))
    assert isinstance(command, Send)
    assert (command.spawn, command.when, command.leaves_menu, command.text) == ("s1", "if_idle", True, "continue")
    assert command.expires is not None
    assert command.expires.timestamp() <= DUE + 60


def test_an_agent_that_works_for_a_while_goes_on() -> None:
    after, _ = asked()
    works = observation(WORKING, DUE + 1, now=DUE + 2)
    early = decide(after, works, POLICY)
    assert kinds(early) == []
    (told,) = decide(early.memory, replace(works, now=DUE + 1 + LIFTED_AFTER_WORK_S), POLICY).events
    assert isinstance(told, LimitLifted)
    assert (told.how, told.tries) == ("resumed", 1)


def test_a_turn_that_was_not_refused_lifts_the_limit() -> None:
    after, _ = asked()
    assert kinds(decide(after, observation(WAITING, DUE + 1, now=DUE + 2), POLICY)) == [], "it may be between two tools"
    outcome = decide(after, observation(WAITING, DUE + 1, now=DUE + 4), POLICY)
    assert (kinds(outcome), outcome.memory.hold) == (["limit_lifted"], None)


def test_a_banner_that_is_hidden_for_a_moment_is_no_turn() -> None:
    early = observation(WAITING, NOW + 100, now=NOW + 110, is_weak=True)
    assert kinds(decide(hit(), early, POLICY)) == []
    worked = decide(hit(), observation(WORKING, NOW + 50, now=NOW + 51), POLICY).memory
    assert kinds(decide(worked, early, POLICY)) == ["limit_lifted"]
    refused = decide(worked, limited(claim=claim(RESET, at=NOW + 52), now=NOW + 53), POLICY).memory
    assert kinds(decide(refused, early, POLICY)) == [], "what it worked on was refused"


def test_an_agent_that_is_surely_not_limited_any_more_is_not_asked() -> None:
    waits = observation(WAITING, NOW + 100, now=DUE)
    assert (verbs(decide(hit(), waits, POLICY)), kinds(decide(hit(), waits, POLICY))) == ([], ["limit_lifted"])
    assert verbs(decide(hit(), replace(waits, is_weak=True), POLICY)) == ["send"]


def test_an_agent_that_is_idle_since_before_its_prompt_did_not_go_on() -> None:
    after, _ = asked()
    assert kinds(decide(after, observation(WAITING, DUE - 1, now=DUE + 2), POLICY)) == []


@pytest.mark.parametrize(
    ("began", "continues", "how"),
    [
        (RESET + 5, True, "by_itself"),
        (RESET - 60, True, "by_itself"),
        (NOW + 100, True, "by_somebody"),
        (RESET + 5, False, "by_somebody"),
    ],
)
def test_the_event_says_whether_the_agent_went_on_by_itself_or_by_somebody(
    began: float, continues: bool, how: str
) -> None:
    after = hit(claim=claim(RESET, continues=continues))
    over_at = max(began, RESET if how == "by_itself" else 0.0) + LIFTED_AFTER_WORK_S
    assert kinds(decide(after, observation(WORKING, began, now=over_at - 0.1), POLICY)) == []
    (told,) = decide(after, observation(WORKING, began, now=over_at), POLICY).events
    assert isinstance(told, LimitLifted)
    assert (told.how, told.tries) == (how, 0)


def test_an_agent_that_continues_by_itself_is_left_alone_until_patience_ends() -> None:
    after = hit(claim=claim(RESET, continues=True))
    says_so = limited(claim=claim(RESET, continues=True), now=DUE)
    waits = decide(after, says_so, POLICY)
    assert (verbs(waits), waits.look_at) == ([], DUE + POLICY.patience_s)
    assert verbs(decide(waits.memory, replace(says_so, now=DUE + POLICY.patience_s), POLICY)) == ["send"]


def test_an_agent_whose_continuation_was_cancelled_is_resumed_at_the_reset() -> None:
    after = hit(claim=claim(RESET, continues=True))
    assert verbs(decide(after, limited(now=DUE), POLICY)) == ["send"]


def test_an_agent_waits_for_others_of_its_account() -> None:
    outcome = decide(hit(), limited(now=DUE), POLICY, DUE + 10)
    assert (verbs(outcome), outcome.look_at) == ([], DUE + 10)


@pytest.mark.parametrize("found", [{"declared": None}, {}])
def test_with_resume_off_nothing_is_typed(found: dict[str, Any]) -> None:
    policy = POLICY if found else LimitPolicy(resume=False)
    after = hit(policy, **found)
    outcome = decide(after, limited(now=RESET + 200, **found), policy)
    (told,) = outcome.events
    assert isinstance(told, LimitLifted)
    assert (verbs(outcome), told.how, outcome.memory.hold) == ([], "left", None)
    assert kinds(decide(outcome.memory, limited(now=RESET + 300, **found), policy)) == []


# --- what goes wrong ---


def test_an_agent_that_is_refused_again_is_asked_later_each_time_and_then_is_stuck() -> None:
    limits, now = hit(), DUE
    told: list[str] = []
    for tries in range(1, POLICY.tries + 1):
        outcome = decide(limits, limited(now=now, claim=hold(limits) and _again(limits, now)), POLICY)
        command_id = str(only(outcome).id)
        assert hold(outcome.memory).tries == tries
        refused = claim(RESET, at=now + 2)
        again = decide(outcome.memory, limited(claim=refused, now=now + 3, replies=reply(command_id)), POLICY)
        assert (kinds(again), verbs(again)) == ([], [])
        limits, now = again.memory, hold(again.memory).resume_at
        assert now >= DUE + MIN_RETRY_S
    stuck = decide(limits, limited(now=now, claim=_again(limits, now)), POLICY)
    told += kinds(stuck)
    assert (told, verbs(stuck)) == (["limit_stuck"], [])
    assert kinds(decide(stuck.memory, limited(now=now + 9_999), POLICY)) == []
    works = observation(WORKING, now + 10_000, now=now + 10_000 + LIFTED_AFTER_WORK_S)
    assert kinds(decide(stuck.memory, works, POLICY)) == ["limit_lifted"], "a person mended it"


def _again(limits: LimitMemory, now: float) -> Any:
    return claim(RESET, at=hold(limits).since) if now else None


def test_a_limit_that_is_told_anew_for_hours_holds_until_then() -> None:
    after, _ = asked()
    far = claim(DUE + 7_200, at=DUE + 2)
    outcome = decide(after, limited(claim=far, now=DUE + 3), POLICY)
    assert kinds(outcome) == ["limit_hit"]
    assert (hold(outcome.memory).tries, hold(outcome.memory).resume_at) == (0, DUE + 7_200 + 60 + 30)


def test_a_prompt_that_was_not_typed_is_no_try_and_is_typed_later() -> None:
    limits, now = hit(), DUE
    for refusals in range(1, MAX_UNTYPED + 1):
        outcome = decide(limits, limited(now=now), POLICY)
        command_id = str(only(outcome).id)
        refused = decide(outcome.memory, limited(now=now + 1, replies=reply(command_id, ok=False)), POLICY).memory
        assert (hold(refused).command, hold(refused).tries, hold(refused).refusals) == ("", 0, refusals)
        limits, now = refused, hold(refused).resume_at
    assert kinds(decide(limits, limited(now=now), POLICY)) == ["limit_stuck"]


def test_a_prompt_whose_reply_is_lost_is_sent_again() -> None:
    after, _ = asked()
    assert hold(decide(after, limited(now=DUE + 500), POLICY).memory).command
    assert hold(decide(after, limited(now=DUE + 700), POLICY).memory).command == ""


def test_a_prompt_that_is_not_taken_up_counts_as_a_try() -> None:
    after, command_id = asked()
    after = decide(after, limited(now=DUE + 1, replies=reply(command_id)), POLICY).memory
    outcome = decide(after, limited(now=DUE + 2 + TAKES_UP_WITHIN_S, replies=reply(command_id)), POLICY)
    assert (hold(outcome.memory).command, hold(outcome.memory).tries) == ("", 1)


def test_an_agent_that_is_refused_minutes_later_has_not_gone_on() -> None:
    """Some programs try for long before they say so."""
    limits, now = hit(), DUE
    told: list[str] = []
    for _ in range(POLICY.tries):
        outcome = decide(limits, limited(now=now), POLICY)
        only(outcome)
        lifted = decide(outcome.memory, observation(WORKING, now + 1, now=now + 1 + LIFTED_AFTER_WORK_S), POLICY)
        told += kinds(lifted)
        again = limited(claim=claim(RESET, at=now + 30), now=now + 32)
        hit_again = decide(lifted.memory, again, POLICY)
        told += kinds(hit_again)
        limits, now = hit_again.memory, hold(hit_again.memory).resume_at
    assert kinds(decide(limits, limited(now=now), POLICY)) == ["limit_stuck"]
    assert told == ["limit_lifted", "limit_hit"] * POLICY.tries


def test_another_limit_takes_the_place_of_the_first() -> None:
    after = decide(hit(), limited(now=DUE), POLICY).memory
    week = claim(DUE + 600_000, at=DUE + 2, scope="Opus", said="your Opus limit")
    outcome = decide(after, limited(claim=week, now=DUE + 3), POLICY)
    assert (hold(outcome.memory).scope, hold(outcome.memory).model) == ("Opus", "opus")


def test_the_same_words_on_a_screen_that_is_read_again_are_the_same_limit() -> None:
    """Only a screen tells: after a restart its words seem to be of now, and a time of day of tomorrow."""
    shown = claim(RESET, by_file=False)
    tomorrow = claim(RESET + 86_400, at=DUE - 5, by_file=False)
    outcome = decide(hit(claim=shown), limited(claim=tomorrow, now=DUE), POLICY)
    assert (kinds(outcome), verbs(outcome)) == ([], ["send"])
    left = LimitPolicy(resume=False)
    over = decide(hit(left, claim=shown), limited(claim=shown, now=RESET + 200), left).memory
    assert kinds(decide(over, limited(claim=claim(RESET + 86_400, at=RESET + 300, by_file=False)), left)) == []
    worked = decide(over, observation(WORKING, RESET + 400, now=RESET + 401), left).memory
    later = limited(claim=claim(RESET + 86_400, at=RESET + 500, by_file=False), now=RESET + 510)
    assert kinds(decide(worked, later, left)) == ["limit_hit"]


# --- another session ---


def test_after_a_reboot_the_new_session_gets_the_prompt() -> None:
    after = hit(claim=claim(RESET, continues=True))
    fresh = observation(WAITING, DUE + 30, spawn="s2", now=DUE + 31)
    assert verbs(decide(after, fresh, POLICY)) == []
    ready = decide(after, replace(fresh, now=DUE + 40), POLICY)
    assert (verbs(ready), getattr(only(ready), "spawn", "")) == (["send"], "s2")
    done = decide(
        decide(ready.memory, replace(fresh, now=DUE + 41, replies=reply(str(only(ready).id))), POLICY).memory,
        replace(fresh, since=DUE + 41, now=DUE + 44, replies=reply(str(only(ready).id))),
        POLICY,
    )
    assert kinds(done) == ["limit_lifted"]


def test_another_conversation_gets_no_prompt_for_the_limit() -> None:
    outcome = decide(hit(), observation(WAITING, DUE, spawn="s2", conversation="c2", now=DUE + 40), POLICY)
    assert (kinds(outcome), verbs(outcome)) == (["limit_lifted"], [])


def test_a_new_session_that_is_limited_again_is_held() -> None:
    outcome = decide(hit(), limited(spawn="s2", claim=claim(RESET + 3_600, at=DUE), now=DUE + 2), POLICY)
    assert (kinds(outcome), hold(outcome.memory).spawn) == (["limit_hit"], "s2")


# --- whole lives ---


@dataclass
class Pretended:
    """An agent with a real limit behind it, and a spawner that types what is asked."""

    reset: float
    by_itself: float | None
    """So long after the reset it goes on by itself, if it does."""
    delay: float
    """The spawner takes so long."""
    works: float = 20.0
    prompts: list[float] = field(default_factory=list)
    refused: int = 0
    turn: tuple[float, float] | None = None
    said_at: float = NOW - 10
    queue: dict[str, float] = field(default_factory=dict)
    replies: dict[str, Reply] = field(default_factory=dict)

    def observation(self, now: float) -> AgentObservation:
        for command_id, at in list(self.queue.items()):
            if now >= at:
                del self.queue[command_id]
                idle = self.turn is None or not self.turn[0] <= now < self.turn[1]
                self.replies |= reply(command_id, ok=idle)
                if idle:
                    self._prompt(now)
        if self.by_itself is not None and self.turn is None and now >= self.reset + self.by_itself:
            self._prompt(now)
        if self.turn is not None and now < self.turn[1]:
            return observation(WORKING, self.turn[0], now=now, replies=self.replies)
        if self.turn is not None:
            return observation(WAITING, self.turn[1], now=now, replies=self.replies)
        shown = (self.reset // 60) * 60
        words = claim(shown, at=self.said_at, continues=self.by_itself is not None)
        return observation(LIMITED, self.said_at, now=now, claim=words, replies=self.replies)

    def _prompt(self, now: float) -> None:
        self.prompts.append(now)
        if now < self.reset:
            self.refused += 1
            self.said_at = now
        else:
            self.turn = (now, now + self.works)


@given(
    reset_in=st.integers(60, 90_000),
    by_itself=st.none() | st.floats(0, 60),
    delay=st.floats(0, 20),
    looks=st.lists(st.floats(0.3, 30), min_size=5, max_size=30),
    restarts=st.sets(st.integers(0, 100)),
)
@settings(max_examples=150, deadline=None)
def test_every_agent_goes_on_with_one_prompt_at_most(
    reset_in: int, by_itself: float | None, delay: float, looks: list[float], restarts: set[int]
) -> None:
    """Whenever it is looked at, however slow the spawner is, and whenever the monitor is restarted in between."""
    agent = Pretended(NOW + reset_in, by_itself, delay)
    limits, now, told = LimitMemory(), NOW, list[str]()
    for place in range(400):
        outcome = decide(limits, agent.observation(now), POLICY)
        told += kinds(outcome)
        for command, _ in outcome.commands:
            agent.queue[str(command.id)] = now + delay
        limits = _restarted(outcome) if place in restarts else outcome.memory
        if told[-1:] == ["limit_lifted"]:
            break
        step = looks[place % len(looks)]
        now = max(now + step, min(agent.reset - 5, outcome.look_at or now + step))
    assert told == ["limit_hit", "limit_lifted"]
    assert agent.refused == 0
    assert len(agent.prompts) == 1


@given(
    slow=st.floats(0, 40),
    resets=st.lists(st.floats(-60, 3_000), min_size=1, max_size=6),
    screen_only=st.booleans(),
    looks=st.lists(st.floats(0.4, 5), min_size=5, max_size=20),
    restarts=st.sets(st.integers(0, 300)),
)
@settings(max_examples=150, deadline=None)
def test_an_agent_that_is_always_refused_is_asked_a_bounded_number_of_times(
    slow: float, resets: list[float], screen_only: bool, looks: list[float], restarts: set[int]
) -> None:
    """However long it tries before it says so, and whatever it says of its reset each time."""
    limits, now, told = LimitMemory(), NOW, list[str]()
    prompts, works_until, said_at, promised = 0, 0.0, NOW - 10, NOW + 60
    near = [each for each in resets if each < FAR_S] or [0.0]  # one that is far off would be a new limit
    replies: dict[str, Reply] = {}
    for place in range(1_500):
        if works_until and now >= works_until:
            works_until, said_at, promised = 0.0, now, now + near[prompts % len(near)]
        words = claim(promised, at=said_at, by_file=not screen_only, said=f"resets at {promised}")
        seen = observation(LIMITED, said_at, now=now, claim=words, replies=replies)
        if works_until:
            seen = observation(WORKING, works_until - slow, now=now, replies=replies)
        outcome = decide(limits, seen, POLICY)
        told += kinds(outcome)
        for command, _ in outcome.commands:
            replies |= reply(str(command.id))
            prompts, works_until = prompts + 1, now + slow
        limits = _restarted(outcome) if place in restarts else outcome.memory
        if "limit_stuck" in told:
            break
        step = looks[place % len(looks)]
        now = max(now + step, min(outcome.look_at or now + step, now + 1_000) if not works_until else now + step)
    assert told[-1] == "limit_stuck"
    assert prompts <= POLICY.tries


def _restarted(outcome: PolicyOutcome[LimitMemory]) -> LimitMemory:
    return POLICIES.load(json.loads(json.dumps(POLICIES.dump(PolicyMemory(outcome.memory))))).limits


def test_an_agent_that_was_only_found_is_not_managed() -> None:
    assert not observation(declared=None).is_managed
    assert observation(declared=Agent()).is_managed


# --- the clock is set ---


@pytest.mark.parametrize("by", [-7200, 7200])
def test_a_reset_is_by_the_clock_and_a_wait_by_the_time_that_passes(by: int) -> None:
    held = hit().hold
    after = moved(LimitMemory, hit(), mover(by)).hold
    assert held is not None
    assert (after.since, after.resets_at, after.resume_at) == (held.since + by, held.resets_at, held.resume_at)
    unknown = hit(claim=claim(None))
    assert unknown.hold is not None
    assert moved(LimitMemory, unknown, mover(by)).hold.resume_at == unknown.hold.resume_at + by
