"""Which difference is a drift: every combination has a row, and only what was observed resolves a drift."""

import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from services.reconciler.classification import (
    ASPECTS,
    CLASSIFY,
    DRIFTS,
    Aspect,
    Comparison,
    ConversationState,
    ConversationUse,
    Drift,
    Observation,
    PlaceState,
    ProgramState,
    Recorded,
    SessionState,
    drifts_of,
)
from shared.contract.events.drift import DriftEvent, DriftResolved
from tests.unit.reconciler.samples import record

PAGE = Path(__file__).parents[3] / "docs" / "registry.md"
ALL: list[Any] = [aspect for each in ASPECTS for aspect in each]
STAYING_OPEN = [drift for drift in DRIFTS.values() if drift.event_class.resolved_because]


class Seen(Comparison):
    """A running agent with the given aspects."""

    def __init__(self, *seen: Aspect) -> None:
        super().__init__("builder", record(), Observation())
        self.__dict__["aspects"] = seen


def test_every_combination_has_a_row() -> None:
    missing = set(product(Recorded, ALL)) - set(CLASSIFY)
    assert not missing, (
        f"CLASSIFY in services/reconciler/classification.py has no row for {sorted(map(str, missing))}: add each, with"
        " its drift or None"
    )
    assert set(CLASSIFY) == set(product(Recorded, ALL)), "CLASSIFY has rows of an aspect that is not in ASPECTS"
    assert len(CLASSIFY) == len(Recorded) * sum(len(each) for each in ASPECTS), "two aspects have one name"


def test_every_kind_of_drift_has_a_row() -> None:
    without = {*DriftEvent.kinds()} - {drift.event_class for drift in DRIFTS.values()} - {DriftResolved}
    assert not without, (
        f"CLASSIFY in services/reconciler/classification.py never gives {sorted(kind.name() for kind in without)}"
    )
    assert [name for name, drift in DRIFTS.items() if drift.event_class.name() != name] == []


def test_the_page_explains_every_kind_of_drift() -> None:
    explained = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    kinds = [kind.name() for kind in DriftEvent.kinds()]
    assert sorted(explained) == sorted(kinds), "the table under `Drifts` in docs/registry.md needs a row for each kind"


def test_an_unknown_aspect_is_no_drift() -> None:
    unknown = [aspect for aspect in ALL if aspect.name == "UNKNOWN"]
    assert unknown
    assert all(CLASSIFY[recorded, aspect] is None for recorded, aspect in product(Recorded, unknown))


def test_an_agent_that_runs_as_it_is_recorded_does_not_drift() -> None:
    seen = (SessionState.ALIVE, ProgramState.RIGHT, ConversationState.SAME, ConversationUse.EXCLUSIVE, PlaceState.SAME)
    assert drifts_of(Seen(*seen)) == []


def test_an_agent_may_drift_in_several_ways_at_once() -> None:
    seen = (SessionState.ALIVE, ProgramState.WRONG, ConversationState.NEW, ConversationUse.SHARED, PlaceState.MOVED)
    assert [each.name for each in drifts_of(Seen(*seen))] == ["wrong_backend", "identified", "duplicate_id", "moved"]


def test_a_drift_stays_open_if_an_aspect_resolves_it() -> None:
    assert STAYING_OPEN
    unlike = [
        drift.name for drift in DRIFTS.values() if bool(drift.ended_by) != bool(drift.event_class.resolved_because)
    ]
    assert not unlike, (
        f"{unlike}: a drift that stays open has both `resolved_because` (its event) and `ended_by` (its Drift)"
    )


@pytest.mark.parametrize("drift", STAYING_OPEN, ids=lambda drift: str(drift.name))
def test_an_unknown_aspect_resolves_no_drift(drift: Drift) -> None:
    unknown = {SessionState.ABSENT, *(aspect for aspect in ALL if aspect.name == "UNKNOWN")}
    assert not unknown & set(drift.ended_by)
    assert not any(CLASSIFY[Recorded.RUNNING, aspect] is drift for aspect in drift.ended_by)
