"""What people do beside Muster: in tmux by hand, and with the broker."""

import contextlib
import sys
import time
from collections.abc import Iterator

import pytest

from services.reconciler.foreign_agents import SETTLES_S
from shared.agents.parts import FOLDER
from tests.fixtures.broker import wait_until
from tests.fixtures.by_hand import run_tmux
from tests.fixtures.fleet import RunningFleet


def by_hand(fleet: RunningFleet, *words: str) -> str:
    return run_tmux(fleet.socket, *words)


def demo_by_hand(fleet: RunningFleet, conversation: str) -> str:
    """A command line as a person would type it: Muster knows nothing of it."""
    agent = f"{sys.executable} -I {FOLDER}/demo/demo_agent.py someone --conversation {conversation} --prompt go"
    return f"env MUSTER_FLEET={fleet.path} {agent}"


def wait_until_settled(fleet: RunningFleet, session: str) -> None:
    """Until what runs in a session would be taken for an agent, if it were one."""
    created = int(by_hand(fleet, "display-message", "-p", "-t", f"={session}:", "#{session_created}"))
    wait_until(lambda: time.time() > created + SETTLES_S + 1.5, "it has run for long enough")


@contextlib.contextmanager
def maybe_without_broker(fleet: RunningFleet, *, without: bool) -> Iterator[None]:
    if not without:
        yield
        return
    with fleet.broker_down():
        yield


BOTH = pytest.mark.parametrize(
    "alone", [False, pytest.param(True, marks=pytest.mark.long)], ids=["by push", "without a broker"]
)
