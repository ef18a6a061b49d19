"""The agents' screens, read while somebody looks at the page, and not otherwise."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from services.board import screens
from services.board.feed import BoardFeed
from services.board.screens import LONGEST_LINE, MOST_LINES_PER_LOOK, PageScreens
from shared.errors import MusterError
from shared.system.log import Log
from shared.system.tmux import Pane
from tests.fakes.records import make_pane
from tests.fakes.tmux import FakeTmux
from tests.unit.board.test_page_commands import eventually
from tests.unit.board.world import BoardWorld


class CountedFeed(BoardFeed):
    """Counts how often it is asked whether somebody looks."""

    asked = 0

    @property
    def watchers(self) -> int:
        self.asked += 1
        return super().watchers


class CountedTmux(FakeTmux):
    """Counts its connections, and the looks at all panes."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = self.closed = self.looks = 0

    def close(self) -> None:
        self.closed += 1

    def agent_panes(self, fleet: str) -> dict[str, Pane]:
        self.looks += 1
        return super().agent_panes(fleet)


class Watched:
    """Screens of agents that a test shows, with or without somebody who looks at the page."""

    def __init__(self, world: BoardWorld, tmux: CountedTmux) -> None:
        self.world, self.tmux, self.faults, self.feed = world, tmux, list[str](), CountedFeed()
        log = Log("board", world.log)
        self.screens = PageScreens(lambda: world.fleet, lambda _: "demo", self.feed, self._note_fault, log)

    def _note_fault(self) -> None:
        self.faults.append(self.screens.fault)

    def shows(self, agent: str, screen: str, **changes: Any) -> None:
        known = {"pane_id": f"%{agent}", "fleet": self.world.fleet.stamp, "activity": int(time.time()) + 60}
        self.tmux.panes[agent] = make_pane(agent, "s1", **{**known, **changes})
        self.tmux.shown[f"%{agent}"] = screen

    def lines(self) -> dict[str, str]:
        found: dict[str, str] = self.feed.whole()[1].get("lines", {})
        return found


