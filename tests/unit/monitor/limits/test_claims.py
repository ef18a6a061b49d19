"""What an agent says of its limit, out of several sources."""

from datetime import UTC, datetime
from typing import Any

import pytest

from services.monitor.limits.claims import LimitClaim, claim_in
from shared.agents.evidence import Evidence, EvidenceSource, LimitStatement
from shared.contract.states import Activity

SAID = datetime(2026, 11, 16, 16, 23, 16, tzinfo=UTC).timestamp()
RESET = datetime(2026, 11, 16, 18, 23, tzinfo=UTC).timestamp()
BANNER = "You've hit your 5-hour limit · resets 6:23pm (UTC)"
AUTO = "Usage limit reached · continuing automatically at 6:23pm · esc to cancel"


def said(source: EvidenceSource = EvidenceSource.HOOKS, words: str = BANNER, at: float = SAID, **more: Any) -> Evidence:
    return Evidence(source, Activity.LIMITED, at, words, limit=LimitStatement(at, words, **more))


def made(*evidence: Evidence) -> LimitClaim:
    found = claim_in(evidence, UTC)
    assert found is not None
    return found


def test_a_banner_alone_tells_the_minute() -> None:
    claim = made(said())
    assert (claim.scope, claim.resets_at, claim.exact_to_s, claim.continues) == ("5-hour", RESET, 60, False)


def test_a_transcript_that_has_the_second_says_it() -> None:
    claim = made(said(), said(EvidenceSource.TRANSCRIPT, f"{BANNER} · {AUTO}", resets_at=RESET + 16))
    assert (claim.resets_at, claim.exact_to_s, claim.continues) == (RESET + 16, 1, True)


def test_a_cancelled_continuation_is_none() -> None:
    off = f"{BANNER} · {AUTO} · Automatic continue cancelled · /rate-limit-options to re-arm"
    assert not made(said(EvidenceSource.TRANSCRIPT, off), said(EvidenceSource.SCREEN, continues="6:23pm")).continues


def test_the_groups_of_a_users_own_rule_count() -> None:
    claim = made(said(EvidenceSource.SCREEN, "its team has no budget left", scope="team", reset="9:00pm"))
    assert (claim.scope, claim.resets_at) == ("team", datetime(2026, 11, 16, 21, 0, tzinfo=UTC).timestamp())


def test_a_countdown_counts_from_when_it_was_seen() -> None:
    shown = Evidence(
        EvidenceSource.SCREEN,
        Activity.LIMITED,
        SAID,
        "",
        limit=LimitStatement(SAID + 60, "it tries again in 1h 58m", reset="1h 58m", continues="1h 58m"),
    )
    claim = made(shown)
    assert (claim.at, claim.resets_at, claim.continues) == (SAID, SAID + 60 + 118 * 60, True)


def test_the_source_that_is_believed_most_says_when_it_was_hit() -> None:
    assert made(said(EvidenceSource.SCREEN, at=SAID + 30), said(at=SAID)).at == SAID


def test_what_says_nothing_of_a_limit_is_no_claim() -> None:
    assert claim_in([Evidence(EvidenceSource.HOOKS, Activity.WAITING, SAID, "")], UTC) is None
    assert claim_in([Evidence(EvidenceSource.HOOKS, Activity.LIMITED, SAID, "")], UTC) is None


@pytest.mark.parametrize("epoch", [-1.0, 0.0, 1e300, float("nan"), float("inf")])
def test_an_impossible_reset_time_is_passed_over(epoch: float) -> None:
    assert made(said(resets_at=epoch)).resets_at == RESET


@pytest.mark.parametrize(
    ("scope", "model"),
    [
        *[(scope, None) for scope in ("", "session", "Weekly", "5-hour", "5h", "monthly spend", "Pro plan", "team")],
        *[("Opus", "opus"), ("weekly Opus", "opus"), ("Fable 5", "fable"), ("all Pro models", "pro")],
    ],
)
def test_a_limit_of_a_model_is_told_from_one_of_the_account(scope: str, model: str | None) -> None:
    assert LimitClaim(0.0, scope).model == model
