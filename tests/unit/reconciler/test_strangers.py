"""What an agent that somebody started is called."""

from pathlib import Path
from typing import Any

import pytest

from services.reconciler.strangers import name_for
from services.reconciler.unstamped import Stranger
from shared.fleet import Declaration, Fleet
from shared.ids import is_id
from shared.processes import Process
from tests.unit.reconciler.seeing import pane

FLEET = Fleet(
    Path("/f/fleet.yaml"),
    Declaration.model_validate({"agents": {"builder": {"backend": "claude"}, "tester": {"backend": "codex"}}}),
)


def stranger(session: str, **changes: Any) -> Stranger:
    known: dict[str, Any] = {"backend": "claude", "process": Process(1, 0, "claude", 1.0), "alone": True}
    return Stranger(pane(None, session=session), **{**known, **changes})


@pytest.mark.parametrize(
    ("found", "taken", "name"),
    [
        (stranger("scratch"), (), "scratch"),
        (stranger("My Work"), (), "my-work"),
        (stranger("scratch"), ("scratch",), "scratch-2"),
        (stranger("scratch"), ("scratch", "scratch-2"), "scratch-3"),
        (stranger("0", alone=False), (), "0-claude"),
        (stranger("日本"), (), "claude"),
        (stranger("builder"), (), "builder"),  # the fleet file has it so, and it is not recorded
        (stranger("builder"), ("builder",), "builder-2"),
        (stranger("tester"), (), "tester-2"),  # of the same name, and something else
        (stranger("builder", alone=False), (), "builder-claude"),
        (stranger("x" * 200), ("x" * 64,), "x" * 60 + "-2"),
    ],
)
def test_it_is_called_after_its_session(found: Stranger, taken: tuple[str, ...], name: str) -> None:
    assert name_for(found, FLEET, taken) == name
    assert is_id(name)
