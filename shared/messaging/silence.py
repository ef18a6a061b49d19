"""Pure. What acknowledgements say about the broker: for how long it has answered, and when a silence of it has ended.

A broker that freezes still accepts connections and bytes, since its kernel does. So neither a connection nor the time
that passed on it shows that the broker has taken care of its subscribers; only its acknowledgements do.
"""

PROBED_EVERY_S = 0.4
"""How often a service publishes its presence while it waits for subscribers."""
GAP_S = 1.0
"""A broker that acknowledges nothing for longer, while it is probed, was frozen."""
SUBSCRIBERS_RETURN_WITHIN_S = 1.5
"""`mosquitto_sub` tries to reconnect once a second, and would miss events that are sent before."""
SENDERS_RETURN_WITHIN_S = 2.0
"""`mosquitto_pub -q 1` tries to reconnect once a second, and sends again what was not acknowledged."""
ANSWERS_SOON_S = 0.5
"""A broker that leaves something unacknowledged for longer may be holding messages."""
LONGEST_WAIT_S = 60.0
"""Then events are sent, however the broker stumbles."""
ACKNOWLEDGES_WITHIN_S = 2.0
"""A broker that leaves a message unacknowledged for longer counts as down: it may hang for hours."""
DROPPED_AFTER_SILENCE_S = 15.0
"""After this the connection is closed, and the next endpoint is tried."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 10.0, 300.0
"""Between the ends of two silences: a broker that is slow now and then is not sent everything each time."""


class SubscriberWait:
    """Gives subscribers time to return, counted only while the broker answers."""

    def __init__(self, now: float) -> None:
        self._gives_up_at = now + LONGEST_WAIT_S
        self._answered_at: float | None = None
        self._answered_s = 0.0

    def answered(self, sent: float, at: float) -> None:
        """Note that a message sent at one time was acknowledged at another."""
        passed = 0.0 if self._answered_at is None else at - self._answered_at
        if passed > GAP_S and at - sent > GAP_S:
            self._answered_s = 0.0  # it was frozen
        else:
            self._answered_s += min(passed, GAP_S)  # a service that is busy with a long turn asks less often
        self._answered_at = at

    def is_over(self, now: float) -> bool:
        return now >= self._gives_up_at or self._answered_s >= SUBSCRIBERS_RETURN_WITHIN_S

    @property
    def ends_by(self) -> float:
        """When it is over if nothing is acknowledged any more."""
        return self._gives_up_at


class HeldMessages:
    """Tells since when a message that arrived may have been under way: a broker that hangs holds it, or its sender.

    While the broker answers, a message was sent when it arrives. While it leaves something unanswered, it is known to
    have been there only when it last acknowledged something. After a silence, or a new connection, senders that were
    held up too get some time.
    """

    def __init__(self, now: float) -> None:
        self._answered_at = now
        self._silence: tuple[float, float] | None = None

    def acknowledged(self, sent: float, at: float) -> None:
        """Note that a message sent at one time was acknowledged at another."""
        if at - sent > GAP_S:
            same = self._silence is not None and sent <= self._silence[1]
            self._silence = (self._silence[0] if self._silence and same else self._answered_at, at)
        self._answered_at = at

    def connected(self, now: float, lost_since: float | None) -> None:
        """Note a new connection; `lost_since` is since when the broker was not known to be there, if it was before."""
        if lost_since is not None:
            self._silence = (lost_since, now)
        self._answered_at = now

    def under_way_since(self, at: float, unanswered: float | None) -> float:
        """The earliest time at which a message that arrives now may have been sent. `unanswered`: when the oldest
        message was sent that the broker has not acknowledged."""
        if self._silence is not None and at <= self._silence[1] + SENDERS_RETURN_WITHIN_S:
            return self._silence[0]
        hangs = unanswered is not None and at - unanswered > ANSWERS_SOON_S
        return min(self._answered_at, at) if hangs else at


class SilenceWatch:
    """Finds silences: from a message that waited too long until one that did not.

    A broker that is slow all the time has a silence that doesn't end. One that falls silent again and again has ends
    that lie further and further apart.
    """

    def __init__(self) -> None:
        self._began: float | None = None
        self._over = False
        self._last_end = float("-inf")
        self._pause = FIRST_PAUSE_S

    def acknowledged(self, sent: float, at: float) -> None:
        """Note that a message sent at one time was acknowledged at another."""
        if at - sent >= ACKNOWLEDGES_WITHIN_S:
            self._began = sent if self._began is None else min(self._began, sent)
            self._over = False
        elif self._began is not None:
            self._over = True

    def connection_lost(self) -> float | None:
        """Forget the silence that nothing was done about yet; returns when it began."""
        began, self._began, self._over = self._began, None, False
        return began

    def ended(self, now: float) -> float | None:
        """The beginning of a silence that has ended, once; None while there is nothing to do."""
        if self._began is None or not self._over or now < self._last_end + self._pause:
            return None
        often = now < self._last_end + 2 * self._pause + LONGEST_PAUSE_S
        self._pause = min(2 * self._pause, LONGEST_PAUSE_S) if often else FIRST_PAUSE_S
        began, self._began, self._over, self._last_end = self._began, None, False, now
        return began
