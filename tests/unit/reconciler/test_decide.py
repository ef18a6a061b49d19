"""Which difference is a drift: every combination has a row, and what is open is closed only by what is seen."""

from itertools import product

import pytest

from services.reconciler.decide import (
    ASPECTS,
    CLASSIFY,
    LASTING,
    Aspect,
    Company,
    Conversation,
    DriftKind,
    Place,
    Program,
    Recorded,
    Session,
    drifts_of,
    is_over,
)

ALL = [aspect for each in ASPECTS for aspect in each]


def test_every_combination_has_a_row() -> None:
    assert set(CLASSIFY) == set(product(Recorded, ALL))
    assert len(CLASSIFY) == len(Recorded) * sum(len(each) for each in ASPECTS), "two aspects have one name"


def test_every_drift_can_happen() -> None:
    assert {kind for kind in CLASSIFY.values() if kind} == set(DriftKind)


def test_what_is_not_known_is_no_drift() -> None:
    unknown: list[Aspect] = [Program.UNKNOWN, Conversation.UNKNOWN, Place.UNKNOWN]
    assert all(CLASSIFY[recorded, aspect] is None for recorded, aspect in product(Recorded, unknown))


def test_an_agent_that_runs_as_it_is_recorded_does_not_drift() -> None:
    seen = (Session.ALIVE, Program.RIGHT, Conversation.SAME, Company.ALONE, Place.SAME)
    assert drifts_of(Recorded.RUNNING, seen) == []


def test_an_agent_may_drift_in_several_ways_at_once() -> None:
    seen = (Session.ALIVE, Program.WRONG, Conversation.NEW, Company.SHARED, Place.MOVED)
    assert drifts_of(Recorded.RUNNING, seen) == [
        DriftKind.WRONG_BACKEND,
        DriftKind.IDENTIFIED,
        DriftKind.DUPLICATE_ID,
        DriftKind.MOVED,
    ]


@pytest.mark.parametrize("kind", LASTING)
def test_a_lasting_drift_is_closed_by_what_is_seen_and_not_by_not_knowing(kind: DriftKind) -> None:
    closes = LASTING[kind]
    assert all(is_over(kind, (aspect,)) for aspect in closes)
    unknown = (Session.ABSENT, Program.UNKNOWN, Conversation.UNKNOWN, Place.UNKNOWN)
    assert not is_over(kind, unknown)
    assert not any(CLASSIFY[Recorded.RUNNING, aspect] is kind for aspect in closes)
