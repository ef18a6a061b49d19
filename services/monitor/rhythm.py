"""How often to look, and at which screens: an agent that idles costs next to nothing. Pure."""

from services.monitor.evidence import Source
from services.monitor.fusion import Verdict
from shared.states import Activity
from shared.tmux import Pane

BUSY_S, IDLE_S = 0.5, 1.0
"""Between two looks while something goes on, and while nothing does. Hooks and tmux wake us besides."""
QUIET_AFTER_S = 5.0
AGAIN_S = 0.9
"""An agent at work paints all the time: where better sources say that it works, its screen is read so often."""
BETTER = (Source.HOOKS, Source.LIVE_FILE, Source.TRANSCRIPT)


class Rhythm:
    def __init__(self) -> None:
        self._busy_until = float("-inf")

    def is_due(self, pane: Pane, captured_at: float, verdict: Verdict | None, now: float) -> bool:
        """Whether a screen may have changed since it was captured. tmux tells the second in which it last did."""
        if captured_at == float("-inf") or captured_at > now:
            return True  # it never was, or the clock was set back
        if pane.activity < int(captured_at):
            return False
        winner = verdict.winner if verdict is not None and verdict.status is Activity.WORKING else None
        return winner is None or winner.source not in BETTER or now - captured_at >= AGAIN_S

    def note(self, pane: Pane, verdict: Verdict, now: float) -> None:
        at_work = verdict.status in (Activity.WORKING, Activity.STARTING, Activity.NEEDS_APPROVAL)
        if at_work or now - pane.activity < QUIET_AFTER_S:
            self._busy_until = now + QUIET_AFTER_S

    def next_look_s(self, now: float) -> float:
        return BUSY_S if now < self._busy_until else IDLE_S
