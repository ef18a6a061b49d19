"""When the monitor looks next, and at which screens."""

from services.monitor.verdict import Verdict
from shared.agents.evidence import EvidenceSource
from shared.contract.states import Activity
from shared.system.tmux import Pane

LOOK_BUSY_S, LOOK_IDLE_S = 0.5, 1.0
"""The time between two looks while something goes on, and while nothing does. Hooks and tmux wake the monitor too."""
QUIET_AFTER_S = 5.0
LOOK_PER_AGENT_S, LOOK_MANY_S = 0.008, 1.0
"""Each agent adds to the time between two looks, up to this: a look costs as much as there are agents. What a screen
alone shows must be believed within two seconds, and then it has to settle."""
CAPTURE_WORKING_S, CAPTURE_SURELY_WORKING_S = 0.9, 4.0
"""An agent at work paints all the time. If a better source says that it works, its screen is captured this often; if
that is the live file, which also tells when it ends, less often."""
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
        return now - captured_at >= (_captured_every_s(verdict) if verdict is not None else 0.0)

    def note(self, pane: Pane, verdict: Verdict, now: float) -> None:
        at_work = verdict.status in (Activity.WORKING, Activity.STARTING, Activity.NEEDS_APPROVAL)
        if at_work or now - pane.activity < QUIET_AFTER_S:
            self._busy_until = now + QUIET_AFTER_S

    def next_look_s(self, now: float, agents: int) -> float:
        busy_s = min(max(LOOK_BUSY_S, agents * LOOK_PER_AGENT_S), LOOK_MANY_S)
        return busy_s if now < self._busy_until <= now + QUIET_AFTER_S else LOOK_IDLE_S


def _captured_every_s(verdict: Verdict) -> float:
    winner = verdict.winner
    if winner is None or verdict.status is not Activity.WORKING or winner.source not in BETTER_THAN_SCREEN:
        return 0.0
    sources = {each.evidence.source for each in verdict.weighed if each.evidence.says is Activity.WORKING}
    return CAPTURE_SURELY_WORKING_S if EvidenceSource.LIVE_FILE in sources else CAPTURE_WORKING_S
