"""When the monitor looks next, and at which screens."""

from services.monitor.verdict import Verdict
from shared.agents.evidence import EvidenceSource
from shared.contract.states import Activity
from shared.system.tmux import Pane

LOOK_BUSY_S, LOOK_IDLE_S = 0.5, 1.0
"""The time between two looks while something goes on, and while nothing does. Hooks and tmux wake the monitor too."""
QUIET_AFTER_S = 5.0
CAPTURE_WORKING_S = 0.9
"""An agent at work paints all the time. If a better source says that it works, its screen is captured this often."""
BETTER_THAN_SCREEN = (EvidenceSource.HOOKS, EvidenceSource.LIVE_FILE, EvidenceSource.TRANSCRIPT)
NEVER = float("-inf")


class LookSchedule:
    def __init__(self) -> None:
        self._busy_until = NEVER

    def is_due(self, pane: Pane, captured_at: float, verdict: Verdict | None, now: float) -> bool:
        """Whether a screen may have changed since it was captured. tmux gives only the second of the last change."""
        if captured_at == NEVER or captured_at > now:  # or the clock was set back
            return True
        if pane.activity < int(captured_at):
            return False
        winner = verdict.winner if verdict is not None and verdict.status is Activity.WORKING else None
        return winner is None or winner.source not in BETTER_THAN_SCREEN or now - captured_at >= CAPTURE_WORKING_S

    def note(self, pane: Pane, verdict: Verdict, now: float) -> None:
        at_work = verdict.status in (Activity.WORKING, Activity.STARTING, Activity.NEEDS_APPROVAL)
        if at_work or now - pane.activity < QUIET_AFTER_S:
            self._busy_until = now + QUIET_AFTER_S

    def next_look_s(self, now: float) -> float:
        return LOOK_BUSY_S if now < self._busy_until <= now + QUIET_AFTER_S else LOOK_IDLE_S
