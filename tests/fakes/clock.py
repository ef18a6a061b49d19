"""The monotonic clock, which a test may put forward."""

import time


class FakeClock:
    """Goes as the real one does, and ahead of it. Give `monotonic` to `monkeypatch.setattr(time, "monotonic", …)`."""

    def __init__(self) -> None:
        self._real = time.monotonic
        self.ahead = 0.0

    def monotonic(self) -> float:
        return self._real() + self.ahead
