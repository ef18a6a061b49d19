"""One agent as it is watched: its screen and title are read by the rules that hold now, for the version that runs."""

from services.monitor.evidence import EvidenceSource
from services.monitor.subject import Subject
from shared.contract.states import Activity
from shared.fleet.backend import Backend
from shared.fleet.profiles import shipped
from shared.fleet.screen_rules import Sign, TitleRule
from shared.system.processes import Processes
from tests.unit.monitor.samples import GONE, NOW, pane
from tests.unit.monitor.world import WAITS

DEMO = shipped()["demo"]
LIMIT = Sign(says=Activity.LIMITED, match="^  demo agent", below="box", versions=">=3")
TITLE = TitleRule(says=Activity.WORKING, match="busy", versions=">=3")
SCREEN = DEMO.screen.model_copy(update={"signs": {**DEMO.screen.signs, "mine": LIMIT}})
RULED = DEMO.model_copy(update={"screen": SCREEN, "titles": {"mine": TITLE}})
PANE = pane(title="busy")


def subject() -> Subject:
    watched = Subject("builder", "s1", "demo", "demo", lambda: Processes([]), NOW)
    watched.show(PANE, WAITS, NOW)
    return watched


def says(watched: Subject, backend: Backend, source: EvidenceSource, now: float = NOW) -> tuple[Activity, float] | None:
    found = [each for each in watched.evidence(backend, PANE, None, now) if each.source is source]
    return (found[0].says, found[0].at) if found else None


def test_the_first_look_tells_what_has_been_there_since_it_was_painted() -> None:
    assert says(subject(), DEMO, EvidenceSource.SCREEN) == (Activity.WAITING, PANE.activity + 1)


def test_what_is_painted_later_is_since_it_was_seen() -> None:
    watched = subject()
    says(watched, DEMO, EvidenceSource.SCREEN)
    watched.show(PANE, WAITS.replace("  demo agent · enter to send", "  working · esc to interrupt"), NOW + 5)
    assert says(watched, DEMO, EvidenceSource.SCREEN, NOW + 5) == (Activity.WORKING, NOW + 5)


def test_rules_that_were_edited_read_the_screen_and_the_title_again() -> None:
    watched = subject()
    assert says(watched, DEMO, EvidenceSource.SCREEN) == (Activity.WAITING, PANE.activity + 1)
    assert says(watched, DEMO, EvidenceSource.TITLE) is None
    assert says(watched, RULED, EvidenceSource.SCREEN, NOW + 5) == (Activity.LIMITED, NOW + 5)
    assert says(watched, RULED, EvidenceSource.TITLE, NOW + 9) == (Activity.WORKING, NOW + 5)


def test_a_version_that_is_known_later_counts_on_a_screen_that_stays() -> None:
    watched = subject()
    assert says(watched, RULED, EvidenceSource.SCREEN) == (Activity.LIMITED, PANE.activity + 1)
    watched.version = "2.9.1"
    assert says(watched, RULED, EvidenceSource.SCREEN, NOW + 5) == (Activity.WAITING, NOW + 5)
    assert says(watched, RULED, EvidenceSource.TITLE, NOW + 5) is None


def test_what_a_program_said_that_is_gone_is_said_no_longer() -> None:
    watched = subject()
    watched.process = GONE
    assert [each.source for each in watched.evidence(DEMO, PANE, None, NOW)] == [EvidenceSource.PROCESSES]
