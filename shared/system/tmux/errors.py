"""What can be wrong with tmux, each with its own sentence."""

from shared.errors import MusterError, Retryable


class TmuxUnavailable(Retryable):
    """tmux gave no answer, or none that can be relied on."""

    def __init__(self, asked: str, answer: str) -> None:
        super().__init__(f"tmux did not answer {asked!r}: {answer or 'no reply'}")


class TmuxMissing(MusterError):
    """There is no program called tmux."""

    def __init__(self) -> None:
        super().__init__("tmux is not installed; install it with apt-get install tmux (or brew install tmux)")


class NoSession(MusterError):
    """tmux said surely that it has no session, so there is nothing to ask or to attach to."""

    def __init__(self, socket: str, answer: str) -> None:
        super().__init__(f"there is no tmux session on socket {socket!r}: {answer}")


class SessionExists(MusterError):
    """The name of a session that was to be started is taken."""

    def __init__(self, session: str) -> None:
        super().__init__(f"a tmux session named {session!r} already exists; end it or choose another name")


class WrongSpawn(MusterError):
    """What was to be ended or let go is not what was meant."""

    def __init__(self, target: str, expected: str, found: str) -> None:
        what = "pane" if target.startswith("%") else "session"
        super().__init__(
            f"tmux {what} {target} was left alone: its spawn stamp is {found!r}, not {expected!r}; look again"
        )


class AlreadyStamped(MusterError):
    """What was to be taken over belongs to somebody."""

    def __init__(self, what: str, fleet: str) -> None:
        super().__init__(f"{what} belongs to the fleet with the stamp {fleet!r} already; have that one forget it first")
        self.fleet = fleet


class NotTyped(MusterError):
    """tmux put nothing into a pane, and says why."""

    def __init__(self, pane_id: str, reason: str) -> None:
        super().__init__(f"nothing was typed into pane {pane_id}: {reason}")


class ConnectionLost(TmuxUnavailable):
    """The connection ended before the answer came: what was asked may or may not have been done."""
