"""Since when a title says the same."""

from services.monitor.evidence.screen import TitleReader
from shared.agents.evidence import EvidenceSource
from shared.contract.states import Activity
from shared.fleet.profiles import shipped

CLAUDE = shipped()["claude"]


def test_it_is_dated_when_it_was_first_seen() -> None:
    reader = TitleReader()
    first = reader.read(CLAUDE, "⠐ Claude Code", "2.1.197", 10.0)
    assert first is not None
    assert (first.source, first.says, first.rule, first.at, first.weak) == (
        EvidenceSource.TITLE,
        Activity.WORKING,
        "busy",
        10.0,
        False,
    )
    turned = reader.read(CLAUDE, "⠂ Fixing the tests", "2.1.197", 11.0)
    assert turned is not None
    assert turned.at == 10.0
    assert turned.why == "its terminal's title is '⠂ Fixing the tests'"
    idle = reader.read(CLAUDE, "✳ Claude Code", "2.1.197", 12.0)
    assert idle is not None
    assert (idle.says, idle.at, idle.weak) == (Activity.WAITING, 12.0, True)


def test_a_title_that_says_nothing_ends_the_evidence() -> None:
    reader = TitleReader()
    reader.read(CLAUDE, "⠐ Claude Code", None, 1.0)
    assert reader.read(CLAUDE, "host", None, 2.0) is None
    found = reader.read(CLAUDE, "⠐ Claude Code", None, 3.0)
    assert found is not None
    assert found.at == 3.0


def test_newer_versions_are_not_believed_to_wait() -> None:
    assert TitleReader().read(CLAUDE, "✳ Claude Code", "2.1.325", 1.0) is None
