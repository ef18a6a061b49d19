"""Inbox files: one that changed is told to its reader, one that is gone was read. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from services.handoff.looking.sight import Commit, Sight
from services.handoff.loops.matching import AUTHOR_CHARACTERS, Ping, of_commit, recipients, role_of
from shared.events import InboxChanged
from shared.fleet.loops import InboxFile, Loop
from shared.fleet.placeholders import fill

AT_MOST = 10
"""More messages to one agent in one look are told in one."""


@dataclass(frozen=True)
class News:
    """What became of one file."""

    path: str
    inbox: InboxFile
    change: Literal["changed", "consumed"]
    commit: Commit


@dataclass(frozen=True)
class Inboxes:
    events: list[InboxChanged]
    pings: list[Ping]


def read(loop: Loop, sight: Sight, values: Mapping[str, str], name: str) -> Inboxes:
    """What the inboxes of a loop say now that they did not say when the branch was last seen."""
    found = list(_news(loop, sight))
    events = [
        InboxChanged(
            loop=name,
            path=each.path,
            change=each.change,
            branch=loop.branch,
            commit=each.commit.sha,
            author=each.commit.author[:AUTHOR_CHARACTERS],
            to=recipients(loop, each.inbox.to),
        )
        for each in found
    ]
    return Inboxes(events, list(_pings(loop, [each for each in found if each.change == "changed"], values)))


def globbed(pattern: str) -> re.Pattern[str]:
    """As git reads `:(glob)`: `*` and `?` stay within a directory, `**/` is any number of them."""
    parts = re.split(r"(\*\*/|/\*\*$|^\*\*$|\*|\?)", pattern)
    stands = {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(stands.get(part, re.escape(part)) for part in parts), re.DOTALL)


def _news(loop: Loop, sight: Sight) -> Iterator[News]:
    last = {touch.path: touch for touch in sight.touches}
    commits = {commit.sha: commit for commit in sight.commits}
    for path in sorted({*last, *sight.differs}):
        inbox = next((each for pattern, each in loop.inbox.items() if globbed(pattern).fullmatch(path)), None)
        if inbox is None:
            continue
        if sight.rewritten and path not in sight.differs:
            continue  # the same commits under other ids
        blob = sight.differs[path] if path in sight.differs else last[path].blob
        touch = last.get(path)
        commit = commits.get(touch.commit) if touch else sight.writers.get(path)
        commit = commit or (sight.commits[-1] if sight.commits else Commit(sight.now or "", "somebody", "", 0, 0, ""))
        yield News(path, inbox, "consumed" if blob is None else "changed", commit)


def _pings(loop: Loop, changed: list[News], values: Mapping[str, str]) -> Iterator[Ping]:
    for agent in dict.fromkeys(agent for each in changed for agent in recipients(loop, each.inbox.to)):
        for_agent = [each for each in changed if agent in recipients(loop, each.inbox.to)]
        if len(for_agent) > AT_MOST:
            paths = "\n".join(f"- {each.path}" for each in for_agent[:AT_MOST])
            yield Ping(
                agent, f"{len(for_agent)} files on {loop.branch} are for you, the first of them:\n{paths}", lasts=True
            )
            continue
        for each in for_agent:
            more = {"path": each.path, "agent": agent, "role": role_of(loop, agent, each.inbox.to)}
            yield Ping(agent, fill(each.inbox.text, {**values, **of_commit(each.commit), **more}), lasts=True)
