"""Reading what git's plumbing prints. Pure."""

import re
from collections.abc import Iterator

from services.handoff.looking.sight import HEAD, Commit, Touch
from shared.fleet.loops import without_login

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


def read_touches(text: str) -> Iterator[Touch]:
    """As `diff-tree -z --raw` prints them; with `--stdin`, the id of each commit comes before what it did."""
    commit = ""
    words = iter(text.split("\0"))
    for word in words:
        if OBJECT.fullmatch(word):
            commit = word
        elif word.startswith(":"):
            parts, path = word.split(), next(words, "")
            if len(parts) == 5 and path:  # else it was cut off
                yield Touch(commit, path, None if NONE.fullmatch(parts[3]) else parts[3])


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
