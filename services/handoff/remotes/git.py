"""Runs git without prompts and hooks, with a deadline, only in our own mirrors; and parses what its plumbing prints."""

import re
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from services.handoff.remotes.observation import HEAD, Commit, FileChange
from shared.errors import MusterError
from shared.fleet.loops import without_login
from shared.system.child_process import run

COMMIT_FORMAT = "%H%x00%an%x00%ae%x00%at%x00%ct%x00%s"
"""With NUL between them, which no commit can hold."""
OBJECT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
NONE = re.compile(r"0+")
REASON_CHARACTERS = 300


def read_tips(text: str) -> dict[str, str]:
    """Branches and what they point at, as `ls-remote` tells them."""
    found = {}
    for line in text.split("\n"):
        sha, _, name = line.partition("\t")
        if OBJECT.fullmatch(sha) and name == "HEAD":
            found[HEAD] = sha
        elif OBJECT.fullmatch(sha) and name.startswith("refs/heads/"):
            found[name.removeprefix("refs/heads/")] = sha
    return found


def read_commits(text: str) -> tuple[Commit, ...]:
    """As `rev-list` prints them with our format; older versions put a line before each."""
    found = []
    for line in text.split("\n"):
        parts = line.split("\0", 5)
        if len(parts) == 6 and OBJECT.fullmatch(parts[0]):
            sha, author, email, authored, committed, subject = parts
            found.append(Commit(sha, author, email, _seconds(authored), _seconds(committed), subject))
    return tuple(found)


def read_touches(text: str) -> Iterator[FileChange]:
    """As `diff-tree -z --raw` prints them; with `--stdin`, the id of each commit comes before what it did."""
    commit = ""
    words = iter(text.split("\0"))
    for word in words:
        if OBJECT.fullmatch(word):
            commit = word
        elif word.startswith(":"):
            parts, path = word.split(), next(words, "")
            if len(parts) == 5 and path:  # else it was cut off
                yield FileChange(commit, path, None if NONE.fullmatch(parts[3]) else parts[3])


def _seconds(text: str) -> int:
    """A commit can claim any time, also one that is none."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,40}", text) else 0


def read_blobs(text: str) -> list[str | None]:
    """What `cat-file --batch-check` answers, a line for each question; None if there is no file there."""
    found = [re.fullmatch(r"([0-9a-f]+) blob \d+", line) for line in text.split("\n")]
    return [each[1] if each else None for each in found[:-1]]


def reason_in(complaints: str) -> str:
    """What git says went wrong, in one line and without what people must not see."""
    lines = [" ".join(line.split()) for line in complaints.split("\n") if line.strip()]
    telling = [line for line in lines if line.startswith(("fatal:", "error:", "ERROR:", "ssh:", "remote:"))]
    # The first `fatal:` says what happened, and what follows it is general advice.
    fatal = next((line for line in telling if line.startswith("fatal:")), None)
    said = fatal or (telling or lines or ["it said nothing"])[-1]
    if "Could not read from remote repository" in said:
        # What ssh has to say stands before it; what follows is general advice.
        before = [line for line in lines[: lines.index(said)] if not line.startswith("Warning:")]
        said = before[-1] if before else said
    return without_login(said)[:REASON_CHARACTERS]


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
