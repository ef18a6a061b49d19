"""The fake of tmux answers as tmux does: the same scene on both, step by step."""

from collections.abc import Callable
from pathlib import Path

import pytest

from shared.errors import MusterError
from shared.system.tmux import Pane, Tmux
from tests.fakes.tmux import FakeTmux
from tests.integration.tmux.server import SLEEPER, Server, log_to

Scene = Callable[[Tmux, Path], list[object]]


def facts(pane: Pane | None) -> object:
    """What is the same in every run."""
    if pane is None:
        return None
    own = pane.own == pane.pane_id if pane.own else None
    return (pane.session, pane.dead, pane.agent, pane.spawn, pane.fleet, pane.piped, pane.pane_only, pane.left, own)


def tried(do: Callable[[], object]) -> object:
    """What came of it: an answer, or the name of what was raised."""
    try:
        answer = do()
    except MusterError as error:
        return type(error).__name__
    return facts(answer) if isinstance(answer, Pane) else answer


def begin(tmux: Tmux, home: Path, session: str = "one", spawn: str = "s1") -> Pane:
    return tmux.start(session=session, argv=SLEEPER, cwd=home, env={}, agent=session, spawn=spawn, fleet="f")


def nothing_is_there(tmux: Tmux, _home: Path) -> list[object]:
    return [
        tried(tmux.look),
        tried(lambda: tmux.stamps("f")),
        tried(lambda: tmux.agent_panes("f")),
        tried(lambda: tmux.screens(["%7"])),
        tried(lambda: tmux.kill("$7", spawn="s1")),
        tried(lambda: tmux.unstamp("$7", spawn="s1")),
        tried(lambda: tmux.stamp("one", agent="one", spawn="s1", fleet="f")),
        tried(lambda: tmux.pipe("%7", log_to(Path("/dev/null")))),
        tried(lambda: tmux.unpipe("%7")),
        tried(lambda: tmux.press("%7", ["a"], spawn="s1")),
        tried(lambda: tmux.ask(("display-message", "-p", "x"))),
        tmux.server,
    ]


def sessions_begin_and_end(tmux: Tmux, home: Path) -> list[object]:
    one, two = begin(tmux, home), begin(tmux, home, "two", "s2")
    return [
        *map(facts, (one, two)),
        tried(lambda: begin(tmux, home)),
        tried(lambda: begin(tmux, home / "nowhere", "three")),
        [facts(each) for each in tmux.look()],
        sorted((each.agent, each.spawn, each.dead) for each in tmux.stamps("f")),
        tmux.stamps("other"),
        {agent: facts(each) for agent, each in tmux.agent_panes("f").items()},
        tmux.screens([one.pane_id, "%77"]),
        tried(lambda: tmux.kill(one.session_id, spawn="s2")),
        tried(lambda: tmux.kill(one.session_id, spawn="s1")),
        tried(lambda: tmux.kill(one.session_id, spawn="s1")),
        [facts(each) for each in tmux.look()],
        tried(lambda: tmux.kill("$77")),
    ]


def sessions_change_hands(tmux: Tmux, home: Path) -> list[object]:
    one = begin(tmux, home)
    begin(tmux, home, "two", "s2")  # tmux ends with its last session
    return [
        tried(lambda: tmux.stamp("one", agent="one", spawn="s3", fleet="g")),
        tried(lambda: tmux.unstamp(one.target, spawn="s9")),
        tried(lambda: tmux.unstamp(one.target, spawn="s1", rename="free", left="f")),
        tried(lambda: tmux.unstamp(one.target, spawn="s1")),
        [facts(each) for each in tmux.look()],
        tried(lambda: tmux.stamp("one", agent="one", spawn="s3", fleet="g")),
        tried(lambda: tmux.stamp("free", agent="one", spawn="s3", fleet="g")),
        sorted((each.agent, each.spawn, each.dead) for each in tmux.stamps("g")),
    ]


def panes_are_typed_into(tmux: Tmux, home: Path) -> list[object]:
    one = begin(tmux, home)
    return [
        tried(lambda: tmux.press(one.pane_id, ["a"], spawn="s1")),
        tried(lambda: tmux.paste(one.pane_id, "text", spawn="s1")),
        tried(lambda: tmux.press(one.pane_id, ["a"], spawn="s9")),
        tried(lambda: tmux.paste("%77", "text", spawn="s1")),
        tried(lambda: tmux.pipe(one.pane_id, log_to(home / "log"))),
        [each.piped for each in tmux.look()],
        tried(lambda: tmux.unpipe(one.pane_id)),
        [each.piped for each in tmux.look()],
        tried(lambda: tmux.pipe("%77", log_to(home / "log"))),
    ]


@pytest.mark.parametrize(
    "scene", [nothing_is_there, sessions_begin_and_end, sessions_change_hands, panes_are_typed_into]
)
def test_the_fake_plays_as_tmux_does(server: Server, scene: Scene) -> None:
    assert scene(FakeTmux(), server.home) == scene(server.tmux, server.home)
