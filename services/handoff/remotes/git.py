"""Runs git in our own mirrors, without prompts and hooks and with a deadline, and parses what it prints."""

import re
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from services.handoff.remotes.observation import HEAD, Commit, FileChange
from shared.errors import MusterError
from shared.fleet.loops import without_login
from shared.system.child_process import run

COMMIT_FORMAT = "%H%x00%an%x00%ae%x00%at%x00%ct%x00%s"
"""Fields are separated by NUL, which no commit can hold."""
OBJECT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
NONE = re.compile(r"0+")
REASON_CHARACTERS = 300


def read_tips(text: str) -> dict[str, str]:
    """Branches and their commits, from `ls-remote`."""
    found = {}
    for line in text.split("\n"):
        sha, _, name = line.partition("\t")
        if OBJECT.fullmatch(sha) and name == "HEAD":
            found[HEAD] = sha
        elif OBJECT.fullmatch(sha) and name.startswith("refs/heads/"):
            found[name.removeprefix("refs/heads/")] = sha
    return found


def read_commits(text: str) -> tuple[Commit, ...]:
    """From `rev-list` with `COMMIT_FORMAT`; older versions of git print a line before each commit."""
    found = []
    for line in text.split("\n"):
        parts = line.split("\0", 5)
        if len(parts) == 6 and OBJECT.fullmatch(parts[0]):
            sha, author, email, authored, committed, subject = parts
            found.append(Commit(sha, author, email, _seconds(authored), _seconds(committed), subject))
    return tuple(found)


def read_file_changes(text: str) -> Iterator[FileChange]:
    """From `diff-tree -z --raw`; with `--stdin`, the id of each commit comes before its changes."""
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
    """A commit can claim any time, even one that is not a number."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,40}", text) else 0


def read_blobs(text: str) -> list[str | None]:
    """From `cat-file --batch-check`, one for each line of input; None: no such file."""
    found = [re.fullmatch(r"([0-9a-f]+) blob \d+", line) for line in text.split("\n")]
    return [each[1] if each else None for each in found[:-1]]


def reason_in(complaints: str) -> str:
    """What git says went wrong: one line, without passwords."""
    lines = [" ".join(line.split()) for line in complaints.split("\n") if line.strip()]
    messages = [line for line in lines if line.startswith(("fatal:", "error:", "ERROR:", "ssh:", "remote:"))]
    # The first `fatal:` says what happened; general advice follows it.
    fatal = next((line for line in messages if line.startswith("fatal:")), None)
    said = fatal or (messages or lines or ["it said nothing"])[-1]
    if "Could not read from remote repository" in said:
        # The message of ssh comes before this line.
        before = [line for line in lines[: lines.index(said)] if not line.startswith("Warning:")]
        said = before[-1] if before else said
    return without_login(said)[:REASON_CHARACTERS]


MARK = "MUSTER_HANDOFF"
"""The variable that marks our git processes; its value is the directory of the mirrors."""
FIRST_ASK_TIMEOUT_S, ASK_TIMEOUT_S, WORK_TIMEOUT_S, FETCH_TIMEOUT_S = 6.0, 20.0, 120.0, 1800.0
OUTPUT_BYTES = 64 << 20

OWN_VARIABLES: Mapping[str, str] = {
    "LC_ALL": "C",  # its messages are parsed, and shown to people
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",  # empty, not unset: this disables core.askPass and SSH_ASKPASS too
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_FLUSH": "0",
}
PASSED = ("GIT_SSH", "GIT_CONFIG_", "GIT_EXEC_PATH", "GIT_SSL_", "GIT_PROXY", "GIT_HTTP_", "GIT_ALLOW_PROTOCOL")
"""Of git's own variables only those with these prefixes are passed on: they say how to reach a remote. Others could
have git work on another repository, or read paths differently."""
NEVER_PASSED = ("SSH_ASKPASS", "GIT_CONFIG_PARAMETERS")
SETTINGS = (
    *("-c", "credential.interactive=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "gc.autoDetach=false"),  # nothing runs on after git has ended
    *("-c", "maintenance.auto=false"),
    *("-c", "protocol.ext.allow=never"),
    *("-c", "fetch.recurseSubmodules=false"),
    *("-c", "fetch.writeCommitGraph=false"),
    *("-c", "advice.fetchShowForcedUpdates=false"),
)


class GitFailed(MusterError):
    """Git failed; the message is git's. The status is None where git did not end by itself."""

    def __init__(self, said: str, status: int | None = None) -> None:
        super().__init__(said)
        self.status = status


class Git:
    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        """`directory` holds the mirrors; `environment` is ours, where git finds its helpers."""
        passed = {
            name: value
            for name, value in environment.items()
            if name not in NEVER_PASSED and (not name.startswith("GIT_") or name.startswith(PASSED))
        }
        self._env = {**passed, **OWN_VARIABLES, MARK: str(directory)}
        self._cancelled = threading.Event()

    def __call__(
        self, *arguments: str, within_s: float = WORK_TIMEOUT_S, stdin: bytes | None = None, at: Path = Path("/")
    ) -> str:
        """What git prints. GitFailed if git fails or takes too long."""
        argv = ["git", *SETTINGS, *arguments]
        try:
            ended = run(
                argv, self._env, at, stdin, within_s, self._cancelled, at_most_bytes=OUTPUT_BYTES, ends_with_us=False
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
        """End what runs. Nothing can be run afterwards."""
        self._cancelled.set()
