"""Forgetting a session that has ended: only if it is still the newest, and nothing that runs is touched."""

from pathlib import Path
from typing import Any

import pytest

from services.spawner.commands.replies import Refusal
from services.spawner.commands.sessions import must_have_ended
from services.spawner.sessions.memory import Origin
from tests.unit.spawner.samples import ended, pane, view

OURS: dict[str, Any] = {"agent": "helper", "fleet": "f"}


@pytest.mark.parametrize(
    ("newest", "shown", "said"),
    [
        ("s1", "s1", "helper runs, and is not forgotten"),
        ("s1", "s2", "helper runs, and is not forgotten"),
        ("s2", None, "helper had another session since, s2"),
    ],
)
def test_what_was_not_meant_is_refused(tmp_path: Path, newest: str, shown: str | None, said: str) -> None:
    panes = {"helper": pane(spawn=shown, **OURS)} if shown else {}
    now = view(tmp_path, known={"helper": ended(newest, origin=Origin.ADOPTED)}, panes=panes)
    with pytest.raises(Refusal, match=said):
        must_have_ended(now, "helper", "s1")


def test_a_later_session_that_has_ended_was_not_meant(tmp_path: Path) -> None:
    panes = {"helper": pane(spawn="s2", dead=True, **OURS)}
    with pytest.raises(Refusal, match="another session since, s2"):
        must_have_ended(view(tmp_path, known={"helper": ended("s1")}, panes=panes), "helper", "s1")


@pytest.mark.parametrize("panes", [{}, {"helper": pane(spawn="s1", dead=True, **OURS)}], ids=["gone", "dead"])
def test_what_has_ended_is_forgotten(tmp_path: Path, panes: dict[str, Any]) -> None:
    now = view(tmp_path, known={"helper": ended("s1")}, panes=panes)
    must_have_ended(now, "helper", "s1")
    with pytest.raises(Refusal, match="another session since, s1"):
        must_have_ended(now, "helper", "s0")
