"""Runs git: it asks nobody anything, reads no hook, ends in time, and touches no repository but our own mirrors."""

import threading
from collections.abc import Mapping
from pathlib import Path

from services.handoff.looking.reading import reason_in
from shared.errors import MusterError
from shared.running import run

MARK = "MUSTER_HANDOFF"
"""The variable that marks what was started here, with the directory of the mirrors."""
FIRST_ASKS_WITHIN_S, ASKS_WITHIN_S, WORKS_WITHIN_S, FETCHES_WITHIN_S = 6.0, 20.0, 120.0, 1800.0
AT_MOST_BYTES = 64 << 20

SAID_BY_US: Mapping[str, str] = {
    "LC_ALL": "C",  # its words are told to people, and read for the reason
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",  # empty, and not unset: then core.askPass and SSH_ASKPASS do not count either
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_FLUSH": "0",
}
SHOWN = ("GIT_SSH", "GIT_CONFIG_", "GIT_EXEC_PATH", "GIT_SSL_", "GIT_PROXY", "GIT_HTTP_", "GIT_ALLOW_PROTOCOL")
"""Of all variables that git heeds only these are seen, by how they begin: how it reaches a remote. Others would have it
work on somebody's repository, or read paths otherwise than they are meant."""
HIDDEN = ("SSH_ASKPASS", "GIT_CONFIG_PARAMETERS")
SETTINGS = (
    *("-c", "credential.interactive=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "gc.autoDetach=false"),  # nothing goes on when git has ended
    *("-c", "maintenance.auto=false"),
    *("-c", "protocol.ext.allow=never"),
    *("-c", "fetch.recurseSubmodules=false"),
    *("-c", "fetch.writeCommitGraph=false"),
    *("-c", "advice.fetchShowForcedUpdates=false"),
)


class GitFailed(MusterError):
    """Git could not do it; the message says what git said. The status is None where it did not come to an end."""

    def __init__(self, said: str, status: int | None = None) -> None:
        super().__init__(said)
        self.status = status


class Git:
    def __init__(self, directory: Path, own: Mapping[str, str]) -> None:
        """`directory`: where the mirrors are; `own`: our environment, in which git finds its helpers."""
        shown = {
            name: value
            for name, value in own.items()
            if name not in HIDDEN and (not name.startswith("GIT_") or name.startswith(SHOWN))
        }
        self._env = {**shown, **SAID_BY_US, MARK: str(directory)}
        self._cancelled = threading.Event()

    def __call__(
        self, *arguments: str, within_s: float = WORKS_WITHIN_S, stdin: bytes | None = None, at: Path = Path("/")
    ) -> str:
        """What it prints. GitFailed if it does not end well, or not in time."""
        argv = ["git", *SETTINGS, *arguments]
        try:
            ended = run(
                argv, self._env, at, stdin, within_s, self._cancelled, at_most_bytes=AT_MOST_BYTES, ends_with_us=False
            )
        except FileNotFoundError as error:
            missing = "git is not on the PATH; install it" if at.is_dir() else f"{at} is gone"
            raise GitFailed(missing) from error
        except OSError as error:
            raise GitFailed(f"git could not be started: {error.strerror or error}") from error
        if ended.status is None:
            raise GitFailed(f"it did not answer within {within_s:g} s")
        if ended.status != 0:
            raise GitFailed(reason_in(ended.err), ended.status)
        return ended.out

    def close(self) -> None:
        """End what runs; nothing can be run after it."""
        self._cancelled.set()
