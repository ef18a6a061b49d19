"""Comments on one card: the same once, never too many, none while nobody wants them, and nothing lost."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.board.comments import (
    HELD_BACK,
    KEPT_FOR_S,
    KEPT_PER_CARD,
    LONGEST_TEXT,
    MOST_ACTIONS_IN_A_MINUTE,
    MOST_IN_A_MINUTE,
    MOST_IN_AN_HOUR,
    Discussion,
    room_at,
)
from services.board.memory import CARDS, COMMENTS, CardComments, CardMemory
from services.board.news import CardNews
from shared.contract.envelope import Urgency
from tests.unit.board.samples import NOW, news

NEW = Discussion(CardMemory())
MOVED, RESOLVED = news("drift.moved", "a"), news("drift.resolved", "r", ends="drift.moved", urgency=Urgency.LOG)
URGENT = news("activity.approval_needed", urgency=Urgency.ACTION)


def observed(*given: CardNews, start: Discussion = NEW, every_s: float = 20.0) -> Discussion:
    """All of them, so seldom that no limit is reached."""
    for place, each in enumerate(given):
        start = start.observe(each, NOW + place, NOW + place * every_s)
    return start


def flood(count: int, start: Discussion = NEW, at: float = NOW, *, urgency: Urgency = Urgency.NEWS) -> Discussion:
    for place in range(count):
        start = start.observe(news(f"activity.k{place % 3}", urgency=urgency), at, at)
    return start


def abouts(discussion: Discussion) -> list[str]:
    return [each.about for each in discussion.comments]


# --- one comment ---


def test_news_become_a_comment_with_all_that_they_say() -> None:
    told = news("drift.moved", "a", "it moved", recorded="/a", found="/b")
    discussion = NEW.observe(told, NOW - 5, NOW)
    (comment,) = discussion.new
    assert discussion.comments == discussion.new
    assert (comment.number, comment.time, comment.kind, comment.by) == (1, NOW - 5, "observed", "muster")
    assert (comment.text, comment.recorded, comment.found, comment.about) == ("it moved", "/a", "/b", "drift.moved")
    assert (comment.tone, comment.urgency, comment.times) == (told.tone, told.urgency, 1)
    assert (discussion.memory.comments, discussion.memory.notable) == (1, 1)
    assert observed(RESOLVED).memory.notable == 0, "it is good to know, and no more"


# --- the same again ---


def test_the_same_again_is_counted_and_no_new_comment() -> None:
    again = observed(MOVED, MOVED, MOVED)
    assert [each.times for each in again.comments] == [3]
    assert (again.memory.comments, len(again.new)) == (1, 1)


def test_what_changed_is_a_new_comment() -> None:
    changed = observed(MOVED, news("drift.moved", "b"), MOVED)
    assert [(each.same, each.times) for each in changed.comments] == [("a", 1), ("b", 1), ("a", 1)]


def test_others_in_between_make_no_difference() -> None:
    discussion = observed(MOVED, news("drift.missing", "x")).say("hm", "ada", NOW)
    discussion = discussion.observe(MOVED, NOW, NOW + 50)
    assert [each.times for each in discussion.comments] == [2, 1, 1]


def test_a_drift_that_is_over_and_comes_again_is_news_each_time() -> None:
    there_and_back = observed(*[MOVED, RESOLVED] * 4)
    assert abouts(there_and_back) == ["drift.moved", "drift.resolved"] * 4


def test_the_end_of_another_drift_ends_only_that() -> None:
    other = news("drift.resolved", "o", ends="drift.stale_id", urgency=Urgency.LOG)
    assert [each.times for each in observed(MOVED, other, MOVED).comments] == [2, 1]
    assert [each.times for each in observed(MOVED, other, RESOLVED, other).comments] == [1, 1, 1, 1]


def test_what_has_nothing_to_be_told_apart_by_is_always_new() -> None:
    assert len(observed(news("activity.stalled"), news("activity.stalled")).new) == 2


def test_after_a_time_without_comments_a_drift_is_told_anew() -> None:
    stopped = observed(MOVED).say("stop", "ada", NOW).observe(RESOLVED, NOW, NOW)
    assert len(stopped.say("resume", "ada", NOW).observe(MOVED, NOW, NOW + 99).comments) == 4
    held_back = flood(MOST_IN_A_MINUTE - 1, NEW.observe(MOVED, NOW, NOW)).observe(RESOLVED, NOW, NOW)
    assert held_back.memory.held_back == {"drift.resolved": 1}
    again = held_back.observe(MOVED, NOW, NOW)
    assert again.memory.held_back == {"drift.resolved": 1, "drift.moved": 1}, "it may have been over"
    assert abouts(again.sum_up(NOW + 61).observe(MOVED, NOW, NOW + 62))[-2:] == [HELD_BACK, "drift.moved"]


# --- too many ---


def test_one_too_many_in_a_minute_is_held_back() -> None:
    full = flood(MOST_IN_A_MINUTE)
    assert len(full.new) == MOST_IN_A_MINUTE
    more = flood(3, full, NOW + 59)
    assert len(more.new) == MOST_IN_A_MINUTE
    assert more.memory.held_back == {"activity.k0": 1, "activity.k1": 1, "activity.k2": 1}
    assert len(flood(1, full, NOW + 60).new) == MOST_IN_A_MINUTE + 1


def test_what_was_held_back_is_summed_up_in_one_comment() -> None:
    held = flood(MOST_IN_A_MINUTE + 5)
    assert held.sum_up(NOW + 59) == held
    assert room_at(held.memory) == NOW + 60
    summed = held.sum_up(NOW + 60)
    comment = summed.comments[-1]
    assert comment.about == HELD_BACK
    assert comment.text == "held back, because there were too many: 2 × k1, 2 × k2, 1 × k0"
    assert summed.memory.held_back == {}
    assert summed.sum_up(NOW + 120) == summed, "once"


def test_what_a_person_must_act_on_passes_up_to_a_limit_of_its_own() -> None:
    full = flood(MOST_IN_A_MINUTE)
    assert full.observe(URGENT, NOW, NOW).memory.held_back == {}
    many = flood(MOST_ACTIONS_IN_A_MINUTE + 4, urgency=Urgency.ACTION)
    assert len(many.new) == MOST_ACTIONS_IN_A_MINUTE
    assert sum(many.memory.held_back.values()) == 4


def test_an_hour_has_a_limit_too() -> None:
    discussion = NEW
    for place in range(MOST_IN_AN_HOUR + 3):
        discussion = discussion.observe(news("activity.stalled"), NOW, NOW + place * 15)
    assert len(discussion.new) == MOST_IN_AN_HOUR
    assert discussion.memory.held_back == {"activity.stalled": 3}
    assert room_at(discussion.memory) == NOW + 3600
    assert discussion.sum_up(NOW + 3599) == discussion
    assert len(discussion.sum_up(NOW + 3600).new) == MOST_IN_AN_HOUR + 1


def test_people_are_not_held_back_and_hold_nothing_back() -> None:
    discussion = flood(MOST_IN_A_MINUTE)
    for _ in range(10):
        discussion = discussion.say("and now?", "ada", NOW)
    assert len(discussion.new) == MOST_IN_A_MINUTE + 10
    said = NEW.say("one", "ada", NOW)
    assert len(flood(MOST_IN_A_MINUTE, said).new) == MOST_IN_A_MINUTE + 1


def test_a_clock_that_was_set_back_holds_nothing_back() -> None:
    full = flood(MOST_IN_A_MINUTE + 1)
    earlier = NOW - 7 * 24 * 3600
    assert len(full.observe(news("activity.stalled"), earlier, earlier).new) == MOST_IN_A_MINUTE + 1
    assert full.sum_up(earlier).memory.held_back == {}
    assert full.prune(earlier).comments == full.comments


# --- stop and resume ---


@pytest.mark.parametrize("text", ["stop", "Stop", " STOP \n", "stop.", "stop!", "Stop monitoring.", "stop  Monitoring"])
def test_stop_stops_monitoring(text: str) -> None:
    discussion = NEW.say(text, "ada", NOW)
    (comment,) = discussion.new
    assert (comment.kind, comment.by, comment.number) == ("monitoring_stopped", "ada", 1)
    assert not discussion.memory.is_monitored
    assert (discussion.memory.stopped_by, discussion.memory.stopped_at) == ("ada", NOW)


@pytest.mark.parametrize("text", ["resume", "RESUME", "Resume monitoring.", " resume! "])
def test_resume_starts_it_again(text: str) -> None:
    discussion = NEW.say("stop", "ada", NOW).say(text, "bob", NOW + 30)
    comment = discussion.new[-1]
    assert (comment.kind, comment.by, comment.number) == ("monitoring_resumed", "bob", 2)
    assert discussion.memory.is_monitored
    assert comment.text == "monitoring resumed; missed in 30 s: nothing"


@pytest.mark.parametrize(
    "text",
    ["please stop the build", "stop it", "don't stop", "stop\nmonitoring it", "unstop", "resume work", "stop resume"],
)
def test_the_word_in_a_sentence_is_an_ordinary_comment(text: str) -> None:
    discussion = NEW.say(text, "ada", NOW)
    (comment,) = discussion.new
    assert (comment.kind, comment.by, comment.text) == ("said", "ada", text)
    assert discussion.memory.is_monitored


def test_while_it_is_stopped_nothing_is_commented_and_all_is_counted() -> None:
    stopped = NEW.say("stop", "ada", NOW)
    later = observed(MOVED, MOVED, URGENT, start=stopped)
    assert later.comments == stopped.comments
    assert later.memory.missed == {"drift.moved": 2, "activity.approval_needed": 1}
    resumed = later.say("resume", "bob", NOW + 7200, "Works")
    assert resumed.comments[-1].text == (
        "monitoring resumed; missed in 2 h: 2 × moved, 1 × approval_needed; now: Works"
    )
    assert (resumed.memory.missed, resumed.memory.stopped_by, resumed.memory.stopped_at) == ({}, "", 0.0)


def test_what_was_held_back_when_it_was_stopped_counts_as_missed() -> None:
    stopped = flood(MOST_IN_A_MINUTE + 2).say("stop", "ada", NOW)
    assert (sum(stopped.memory.missed.values()), stopped.memory.held_back) == (2, {})
    assert stopped.sum_up(NOW + 999) == stopped


def test_to_stop_or_resume_twice_changes_nothing() -> None:
    stopped = NEW.say("stop", "ada", NOW)
    assert stopped.say("stop", "bob", NOW + 5) == stopped
    assert NEW.say("resume", "ada", NOW) == NEW


def test_people_may_comment_while_it_is_stopped() -> None:
    stopped = NEW.say("stop", "ada", NOW).say("it is on holiday", "ada", NOW)
    assert [each.kind for each in stopped.new] == ["monitoring_stopped", "said"]
    assert not stopped.memory.is_monitored


def test_after_it_is_resumed_there_is_room_again() -> None:
    resumed = flood(MOST_IN_A_MINUTE).say("stop", "ada", NOW).say("resume", "ada", NOW)
    assert resumed.observe(MOVED, NOW, NOW).memory.held_back == {}


def test_what_people_say_is_bounded() -> None:
    assert len(NEW.say("x" * 9000, "ada", NOW).new[0].text) == LONGEST_TEXT


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "0 s"), (0.4, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (172_800, "2 days")],
)
def test_how_long_it_was_stopped_is_said_in_round_words(seconds: float, words: str) -> None:
    text = NEW.say("stop", "ada", NOW).say("resume", "ada", NOW + seconds).comments[-1].text
    assert f"missed in {words}:" in text


# --- pruning ---


def test_only_the_last_comments_are_kept() -> None:
    discussion = NEW
    for place in range(KEPT_PER_CARD + 5):
        discussion = discussion.say(str(place), "ada", NOW)
    kept = discussion.prune(NOW)
    assert [each.text for each in kept.comments] == [str(place) for place in range(5, KEPT_PER_CARD + 5)]
    assert kept.memory.comments == KEPT_PER_CARD + 5
    assert kept.new == discussion.new, "what is to be published is published"


def test_old_comments_are_not_kept() -> None:
    discussion = NEW.say("old", "ada", NOW).say("new", "ada", NOW + 10)
    assert [each.text for each in discussion.prune(NOW + KEPT_FOR_S).comments] == ["new"]
    assert discussion.prune(NOW + KEPT_FOR_S - 1) is discussion


def test_it_is_kept_whole() -> None:
    discussion = flood(9).say("stop", "ada", NOW).observe(MOVED, NOW, NOW)
    assert CARDS.load(CARDS.dump(discussion.memory)) == discussion.memory
    comments = CardComments(discussion.comments)
    assert COMMENTS.load(COMMENTS.dump(comments)) == comments


# --- whatever happens ---

KINDS = [MOVED, RESOLVED, URGENT, news("drift.moved", "b"), news("activity.stalled"), news("drift.missing", "m")]
OBSERVED = st.sampled_from(KINDS)
SAID = st.sampled_from(["stop", "resume", "Stop monitoring.", "hello", "stop it"])
STEPS = st.lists(
    st.tuples(OBSERVED | SAID | st.none(), st.floats(-100, 4000) | st.sampled_from([0.0, 1.0])),
    min_size=1,
    max_size=150,
)


@settings(max_examples=300, deadline=None)
@given(steps=STEPS)
def test_whatever_happens_nothing_is_lost_and_nothing_is_too_much(
    steps: list[tuple[CardNews | str | None, float]],
) -> None:
    discussion, now = NEW, NOW
    seen = commented = coalesced = summed = missed = 0
    numbers: list[int] = []
    times: list[float] = []
    for step, passed in steps:
        now += passed
        before = replace(discussion, new=())
        match step:
            case CardNews():
                seen += 1
                after = before.observe(step, now, now)
                commented += len(after.new)
                coalesced += sum(each.times for each in after.comments) - sum(each.times for each in before.comments)
                coalesced -= len(after.new)
                assert before.memory.is_monitored or not after.new, "no comment while it is stopped"
                if step.urgency is not Urgency.ACTION:
                    times += [now for _ in after.new]
            case str():
                after = before.say(step, "ada", now)
                if not after.memory.missed:
                    missed += sum(before.memory.missed.values())
            case None:
                after = before.sum_up(now)
                if after.new:
                    summed += sum(before.memory.held_back.values())
                    times += [now for _ in after.new]
        discussion = after.prune(now)
        numbers += [each.number for each in after.new]
        memory = discussion.memory
        assert memory.notable <= memory.comments == len(numbers)
        assert len(discussion.comments) <= KEPT_PER_CARD
        assert len(after.new) <= 1
        assert len(memory.commented) <= MOST_IN_AN_HOUR
        assert not (memory.held_back and not memory.is_monitored)
        waiting = sum(memory.held_back.values()) + sum(memory.missed.values())
        assert seen == commented + coalesced + summed + missed + waiting
    assert numbers == list(range(1, len(numbers) + 1))
    if all(passed >= 0 for _, passed in steps) and "resume" not in [step for step, _ in steps]:
        for first, last in zip(times, times[MOST_IN_A_MINUTE:], strict=False):
            assert last - first >= 60
