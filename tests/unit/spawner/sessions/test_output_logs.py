"""What is done about a log: decided from what is seen, and carried out on files."""

import stat
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from services.spawner.sessions.output_logs import (
    LOG_GROWS_WITHIN_S,
    LONGEST_RETRY_AFTER_S,
    LogAction,
    LogKeeper,
    LogMemory,
    LogObservation,
    decide,
)
from shared.errors import MusterError
from shared.system.tmux import LogPipe, Pane
from tests.fakes.records import make_pane
from tests.fakes.tmux import FakeTmux

NOW = 1_000_000.0
WELL = LogObservation(piped=True, activity=int(NOW) - 100, size=500, written=NOW - 100)
KNOWN = LogMemory(size=500, grew=NOW - 100)


@pytest.mark.parametrize(
    ("seen", "memory", "act"),
    [
        pytest.param(WELL, KNOWN, None, id="all is well"),
        pytest.param(WELL, None, None, id="all is well at first sight"),
        pytest.param(replace(WELL, size=501), KNOWN, None, id="it grows"),
        pytest.param(replace(WELL, size=1001), KNOWN, LogAction.REPLACE, id="its writer does not keep it small"),
        pytest.param(replace(WELL, size=1000), KNOWN, None, id="it is as large as it may be"),
        pytest.param(replace(WELL, piped=False), KNOWN, LogAction.PIPE, id="no pipe"),
        pytest.param(replace(WELL, piped=False), None, LogAction.PIPE, id="no pipe at first sight"),
        pytest.param(replace(WELL, size=None), KNOWN, LogAction.PIPE, id="somebody removed the file"),
        pytest.param(replace(WELL, piped=False, size=5000), KNOWN, LogAction.PIPE, id="no pipe, and too large"),
        pytest.param(replace(WELL, piped=False, room=False), KNOWN, LogAction.WAIT_FOR_ROOM, id="no pipe and no room"),
        pytest.param(
            replace(WELL, piped=False, room=False), replace(KNOWN, full=True), None, id="that there is no room was said"
        ),
        pytest.param(replace(WELL, piped=False), replace(KNOWN, full=True), LogAction.PIPE, id="there is room again"),
        pytest.param(replace(WELL, activity=int(NOW)), KNOWN, None, id="the pane is ahead, but only just"),
        pytest.param(
            replace(WELL, activity=int(NOW)),
            replace(KNOWN, ahead=NOW - LOG_GROWS_WITHIN_S),
            LogAction.REPAIR,
            id="the pane has been ahead for long",
        ),
        pytest.param(
            replace(WELL, activity=int(NOW), size=501),
            replace(KNOWN, ahead=NOW - LOG_GROWS_WITHIN_S),
            None,
            id="it was ahead, and the log came after",
        ),
        pytest.param(
            replace(WELL, piped=False), replace(KNOWN, tries=1, tried=NOW - 4.9), None, id="it was tried a moment ago"
        ),
        pytest.param(
            replace(WELL, piped=False), replace(KNOWN, tries=1, tried=NOW - 5), LogAction.PIPE, id="tried once"
        ),
        pytest.param(replace(WELL, piped=False), replace(KNOWN, tries=3, tried=NOW - 19), None, id="tried three times"),
        pytest.param(replace(WELL, piped=False), replace(KNOWN, tries=99, tried=NOW - 599), None, id="often, lately"),
        pytest.param(replace(WELL, piped=False), replace(KNOWN, tries=99, tried=NOW - 600), LogAction.PIPE, id="often"),
        pytest.param(
            replace(WELL, piped=False),
            replace(KNOWN, tries=9, tried=NOW + 5000),
            LogAction.PIPE,
            id="the clock was set back",
        ),
        pytest.param(
            replace(WELL, size=5000),
            replace(KNOWN, tries=1, tried=NOW - 1),
            None,
            id="a new writer was put to it a moment ago",
        ),
    ],
)
def test_what_is_to_be_done(seen: LogObservation, memory: LogMemory | None, act: LogAction | None) -> None:
    assert decide(seen, memory, max_bytes=1000, now=NOW)[0] == act


