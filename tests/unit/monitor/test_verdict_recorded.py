"""The page that says how well it is told what agents are doing is what the recorded cases give."""

from tests.real_agents.cases import cases
from tests.real_agents.matrix import PAGE, known_live, page

KNOWN = {
    # At these widths only title and screen were recorded, which say that the main agent is done.
    "codex-0.166.0/subagent-background@80",
    "codex-0.166.0/subagent-background@200",
}


def test_every_recorded_case_is_told_right() -> None:
    assert {case.name for case in cases() if case.verdict().status is not case.expected} <= KNOWN


def test_the_page_is_what_the_cases_give() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(cases(), known_live()), "run: ./muster test --write"


def test_whatever_was_played_live_is_right() -> None:
    live = known_live()
    assert len(live) == 5, "each program was played"
    assert [f"{program} {one.situation}" for program, each in live.items() for one in each if not one.right] == []
