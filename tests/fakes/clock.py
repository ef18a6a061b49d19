"""A monotonic clock that a test can move forward."""

import time


class FakeClock:
    """Runs ahead of the real clock. Use it with `monkeypatch.setattr(time, "monotonic", clock.monotonic)`."""

    def __init__(self) -> None:
        self._real = time.monotonic
        self.ahead = 0.0

    def monotonic(self) -> float:
        return self._real() + self.ahead
