"""How far a loop is, by its events, and as the page draws it."""

from typing import Any

from services.board.loops import after, loop_document
from services.board.memory import LoopProgress
from shared.contract.asyncapi_examples import fill
from shared.contract.envelope import Envelope
from shared.contract.events.loops import LoopEvent, PhaseAdvanced, PhaseDone, RemoteReachable, SequenceCompleted
from shared.contract.topics import Space
from shared.contract.writer import DocumentWriter
from shared.fleet.loops import Loop
from tests.fakes.records import START
from tests.fakes.turns import received

WRITER = DocumentWriter(Space("box"), "handoff", "e1")
NAMES = ("outline", "draft", "polish")


def told(event: LoopEvent) -> Envelope[Any]:
    return received(WRITER, event, seq=1, time=START).envelope


def loop(*phases: str) -> Loop:
    return Loop.model_validate(
        {"remote": "x.git", "roles": {"b": "bob"}, "phases": [{"name": name} for name in phases]}
    )


ADVANCED = PhaseAdvanced(loop="main", number=2, phase="draft", phases=3, reason="asked for")
DONE = fill(PhaseDone)
COMPLETED = fill(SequenceCompleted)
UNDER_WAY = after(LoopProgress(), told(ADVANCED))


def states(document: dict[str, Any]) -> list[str]:
    return [phase["state"] for phase in document["phases"]]


def test_a_phase_begins_is_done_and_waits_for_a_person() -> None:
    assert LoopProgress(2, "draft", START.timestamp()) == UNDER_WAY
    waits = after(UNDER_WAY, told(DONE))
    assert (waits.number, waits.waits) == (2, True)
    assert not after(waits, told(ADVANCED)).waits


def test_a_loop_that_is_complete_waits_for_nobody() -> None:
    complete = after(after(UNDER_WAY, told(DONE)), told(COMPLETED))
    assert (complete.complete, complete.waits) == (True, False)
    assert not after(complete, told(ADVANCED)).complete, "it was begun again"


def test_other_events_change_nothing() -> None:
    for kind in LoopEvent.kinds():
        if kind not in (PhaseAdvanced, PhaseDone, SequenceCompleted):
            assert after(UNDER_WAY, told(fill(kind))) is UNDER_WAY, kind
    assert after(UNDER_WAY, told(fill(RemoteReachable))) is UNDER_WAY


def test_a_loop_that_is_under_way() -> None:
    document = loop_document("main", loop(*NAMES), UNDER_WAY)
    assert states(document) == ["done", "current", "to come"]
    assert [phase["name"] for phase in document["phases"]] == list(NAMES)
    assert (document["loop"], document["number"], document["since"]) == ("main", 2, START.timestamp())
    assert document["said"] == "phase 2 of 3, draft"


def test_a_loop_that_waits_for_a_person_says_what_to_do() -> None:
    document = loop_document("main", loop(*NAMES), after(UNDER_WAY, told(DONE)))
    assert document["waits"]
    assert document["said"] == "phase 2 of 3, draft; it waits for `muster phase next`"


def test_a_loop_that_is_complete_or_not_begun_or_has_no_phases() -> None:
    complete = loop_document("main", loop(*NAMES), after(UNDER_WAY, told(COMPLETED)))
    assert (states(complete), complete["said"]) == (["done"] * 3, "all 3 phases are done")
    new = loop_document("main", loop(*NAMES), LoopProgress())
    assert (states(new), new["said"]) == (["to come"] * 3, "not begun")
    assert loop_document("main", loop(), LoopProgress())["said"] == "it has no phases"


def test_phases_that_were_edited_since_are_found_by_name() -> None:
    inserted = loop_document("main", loop("idea", *NAMES), UNDER_WAY)
    assert (inserted["number"], states(inserted)) == (3, ["done", "done", "current", "to come"])
    removed = loop_document("main", loop("outline"), UNDER_WAY)
    assert (removed["number"], removed["said"]) == (1, "phase 1 of 1, outline")
    assert loop_document("main", loop(), UNDER_WAY)["said"] == "it has no phases"
