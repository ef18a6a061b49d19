"""Dialogs of demo agents: brought up, looked at, and answered by hand."""

from tests.fixtures.broker import wait_until
from tests.fixtures.by_hand import run_tmux
from tests.fixtures.fleet import RunningFleet


def tell(fleet: RunningFleet, agent: str, text: str) -> None:
    """Type a line at the agent's terminal."""
    press(fleet, agent, "-l", text)
    press(fleet, agent, "Enter")


def wait_for_screen(fleet: RunningFleet, agent: str, words: str) -> None:
    wait_until(lambda: words in fleet.screen(agent), f"{words!r} on the screen of {agent}")


def ask_for_permission(fleet: RunningFleet, agent: str, what: str) -> None:
    tell(fleet, agent, f"ask {what}")
    wait_for_screen(fleet, agent, "Do you allow this?")


def press(fleet: RunningFleet, agent: str, *keys: str) -> None:
    """At the terminal."""
    pane = fleet.pane(agent)
    assert pane is not None
    run_tmux(fleet.socket, "send-keys", "-t", pane.pane_id, *keys)


def ask_another(fleet: RunningFleet, agent: str, what: str) -> None:
    """Somebody at the terminal refuses what was asked, and lets it ask for something else."""
    press(fleet, agent, "2")
    wait_for_screen(fleet, agent, "enter to send")
    tell(fleet, agent, f"ask {what}")
    wait_for_screen(fleet, agent, what)
    wait_for_screen(fleet, agent, "Do you allow this?")
