"""What concerns a whole account: when its next agent may be prompted, and how a prompt is remembered."""

import pytest

from services.monitor.limits.account_limits import PROMPT_REMEMBERED_S, PROMPTS, AccountLimits
from tests.unit.monitor.samples import NOW, turn


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        pytest.param(None, None, id="never prompted"),
        pytest.param(NOW - 10, NOW + 20, id="prompted just now"),
        pytest.param(NOW - 30, None, id="the gap is over"),
    ],
)
def test_the_last_prompt_keeps_the_account_waiting_for_the_gap(last: float | None, expected: float | None) -> None:
    taken = turn()
    if last is not None:
        taken.memory.put(PROMPTS, last, "acme")
    assert AccountLimits().next_prompt_at(taken, "acme", NOW, 30.0) == expected


def test_a_text_counts_as_a_prompt_only_on_an_account_that_was_limited() -> None:
    taken = turn()
    AccountLimits().note_text(taken, "acme", NOW)
    assert taken.memory.all(PROMPTS) == {}
    taken.memory.put(PROMPTS, NOW - 60, "acme")
    AccountLimits().note_text(taken, "acme", NOW)
    assert taken.memory.all(PROMPTS) == {"acme": NOW}


def test_a_prompt_of_long_ago_is_forgotten_with_the_next_one() -> None:
    taken = turn()
    taken.memory.put(PROMPTS, NOW - PROMPT_REMEMBERED_S, "old")
    taken.memory.put(PROMPTS, NOW - 60, "acme")
    AccountLimits().note_text(taken, "acme", NOW)
    assert taken.memory.all(PROMPTS) == {"acme": NOW}
