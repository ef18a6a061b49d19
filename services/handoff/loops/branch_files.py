"""Files on a loop's branch: inbox files (changed, or removed and so read) and the status file's done marker. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from services.handoff.loops.commits import AUTHOR_CHARACTERS, Ping, of_commit, recipients, role_of
from services.handoff.remotes.observation import BranchObservation, Commit
from shared.contract.events.loops import InboxChanged
from shared.fleet.launch_needs import fill
from shared.fleet.loops import InboxFile, Loop

AT_MOST = 10
"""More messages to one agent in one look are told in one."""


@dataclass(frozen=True)
class InboxNews:
    """What became of one file."""

    path: str
    inbox: InboxFile
    change: Literal["changed", "consumed"]
    commit: Commit


@dataclass(frozen=True)
class Inboxes:
    events: list[InboxChanged]
    pings: list[Ping]


def read(loop: Loop, sight: BranchObservation, values: Mapping[str, str], name: str) -> Inboxes:
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


def _news(loop: Loop, sight: BranchObservation) -> Iterator[InboxNews]:
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
        yield InboxNews(path, inbox, "consumed" if blob is None else "changed", commit)


def _pings(loop: Loop, changed: list[InboxNews], values: Mapping[str, str]) -> Iterator[Ping]:
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


PLACEHOLDERS = (
    (re.compile(r"<(?![^<>]*(?:@|://))[^<>]*>"), "a placeholder in < >"),
    (re.compile(r"\{[^{}]*\}"), "a placeholder in { }"),
    (re.compile(r"\[(?![xX✓✔]\])[^\[\]]*\](?!\()"), "a placeholder or an empty box in [ ]"),
    (re.compile(r"(?:\s|^)(?:\.\.\.|…)|(?:\.\.\.|…)\s*$"), "dots in the place of words"),
    (re.compile(r"_{3,}|\?{3,}"), "a blank to be filled in"),
    (
        re.compile(r"\b(?:(?i:TBD|TBC)\b|XXX+\b|YYYY\b|HH:MM\b|(?:TODO|FIXME)(?=\s*(?:[:)]|$)))"),
        "a word that stands for what is not there yet",
    ),
)
CHOICE_BEFORE, CHOICE_AFTER = re.compile(r"\w *[|/] *\Z"), re.compile(r" *[|/] *\w")
FENCE = re.compile(r"^ {0,3}(?:(?P<ticks>`{3,})[^`]*|(?P<tildes>~{3,}).*)$")
BEGIN_COMMENT, END_COMMENT = "<!--", "-->"
LONGEST_LINE = 2_000


@dataclass(frozen=True)
class StatusFile:
    """What a status file says of one phase."""

    markers: tuple[str, ...] = ()
    """The lines by which it is done."""
    refused: tuple[tuple[str, str], ...] = ()
    """Lines that look like it and do not count, and why."""


@lru_cache(maxsize=512)
def read_status(text: str, done: str) -> StatusFile:
    """Remembered, for it is asked at every turn, and files seldom change."""
    pattern = re.compile(done)
    markers: list[str] = []
    refused: list[tuple[str, str]] = []
    for line in _meant(text):
        found = pattern.search(line)
        if found is None:
            continue
        why = _placeholder(line, found)
        if why:
            refused.append((line, why))
        else:
            markers.append(line)
    return StatusFile(tuple(dict.fromkeys(markers)), tuple(dict.fromkeys(refused)))


def _meant(text: str) -> Iterator[str]:
    """The lines that are neither quoted nor commented out: those show how it is written, and do not say it."""
    fence, in_comment = "", False
    for line in (each.rstrip()[:LONGEST_LINE] for each in text.removeprefix("\ufeff").split("\n")):
        if fence:
            fence = "" if _closes(line, fence) else fence
        elif not in_comment and (mark := FENCE.match(line)):
            fence = mark["ticks"] or mark["tildes"]
        else:
            said, in_comment = _without_comments(line, in_comment=in_comment)
            if said.strip() and not said.lstrip().startswith(">"):
                yield said


def _closes(line: str, fence: str) -> bool:
    mark = line.strip()
    return len(mark) >= len(fence) and set(mark) == {fence[0]} and len(line) - len(line.lstrip()) < 4


def _without_comments(line: str, *, in_comment: bool) -> tuple[str, bool]:
    """What a line says outside of comments, and whether one goes on behind it."""
    said = ""
    while True:
        before, found, line = line.partition(END_COMMENT if in_comment else BEGIN_COMMENT)
        said += "" if in_comment else before
        if not found:
            return said.rstrip(), in_comment
        in_comment = not in_comment


def _placeholder(line: str, found: re.Match[str]) -> str:
    """Why a line is only a template; empty where it is not."""
    if any(group is not None and not group.strip() for group in found.groupdict().values()):
        return "a blank to be filled in"
    is_row = line.lstrip().startswith("|")  # of a table, whose cells are no choice
    if not is_row and (CHOICE_BEFORE.search(line[: found.start()]) or CHOICE_AFTER.match(line[found.end() :])):
        return "a choice that nobody made"
    return next((why for pattern, why in PLACEHOLDERS if pattern.search(line)), "")
