"""Silences of a broker, by its acknowledgements: when one has ended, how often something is done about it, and since
when a message may have been under way."""

from itertools import pairwise

from shared.messaging.silence import (
    ACKNOWLEDGES_WITHIN_S,
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    SENDERS_RETURN_WITHIN_S,
    HeldMessages,
    SilenceWatch,
)

NOW = 1_000.0


def silence(watch: SilenceWatch, began: float, ended: float) -> None:
    watch.acknowledged(began, ended)
    watch.acknowledged(ended, ended + 0.01)


def test_a_broker_that_answers_has_no_silence() -> None:
    watch = SilenceWatch()
    watch.acknowledged(NOW, NOW + ACKNOWLEDGES_WITHIN_S / 2)
    assert watch.ended(NOW + 1) is None


def test_a_silence_is_told_once_when_it_has_ended() -> None:
    watch = SilenceWatch()
    watch.acknowledged(NOW, NOW + 3)
    assert watch.ended(NOW + 3) is None, "the broker may still be silent"
    watch.acknowledged(NOW + 3, NOW + 3.01)
    assert watch.ended(NOW + 4) == NOW
    assert watch.ended(NOW + 500) is None


def test_a_silence_begins_with_the_first_message_that_waited() -> None:
    watch = SilenceWatch()
    for sent in (2.0, 0.0, 1.0):
        watch.acknowledged(NOW + sent, NOW + 6)
    watch.acknowledged(NOW + 5.9, NOW + 6)
    assert watch.ended(NOW + 6) == NOW


def test_a_broker_that_is_always_slow_has_a_silence_that_does_not_end() -> None:
    watch = SilenceWatch()
    for number in range(1_000):
        watch.acknowledged(NOW + number, NOW + number + 2.1)
        assert watch.ended(NOW + number + 2.1) is None


def test_a_lost_connection_takes_over_a_silence_that_was_not_made_good() -> None:
    watch = SilenceWatch()
    silence(watch, NOW, NOW + 3)
    assert watch.connection_lost() == NOW
    assert watch.ended(NOW + 1_000) is None
    assert watch.connection_lost() is None


def ends(watch: SilenceWatch, every_s: float, until: float) -> list[float]:
    """When something is done about a broker that is silent for 3 s so often."""
    found, now = [], NOW
    while now < NOW + until:
        silence(watch, now, now + 3)
        now += every_s
        if watch.ended(now) is not None:
            found.append(now - NOW)
    return found


def test_the_pauses_grow_for_a_broker_that_stumbles_again_and_again() -> None:
    found = ends(SilenceWatch(), 5.0, 3_600.0)
    pauses = [after - before for before, after in pairwise(found)]
    assert found[0] == 5.0, "the first at once"
    assert pauses[:3] == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert set(pauses[-5:]) == {LONGEST_PAUSE_S}


def test_nothing_is_forgotten_in_a_pause() -> None:
    watch = SilenceWatch()
    silence(watch, NOW, NOW + 3)
    assert watch.ended(NOW + 3) == NOW
    for began in (NOW + 4, NOW + 8):
        silence(watch, began, began + 3)
        assert watch.ended(began + 3) is None
    assert watch.ended(NOW + 3 + FIRST_PAUSE_S) == NOW + 4


def test_after_a_calm_time_the_pauses_are_short_again() -> None:
    watch = SilenceWatch()
    calm = NOW + 70 + 2 * 80 + LONGEST_PAUSE_S
    for began in (NOW, NOW + 10, NOW + 30, NOW + 70, calm, calm + FIRST_PAUSE_S):
        silence(watch, began, began + 3)
        assert watch.ended(began + 3) == began


# --- since when a message may have been under way ---


def test_while_the_broker_answers_a_message_was_sent_when_it_arrives() -> None:
    held = HeldMessages(NOW)
    held.acknowledged(NOW + 1, NOW + 1.01)
    assert held.under_way_since(NOW + 4, None) == NOW + 4
    assert held.under_way_since(NOW + 4, NOW + 3.9) == NOW + 4


def test_while_the_broker_hangs_a_message_may_be_as_old_as_its_last_acknowledgement() -> None:
    held = HeldMessages(NOW)
    held.acknowledged(NOW + 1, NOW + 1.01)
    assert held.under_way_since(NOW + 4, NOW + 3) == NOW + 1.01


def test_a_message_that_comes_out_of_a_silence_may_be_as_old_as_that() -> None:
    held = HeldMessages(NOW)
    held.acknowledged(NOW + 1, NOW + 1.01)
    for sent in (2.0, 4.0, 8.9):
        held.acknowledged(NOW + sent, NOW + 9)
    assert held.under_way_since(NOW + 9, None) == NOW + 1.01
    late = NOW + 9 + SENDERS_RETURN_WITHIN_S
    held.acknowledged(late - 0.01, late)
    assert held.under_way_since(late, None) == NOW + 1.01, "its sender may have been held up"
    assert held.under_way_since(late + 0.01, None) == late + 0.01


def test_each_silence_has_its_own_beginning() -> None:
    held = HeldMessages(NOW)
    held.acknowledged(NOW + 1, NOW + 4)
    held.acknowledged(NOW + 50, NOW + 50.01)
    held.acknowledged(NOW + 51, NOW + 54)
    assert held.under_way_since(NOW + 54, None) == NOW + 50.01


def test_a_message_on_a_new_connection_may_be_as_old_as_the_loss() -> None:
    held = HeldMessages(NOW)
    held.connected(NOW + 60, lost_since=NOW + 5)
    assert held.under_way_since(NOW + 61, None) == NOW + 5
    held.acknowledged(NOW + 62, NOW + 62.01)
    assert held.under_way_since(NOW + 63, None) == NOW + 63


def test_on_the_first_connection_there_was_no_loss() -> None:
    held = HeldMessages(NOW)
    held.connected(NOW + 60, lost_since=None)
    assert held.under_way_since(NOW + 61, None) == NOW + 61
