"""When a service gets a turn without an event: safety poll, requested turns, backoff after failures. No clock."""

from dataclasses import dataclass

FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 0.5, 10.0


@dataclass(frozen=True)
class PollIntervals:
    """The interval of the safety poll, with and without a working broker."""

    connected_s: float = 30.0
    alone_s: float = 1.0


class Backoff:
    """Waits after failures, longer each time."""

    def __init__(self) -> None:
        self._wait_s = FIRST_BACKOFF_S
        self.until = float("-inf")

    def failed(self, now: float) -> None:
        self.until = now + self._wait_s
        self._wait_s = min(self._wait_s * 2, LONGEST_BACKOFF_S)

    def succeeded(self) -> None:
        self._wait_s = FIRST_BACKOFF_S

    def waits(self, now: float) -> bool:
        return now < self.until


class PollTimer:
    """All times are monotonic seconds. Other turns do not reset the safety poll."""

    def __init__(self, polls: PollIntervals, now: float) -> None:
        self._polls = polls
        self._next_poll = now
        self._look_again: float | None = None
        self.backoff = Backoff()
        self.overdue = True
        """A turn is due now: at the start, after a failure, or on request."""

    def poll(self, now: float, *, broker_answers: bool) -> bool:
        """Whether the safety poll is due. Without a broker the shorter interval applies at once."""
        interval = self._polls.connected_s if broker_answers else self._polls.alone_s
        due = now >= self._next_poll
        self._next_poll = now + interval if due else min(self._next_poll, now + interval)
        self.overdue = self.overdue or due
        return due

    def poll_again(self) -> None:
        """Make the next turn a poll: one has failed, and what it was to look at is not looked at yet."""
        self._next_poll = float("-inf")
        self.overdue = True

    def is_due(self, now: float) -> bool:
        """Whether a turn is due, for the poll or on request."""
        return self.overdue or (self._look_again is not None and now >= self._look_again)

    def succeeded(self, *, more: bool, look_again: float | None) -> None:
        """A turn went well; `more` asks for the next one at once, `look_again` for one at that time."""
        self.backoff.succeeded()
        self.overdue = more
        self._look_again = look_again

    def wakes_at(self, now: float) -> float:
        """When the next turn is due if nothing arrives."""
        wanted = now if self.overdue else self._next_poll
        if self._look_again is not None:
            wanted = min(wanted, self._look_again)
        return max(wanted, self.backoff.until)