def looks(*seen: tuple[float, LogObservation], memory: LogMemory | None = None) -> list[tuple[float, LogAction]]:
    """What is done over a time, when nothing that is done helps."""
    done = []
    for now, each in seen:
        act, memory = decide(each, memory, max_bytes=1000, now=now)
        if act:
            done.append((now - NOW, act))
    return done


def test_a_quiet_pipe_is_mended_when_the_pane_goes_on() -> None:
    seen = [(NOW + t, replace(WELL, activity=int(NOW + t), written=NOW)) for t in range(12)]
    assert looks(*seen) == [(7, LogAction.REPAIR)]  # a second for whole seconds, then five


def test_a_pane_that_wrote_once_into_a_quiet_pipe_is_enough() -> None:
    seen = [(NOW + t, replace(WELL, activity=int(NOW + 3), written=NOW)) for t in range(30)]
    assert looks(*seen)[0] == (LOG_GROWS_WITHIN_S, LogAction.REPAIR)


def test_a_pane_that_says_nothing_is_left_in_peace() -> None:
    assert looks(*((NOW + t, WELL) for t in range(0, 100_000, 30))) == []


def test_a_busy_log_is_left_in_peace() -> None:
    growing = [(NOW + t, replace(WELL, activity=int(NOW + t), size=500 + t // 3)) for t in range(900)]
    assert looks(*growing) == []


def test_what_does_not_help_is_tried_ever_more_rarely() -> None:
    seen = [(NOW + t, replace(WELL, piped=False)) for t in range(20_000)]
    times = [time for time, _ in looks(*seen)]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert gaps[:8] == [5, 10, 20, 40, 80, 160, 320, 600]
    assert set(gaps[8:]) == {LONGEST_RETRY_AFTER_S}


def test_a_log_that_held_for_a_minute_is_mended_at_once_the_next_time() -> None:
    memory = replace(KNOWN, tries=6, tried=NOW - 61)
    _, memory = decide(replace(WELL, size=600), memory, max_bytes=1000, now=NOW)
    assert memory.tries == 0
    _, early = decide(replace(WELL, size=600), replace(KNOWN, tries=6, tried=NOW - 59), max_bytes=1000, now=NOW)
    assert early.tries == 6


# --- on files ---


@pytest.fixture
def tmux() -> FakeTmux:
    made = FakeTmux()
    made.panes = {"first": pane(), "second": pane("second", pane_id="%2")}
    return made


@pytest.fixture
def keeper(tmux: FakeTmux, tmp_path: Path) -> LogKeeper:
    return LogKeeper(tmux, tmp_path / "logs", max_bytes=100, keep=2)


def pane(agent: str | None = "builder", **changes: Any) -> Pane:
    return make_pane(agent, **{"created": 0, "activity": 0, "piped": True, **changes})


def test_a_log_is_its_owners_alone(keeper: LogKeeper, tmp_path: Path) -> None:
    path = keeper.pipe_for("builder").path
    assert path == tmp_path / "logs" / "builder.log"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.write_text("kept")
    path.chmod(0o644)
    assert keeper.pipe_for("builder").path.read_text() == "kept"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_log_that_cant_be_made_stops_nobody(tmux: FakeTmux, tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file where the directory should be")
    keeper = LogKeeper(tmux, tmp_path / "logs")
    assert keeper.pipe_for("builder").path.name == "builder.log"
    (said,) = keeper.tend([pane()], NOW)
    assert said.startswith("builder: its log ")
    assert "can't be kept" in said
    assert keeper.tend([pane()], NOW + 1) == []


def test_one_agents_trouble_is_not_anothers(keeper: LogKeeper, tmux: FakeTmux, tmp_path: Path) -> None:
    keeper.pipe_for("second")
    (tmp_path / "logs" / "first.log").mkdir()
    said = keeper.tend([pane("first", piped=False), pane("second", piped=False, pane_id="%2")], NOW)
    assert [each.partition(":")[0] for each in said] == ["first", "second"]
    assert tmux.pipes == [("%2", LogPipe(tmp_path / "logs" / "second.log", 100, 2))]


def test_tmuxs_trouble_is_told_and_tried_again(keeper: LogKeeper, tmux: FakeTmux) -> None:
    pipe = keeper.pipe_for("builder")
    tmux.trouble = MusterError("tmux did not answer")
    (said,) = keeper.tend([pane(piped=False)], NOW)
    assert "tmux did not answer" in said
    tmux.trouble = None
    assert keeper.tend([pane(piped=False)], NOW + 1) == []
    keeper.tend([pane(piped=False)], NOW + 10)
    assert tmux.pipes == [("%1", pipe)]


def test_what_is_tried_again_and_again_is_said_twice(keeper: LogKeeper, tmux: FakeTmux) -> None:
    keeper.pipe_for("builder")
    said = [each for t in range(5000) for each in keeper.tend([pane(piped=False)], NOW + t)]
    assert len(tmux.pipes) > 10
    assert len(said) == 2
    assert "third time" in said[1]


def test_dead_panes_and_those_of_others_are_left_alone(keeper: LogKeeper, tmux: FakeTmux) -> None:
    assert keeper.tend([pane(dead=True, piped=False), pane(agent=None, piped=False)], NOW) == []
    assert tmux.pipes == []


def test_a_log_that_is_larger_than_its_writer_lets_it_become_gets_a_new_writer(
    keeper: LogKeeper, tmux: FakeTmux
) -> None:
    pipe = keeper.pipe_for("builder")
    pipe.path.write_text("x" * 101)
    (said,) = keeper.tend([pane()], NOW)
    assert "a line may be missing" in said
    assert tmux.pipes == [("%1", pipe)]
    assert pipe.path.stat().st_size == 101, "its writer rotates it"


def test_the_logs_of_the_gone_are_kept(keeper: LogKeeper) -> None:
    path = keeper.pipe_for("builder").path
    path.write_text("last words")
    keeper.tend([pane()], NOW)
    keeper.tend([], NOW + 60)
    assert path.read_text() == "last words"


def test_what_is_more_than_may_be_kept_is_dropped_and_said(keeper: LogKeeper, tmp_path: Path) -> None:
    directory = keeper.pipe_for("builder").path.parent
    for name in ("gone.log", "gone.log.1", "gone.log.3", "builder.log.2"):
        (directory / name).write_text("x" * 500 + "y" * 100)
    (directory / "note.txt").write_text("x" * 500)
    said = keeper.tend([pane()], NOW)
    assert sorted(said) == [
        f"{agent}: the oldest 500 bytes of {directory / name} were dropped"
        for agent, name in (("builder", "builder.log.2"), ("gone", "gone.log"), ("gone", "gone.log.1"))
    ]
    left = {file.name: file.read_text() for file in directory.iterdir()}
    cut = dict.fromkeys(("builder.log.2", "gone.log", "gone.log.1"), "y" * 100)
    assert left == {"builder.log": "", "note.txt": "x" * 500, **cut}
    assert {stat.S_IMODE((directory / name).stat().st_mode) for name in cut} == {0o600}
    assert keeper.tend([pane()], NOW + 60) == []


def test_a_file_with_an_odd_number_is_passed_over(keeper: LogKeeper) -> None:
    odd = keeper.pipe_for("builder").path.with_name("builder.log.\N{SUPERSCRIPT TWO}")
    odd.write_text("")
    assert keeper.tend([pane()], NOW) == []
    assert odd.exists()


def test_a_log_that_is_not_piped_waits_until_it_can_be_written(keeper: LogKeeper, tmux: FakeTmux) -> None:
    path = keeper.pipe_for("builder").path
    path.unlink()
    path.mkdir()  # what can't be opened for writing, whoever asks
    (said,) = keeper.tend([pane(piped=False)], NOW)
    assert "its output is not logged" in said
    assert keeper.tend([pane(piped=False)], NOW + 1) == []
    path.rmdir()
    path.touch()
    keeper.tend([pane(piped=False)], NOW + 2)
    assert len(tmux.pipes) == 1
