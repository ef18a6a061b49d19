"""The errors of the tmux package, each with its message."""

from shared.errors import MusterError, Retryable


class TmuxUnavailable(Retryable):
    """tmux gave no answer, or one that can't be relied on."""

    def __init__(self, asked: str, answer: str) -> None:
        super().__init__(f"tmux did not answer {asked!r}: {answer or 'no reply'}")


class TmuxMissing(MusterError):
    """tmux is not installed."""

    def __init__(self) -> None:
        super().__init__("tmux is not installed; install it with apt-get install tmux (or brew install tmux)")


class NoSession(MusterError):
    """tmux said that it has no session, so there is nothing to attach to."""

    def __init__(self, socket: str, answer: str) -> None:
        super().__init__(f"there is no tmux session on socket {socket!r}: {answer}")


class SessionExists(MusterError):
    """A new session's name is taken."""

    def __init__(self, session: str) -> None:
        super().__init__(f"a tmux session named {session!r} already exists; end it or choose another name")


class WrongSpawn(MusterError):
    """The target has another spawn stamp than expected; nothing was changed."""

    def __init__(self, target: str, expected: str, found: str) -> None:
        what = "pane" if target.startswith("%") else "session"
        super().__init__(
            f"tmux {what} {target} was left alone: its spawn stamp is {found!r}, not {expected!r}; look again"
        )


class AlreadyStamped(MusterError):
    """The target belongs to an agent already; nothing was changed."""

    def __init__(self, what: str, fleet: str) -> None:
        super().__init__(f"{what} belongs to the fleet with the stamp {fleet!r} already; have that one forget it first")
        self.fleet = fleet


class NotTyped(MusterError):
    """tmux typed nothing into a pane, with the reason."""

    def __init__(self, pane_id: str, reason: str) -> None:
        super().__init__(f"nothing was typed into pane {pane_id}: {reason}")


class ConnectionLost(TmuxUnavailable):
    """The connection ended before the answer: the command may or may not have been run."""