@pytest.fixture
def watched(world: BoardWorld, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    tmux = CountedTmux()

    def connect(_: str) -> CountedTmux:
        tmux.opened += 1
        return tmux

    monkeypatch.setattr(screens, "Tmux", connect)
    monkeypatch.setattr(screens, "LOOKS_EVERY_S", 0.005)
    made = Watched(world, tmux)
    made.screens.start()
    yield made
    made.screens.close()
    eventually(lambda: tmux.opened == tmux.closed, "its connection is closed at the end")


def test_nothing_is_read_while_nobody_looks(watched: Watched) -> None:
    watched.shows("builder", "hello")
    eventually(lambda: watched.feed.asked > 5, "it would have looked")
    assert watched.tmux.opened == 0
    assert watched.screens.screen("builder")["said"] == "builder does not run, so it has no screen"
    leave = watched.feed.subscribe(lambda: None)
    eventually(lambda: watched.lines() == {"builder": "hello"}, "the line is shown")
    leave()
    eventually(lambda: watched.tmux.closed == 1, "the connection is closed when the last one leaves")


@pytest.fixture
def looked_at(watched: Watched) -> Iterator[Watched]:
    leave = watched.feed.subscribe(lambda: None)
    yield watched
    leave()


def test_the_lines_follow_the_screens(looked_at: Watched) -> None:
    looked_at.shows("builder", "one\ntwo")
    eventually(lambda: looked_at.lines() == {"builder": "two"}, "the last line")
    looked_at.shows("builder", "x" * 500)
    eventually(lambda: looked_at.lines() == {"builder": "x" * LONGEST_LINE}, "bounded")
    del looked_at.tmux.panes["builder"]
    eventually(lambda: looked_at.lines() == {}, "it is gone")


def test_a_screen_that_did_not_change_is_not_read_again(looked_at: Watched) -> None:
    looked_at.shows("builder", "hello", activity=1)
    eventually(lambda: looked_at.lines() == {"builder": "hello"}, "the first look")
    reads, looks = len(looked_at.tmux.captured), looked_at.tmux.looks
    eventually(lambda: looked_at.tmux.looks > looks + 5, "it looked again")
    assert len(looked_at.tmux.captured) == reads
    looked_at.tmux.panes["builder"] = replace(looked_at.tmux.panes["builder"], spawn="s2")
    eventually(lambda: len(looked_at.tmux.captured) > reads, "another session")


def test_a_dead_pane_is_not_read(looked_at: Watched) -> None:
    looked_at.shows("dead", "gone", dead=True)
    looked_at.shows("builder", "hello")
    eventually(lambda: looked_at.lines() == {"builder": "hello"}, "only what lives")


def test_the_line_of_a_program_that_ended_goes(looked_at: Watched) -> None:
    looked_at.shows("builder", "hello")
    eventually(lambda: looked_at.lines() == {"builder": "hello"}, "while it lives")
    looked_at.shows("builder", "hello", dead=True)
    eventually(lambda: looked_at.lines() == {}, "it does nothing any more")


def test_a_line_goes_also_if_nobody_looked_when_it_ended(watched: Watched) -> None:
    leave = watched.feed.subscribe(lambda: None)
    watched.shows("builder", "hello")
    eventually(lambda: watched.lines() == {"builder": "hello"}, "while it lives")
    leave()
    eventually(lambda: watched.tmux.closed == 1, "nobody looks")
    del watched.tmux.panes["builder"]
    leave = watched.feed.subscribe(lambda: None)
    eventually(lambda: watched.lines() == {}, "it is gone")
    leave()


def test_one_look_reads_only_so_many_and_the_next_the_others(looked_at: Watched) -> None:
    for number in range(MOST_LINES_PER_LOOK + 5):
        looked_at.shows(f"a{number}", f"line {number}")
    eventually(lambda: len(looked_at.lines()) == MOST_LINES_PER_LOOK + 5, "all are read in the end")
    assert max(len(captured) for captured in looked_at.tmux.captured) <= MOST_LINES_PER_LOOK


def test_a_whole_screen(looked_at: Watched) -> None:
    looked_at.shows("builder", "\x1b[31mred\x1b[0m\nplain")
    eventually(looked_at.lines, "it was looked at")
    shown = looked_at.screens.screen("builder")
    assert (shown["agent"], shown["spawn"], shown["said"]) == ("builder", "s1", "")
    assert (shown["width"], shown["height"]) == (5, 2)
    assert [[text for text, _ in row] for row in shown["rows"]] == [["red"], ["plain"]]
    assert shown["styles"][shown["rows"][0][0][1]] == {"f": 1}
    del looked_at.tmux.shown["%builder"]
    assert "rows" in looked_at.screens.screen("builder")
    assert looked_at.screens.screen("nobody")["said"] == "nobody does not run, so it has no screen"


def test_a_tmux_that_does_not_answer_is_told_and_tried_again(looked_at: Watched) -> None:
    looked_at.shows("builder", "hello")
    eventually(looked_at.lines, "it was looked at")
    looked_at.tmux.trouble = MusterError("tmux does not answer")
    eventually(lambda: looked_at.faults == ["tmux does not answer"], "told once")
    assert looked_at.screens.screen("builder")["said"] == "tmux does not answer"
    looked_at.tmux.trouble = None
    eventually(lambda: looked_at.faults == ["tmux does not answer", ""], "and when it is over")


def test_a_fault_does_not_end_the_reading(looked_at: Watched) -> None:
    looked_at.tmux.trouble = ZeroDivisionError("a bug")
    looked_at.shows("builder", "hello")
    eventually(lambda: "could not read screens" in looked_at.world.log.getvalue(), "it is in the log")
    looked_at.tmux.trouble = None
    eventually(lambda: looked_at.lines() == {"builder": "hello"}, "the next look is tried")


def test_lines_are_gone_when_nobody_knows_whether_they_are_still_true(looked_at: Watched) -> None:
    looked_at.shows("builder", "hello")
    eventually(looked_at.lines, "it was looked at")
    looked_at.tmux.trouble = MusterError("tmux does not answer")
    eventually(lambda: looked_at.lines() == {}, "tmux may be dead")


def test_a_clock_that_was_set_back_stops_no_lines(looked_at: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at.shows("builder", "before", activity=1)
    eventually(lambda: looked_at.lines() == {"builder": "before"}, "the first look")
    clock = time.time() - 7200
    monkeypatch.setattr(time, "time", lambda: clock)
    looked_at.shows("builder", "after", activity=int(clock))
    eventually(lambda: looked_at.lines() == {"builder": "after"}, "by the new clock")
