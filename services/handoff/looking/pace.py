"""When a remote is asked again. Pure."""

from dataclasses import dataclass

SOON_S = 5.0
"""After a first failure: most are over by then, and nobody needs to hear of them."""
LONGEST_S = 300.0
TELLS_AFTER = 2
"""So many failures in a row are told."""


@dataclass(frozen=True)
class Pace:
    """How a remote has answered so far."""

    due: float = 0.0
    failures: int = 0

    def succeeded(self, now: float, poll_s: float) -> "Pace":
        return Pace(now + poll_s)

    def failed(self, now: float, poll_s: float) -> "Pace":
        failures = self.failures + 1
        wait_s = min(SOON_S, poll_s) if failures < TELLS_AFTER else poll_s * 2.0 ** min(failures - 1, 16)
        return Pace(now + min(wait_s, max(LONGEST_S, poll_s)), failures)
