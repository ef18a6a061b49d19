"""Loops, commits and observations for the tests of handoff: a test names what matters to it."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, TypeVar

from services.handoff.loops.commits import MatchedCommits, match
from services.handoff.loops.templates import values_of
from services.handoff.remotes.observation import BranchObservation, BranchWatch, Commit, FileChange
from shared.contract.commands import Reply
from shared.fleet.loops import Loop
from shared.runtime.memory import MemoryTable

T = TypeVar("T")

NOW = 1_900_000_000.0
BEFORE, TIP = "b" * 40, "f" * 40


def sha(number: int) -> str:
    return f"{number:08x}".ljust(40, "a")


def commit(number: int = 10, subject: str = "claim: the parser", **more: Any) -> Commit:
    known = {"author": "Ada", "email": "ada@example.org", "authored": 1_000 + number, "committed": 2_000 + number}
    return Commit(sha(number), subject=subject, **{**known, **more})


def file_change(path: str, blob: str | None = "b1", by: int = 10) -> FileChange:
    return FileChange(sha(by), path, blob)


def watch(**more: Any) -> BranchWatch:
    return BranchWatch(**{"loop": "app", "branch": "main", "is_known": True, "tip": BEFORE, **more})


def observation(commits: Iterable[Commit] = (), **more: Any) -> BranchObservation:
    came = tuple(commits)
    return BranchObservation(
        **{"loop": "app", "watch": watch(), "tip": TIP, "commits": came, "total": len(came), **more}
    )


def loop(**more: Any) -> Loop:
    roles = {"builder": "bob", "reviewer": "rita"}
    return Loop.model_validate({"remote": "https://example.org/app.git", "roles": roles, **more})


def phases(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


def reply(*, ok: bool = True, said: str = "it could not be done") -> Reply:
    when = datetime.fromtimestamp(NOW, UTC)
    return Reply(id="c1", verb="send", ok=ok, said=said, by="spawner", time=when)


def matched(observed: BranchObservation, given: Loop, *reported: str) -> MatchedCommits:
    return match(given, observed, reported, values_of("app", given, 0), "app")


def read_back(table: MemoryTable[T], value: T) -> T:
    """A record as a process that starts later reads it from the journal."""
    return table.load(json.loads(json.dumps(table.dump(value))))
