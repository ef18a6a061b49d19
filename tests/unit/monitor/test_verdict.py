"""Which evidence is believed: a table, and what holds for any evidence."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.monitor.verdict import DIALOG_STANDS_S, SETTLES_S, fuse
from shared.agents.evidence import Evidence, EvidenceSource
from shared.contract.states import Activity

NOW = 1_000.0
HOOKS, LIVE, TRANSCRIPT, PROCESSES, TITLE, SCREEN = EvidenceSource
WORKING, WAITING, ASKS, LIMITED, FAILED = (
    *(Activity.WORKING, Activity.WAITING, Activity.NEEDS_APPROVAL, Activity.LIMITED, Activity.FAILED),
)
STARTING = Activity.STARTING


def said(source: EvidenceSource, says: Activity, ago: float, *, weak: bool = False) -> Evidence:
    return Evidence(source, says, NOW - ago, f"{source} said {says}", weak=weak)


TABLE: dict[str, tuple[list[Evidence], Activity, EvidenceSource | None]] = {
    "nothing tells": ([], Activity.UNKNOWN, None),
    "one alone": ([said(TITLE, WORKING, 5)], WORKING, TITLE),
    "the first in order, where all agree": ([said(SCREEN, WORKING, 5), said(HOOKS, WORKING, 9)], WORKING, HOOKS),
    "an old word of another is none": ([said(HOOKS, WAITING, 5), said(LIVE, WORKING, 9)], WAITING, HOOKS),
    "rejected: the hooks know of the question only": ([said(HOOKS, ASKS, 9), said(LIVE, WAITING, 5)], WAITING, LIVE),
    "approved: a slow command runs": ([said(HOOKS, ASKS, 9), said(LIVE, WORKING, 5)], WORKING, LIVE),
    "interrupted while it thinks": ([said(HOOKS, WORKING, 9), said(LIVE, WAITING, 5)], WAITING, LIVE),
    "interrupted, told by the transcript": (
        [said(HOOKS, WORKING, 9), said(TRANSCRIPT, WAITING, 5)],
        WAITING,
        TRANSCRIPT,
    ),
    "a transcript that is a moment old": ([said(HOOKS, WORKING, 9), said(TRANSCRIPT, WAITING, 0.1)], WORKING, HOOKS),
    "the approved command is among the processes": (
        [said(HOOKS, ASKS, 9), said(PROCESSES, WORKING, 5)],
        WORKING,
        PROCESSES,
    ),
    "its process is gone": ([said(HOOKS, WORKING, 9), said(PROCESSES, FAILED, 5)], FAILED, PROCESSES),
    "a dialog that no hook tells": ([said(HOOKS, WORKING, 9), said(SCREEN, ASKS, 5)], ASKS, SCREEN),
    "a dialog that stands though another tool has ended": (
        [said(HOOKS, WORKING, 5), said(SCREEN, ASKS, 9)],
        ASKS,
        SCREEN,
    ),
    "a dialog that may have just been answered": ([said(HOOKS, WORKING, 1), said(SCREEN, ASKS, 9)], WORKING, HOOKS),
    "a dialog that has just been painted": ([said(HOOKS, WORKING, 9), said(SCREEN, ASKS, 0.1)], WORKING, HOOKS),
    "an input box where a dialog was": ([said(HOOKS, ASKS, 9), said(SCREEN, WAITING, 5, weak=True)], WAITING, SCREEN),
    "an input box while it works": ([said(HOOKS, WORKING, 9), said(SCREEN, WAITING, 5, weak=True)], WORKING, HOOKS),
    "a title against hooks": ([said(HOOKS, WAITING, 9), said(TITLE, WORKING, 5)], WAITING, HOOKS),
    "limited, and at its input box": ([said(HOOKS, LIMITED, 9), said(LIVE, WAITING, 8.9)], LIMITED, HOOKS),
    "limited, and at work again": ([said(HOOKS, LIMITED, 9), said(LIVE, WORKING, 5)], WORKING, LIVE),
    "no credit, and at its input box": (
        [said(TRANSCRIPT, FAILED, 9), said(SCREEN, WAITING, 5, weak=True)],
        FAILED,
        TRANSCRIPT,
    ),
    "a limit on the screen alone": ([said(LIVE, WAITING, 9), said(SCREEN, LIMITED, 5)], LIMITED, SCREEN),
    "limited by its transcript, idle by its live file": (
        [said(LIVE, WAITING, 5), said(TRANSCRIPT, LIMITED, 5.1)],
        LIMITED,
        TRANSCRIPT,
    ),
    "a menu about a limit": ([said(LIVE, ASKS, 5), said(TRANSCRIPT, LIMITED, 5.1)], LIMITED, TRANSCRIPT),
    "limited once, and done since by its hooks": (
        [said(HOOKS, WAITING, 5), said(TRANSCRIPT, LIMITED, 9)],
        WAITING,
        HOOKS,
    ),
    "a transcript that ends before its live file does": (
        [said(LIVE, WORKING, 9), said(TRANSCRIPT, WAITING, 5)],
        WORKING,
        LIVE,
    ),
    "a dialog that its live file does not know": ([said(LIVE, WORKING, 9), said(SCREEN, ASKS, 5)], ASKS, SCREEN),
    "starting, until anything tells": ([said(PROCESSES, STARTING, 9, weak=True)], STARTING, PROCESSES),
    "an input box ends the start": (
        [said(PROCESSES, STARTING, 9, weak=True), said(SCREEN, WAITING, 5, weak=True)],
        WAITING,
        SCREEN,
    ),
    "an input box in the very second of the start": (
        [said(PROCESSES, STARTING, 5, weak=True), said(SCREEN, WAITING, 5, weak=True)],
        WAITING,
        SCREEN,
    ),
    "two overrule one after the other": (
        [said(HOOKS, WORKING, 9), said(LIVE, ASKS, 7), said(SCREEN, LIMITED, 5)],
        LIMITED,
        SCREEN,
    ),
}


@pytest.mark.parametrize(("evidence", "status", "source"), TABLE.values(), ids=TABLE.keys())
def test_the_expected_evidence_is_believed(
    evidence: list[Evidence], status: Activity, source: EvidenceSource | None
) -> None:
    for given_so in itertools.permutations(evidence):  # the order in which it is read does not matter
        verdict = fuse(given_so, NOW)
        assert (verdict.status, verdict.winner.source if verdict.winner else None) == (status, source)


pieces = st.builds(
    Evidence,
    source=st.sampled_from(EvidenceSource),
    says=st.sampled_from(Activity),
    at=st.floats(NOW - 100, NOW),
    why=st.just("seen"),
    weak=st.booleans(),
)
one_a_source = st.lists(pieces, unique_by=lambda piece: piece.source)


@given(one_a_source)
def test_every_piece_has_a_reason_and_one_is_believed(evidence: list[Evidence]) -> None:
    verdict = fuse(evidence, NOW)
    assert {each.evidence for each in verdict.weighed} == set(evidence)
    assert sum(each.believed for each in verdict.weighed) == bool(evidence)
    assert all(each.because for each in verdict.weighed)


@given(one_a_source)
def test_the_status_is_one_that_a_source_said(evidence: list[Evidence]) -> None:
    verdict = fuse(evidence, NOW)
    assert verdict.status in {piece.says for piece in evidence} | ({Activity.UNKNOWN} if not evidence else set())


@given(one_a_source)
def test_evidence_that_is_too_young_is_weighed_again_soon(evidence: list[Evidence]) -> None:
    """Without anything else happening."""
    verdict = fuse(evidence, NOW)
    if verdict.again_at is not None:
        assert NOW < verdict.again_at + 1e-6 <= NOW + max(*SETTLES_S.values(), DIALOG_STANDS_S) + 1e-6
