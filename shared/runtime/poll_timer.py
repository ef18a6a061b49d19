"""When a service looks: the safety poll, looks it asked for, waits after a failure. Only times, no clock."""

from dataclasses import dataclass

FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 0.5, 10.0


@dataclass(frozen=True)
class PollIntervals:
    """How often to look when nothing is pushed."""

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
    """All times are monotonic seconds. The poll has its own timer, which nothing else resets."""

    def __init__(self, polls: PollIntervals, now: float) -> None:
        self._polls = polls
        self._next_poll = now
        self._look_again: float | None = None
        self.backoff = Backoff()
        self.overdue = True
        """A look is owed, whatever comes: at the start, after a failure, when somebody asked for one."""

    def poll(self, now: float, *, broker_answers: bool) -> bool:
        """Whether the safety poll is due. Without a broker it comes soon, however far off it was."""
        interval = self._polls.connected_s if broker_answers else self._polls.alone_s
        due = now >= self._next_poll
        self._next_poll = now + interval if due else min(self._next_poll, now + interval)
        self.overdue = self.overdue or due
        return due

    def asked_for(self, now: float) -> bool:
        return self.overdue or (self._look_again is not None and now >= self._look_again)

    def succeeded(self, *, more: bool, look_again: float | None) -> None:
        self.backoff.succeeded()
        self.overdue = more
        self._look_again = look_again

    def wakes_at(self, now: float) -> float:
        """When there is something to do if nothing comes."""
        wanted = now if self.overdue else self._next_poll
        if self._look_again is not None:
            wanted = min(wanted, self._look_again)
        return max(wanted, self.backoff.until)
