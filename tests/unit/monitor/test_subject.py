"""One agent as it is watched: its screen and title are read by the rules that hold now, for the version that runs."""

import pytest

from services.monitor.evidence.hooks import HookMemory
from services.monitor.subject import Subject
from shared.agents.evidence import EvidenceSource
from shared.contract.states import Activity
from shared.fleet.backend import Backend
from shared.fleet.profiles import shipped
from shared.fleet.screen_rules import Sign, TitleRule
from tests.unit.monitor.samples import GONE, NOW, pane, tree
from tests.unit.monitor.world import WAITS

DEMO = shipped()["demo"]
LIMIT = Sign(says=Activity.LIMITED, match="^  demo agent", below="box", versions=">=3")
TITLE = TitleRule(says=Activity.WORKING, match="busy", versions=">=3")
SCREEN = DEMO.screen.model_copy(update={"signs": {**DEMO.screen.signs, "mine": LIMIT}})
RULED = DEMO.model_copy(update={"screen": SCREEN, "titles": {"mine": TITLE}})
PANE = pane(title="busy")


def subject(memory: HookMemory | None = None) -> Subject:
    watched = Subject("builder", "s1", "demo", "demo", tree, NOW, memory)
    watched.screen.capture(PANE, WAITS, NOW)
    return watched


def says(watched: Subject, backend: Backend, source: EvidenceSource, now: float = NOW) -> tuple[Activity, float] | None:
    watched.begin(backend, PANE, now)
    found = [each for each in watched.evidence(None, now) if each.source is source]
    return (found[0].says, found[0].at) if found else None


def test_the_first_capture_shows_what_was_there_since_the_pane_last_changed() -> None:
    assert says(subject(), DEMO, EvidenceSource.SCREEN) == (Activity.WAITING, PANE.activity + 1)


def test_what_is_painted_later_is_dated_when_it_was_seen() -> None:
    watched = subject()
    says(watched, DEMO, EvidenceSource.SCREEN)
    watched.screen.capture(PANE, WAITS.replace("  demo agent · enter to send", "  working · esc to interrupt"), NOW + 5)
    assert says(watched, DEMO, EvidenceSource.SCREEN, NOW + 5) == (Activity.WORKING, NOW + 5)


def test_screen_and_title_are_read_again_after_the_rules_were_edited() -> None:
    watched = subject()
    assert says(watched, DEMO, EvidenceSource.SCREEN) == (Activity.WAITING, PANE.activity + 1)
    assert says(watched, DEMO, EvidenceSource.TITLE) is None
    assert says(watched, RULED, EvidenceSource.SCREEN, NOW + 5) == (Activity.LIMITED, NOW + 5)
    assert says(watched, RULED, EvidenceSource.TITLE, NOW + 9) == (Activity.WORKING, NOW + 5)


def test_a_screen_that_stays_is_read_again_once_the_version_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = subject()
    assert says(watched, RULED, EvidenceSource.SCREEN) == (Activity.LIMITED, PANE.activity + 1)
    monkeypatch.setattr("services.monitor.evidence.program.version_of", lambda _: "2.9.1")
    monkeypatch.setattr("services.monitor.evidence.program.program_in", lambda *_: GONE)
    monkeypatch.setattr("services.monitor.evidence.program.is_there", lambda _: True)
    assert says(watched, RULED, EvidenceSource.SCREEN, NOW + 5) == (Activity.WAITING, NOW + 5)
    assert says(watched, RULED, EvidenceSource.TITLE, NOW + 5) is None


def test_of_a_program_that_is_gone_only_its_processes_say_anything() -> None:
    watched = subject(HookMemory("s1", process=GONE))
    watched.begin(DEMO, PANE, NOW)
    assert [each.source for each in watched.evidence(None, NOW)] == [EvidenceSource.PROCESSES]
