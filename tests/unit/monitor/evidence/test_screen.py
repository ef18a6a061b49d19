"""Since when a screen says the same."""

from services.monitor.evidence.screen import ScreenReader
from shared.agents.evidence import EvidenceSource
from shared.contract.states import Activity
from shared.fleet.profiles import shipped

CLAUDE = shipped()["claude"]
BOX = f"{'─' * 40}\n❯\n{'─' * 40}\n  "
IDLE = f"{BOX}? for shortcuts"
BUSY = f"✻ Thinking… ({{}}s)\n\n{BOX}esc to interrupt"
LIMIT = f"❯ go\n  ⎿  You've hit your {{}} limit · resets 1:50am (UTC)\n\n{IDLE}"
ASKS = " Do you want to {}?\n {} 1. Yes\n {} 2. No\n\n Esc to cancel"


def test_it_is_dated_when_it_was_first_seen() -> None:
    reader = ScreenReader()
    first = reader.read(CLAUDE, BUSY.format(1), "2.1.197", 10.0)
    assert first is not None
    assert (first.source, first.says, first.at, first.weak) == (EvidenceSource.SCREEN, Activity.WORKING, 10.0, False)
    again = reader.read(CLAUDE, BUSY.format(7), "2.1.197", 16.0)
    assert again == first
    idle = reader.read(CLAUDE, IDLE, "2.1.197", 17.0)
    assert idle is not None
    assert (idle.says, idle.at, idle.weak) == (Activity.WAITING, 17.0, True)
    back = reader.read(CLAUDE, BUSY.format(1), "2.1.197", 18.0)
    assert back is not None
    assert back.at == 18.0


def test_a_screen_that_says_nothing_ends_the_evidence() -> None:
    reader = ScreenReader()
    reader.read(CLAUDE, IDLE, None, 1.0)
    assert reader.read(CLAUDE, "Loading", None, 2.0) is None
    found = reader.read(CLAUDE, IDLE, None, 3.0)
    assert found is not None
    assert found.at == 3.0


def test_another_dialog_gets_a_new_date_and_a_moved_choice_does_not() -> None:
    reader = ScreenReader()
    one = reader.read(CLAUDE, ASKS.format("proceed", "❯", " "), None, 1.0)
    moved = reader.read(CLAUDE, ASKS.format("proceed", " ", "❯"), None, 2.0)
    other = reader.read(CLAUDE, ASKS.format("create x.txt", "❯", " "), None, 3.0)
    assert one is not None
    assert moved is not None
    assert other is not None
    assert (one.says, one.rule, one.at) == (Activity.NEEDS_APPROVAL, "permission", 1.0)
    assert one.dialog == ASKS.format("proceed", "❯", " ")
    assert (moved.at, other.at) == (1.0, 3.0)


def test_a_limit_is_told_with_its_reset() -> None:
    reader = ScreenReader()
    found = reader.read(CLAUDE, LIMIT.format("weekly"), "2.1.197", 5.0)
    assert found is not None
    assert (found.says, found.rule) == (Activity.LIMITED, "limit")
    assert found.why == "its weekly limit is reached, resets 1:50am (UTC)"
    assert found.limit is not None
    assert (found.limit.scope, found.limit.reset) == ("weekly", "1:50am (UTC)")
