"""Files on a loop's branch: inbox files (changed, or deleted and so read) and the status file's done lines. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from services.handoff.loops.commits import AUTHOR_CHARACTERS, OutgoingMessage, recipients, role_of, values_of_commit
from services.handoff.remotes.observation import BranchObservation, Commit
from shared.contract.events.loops import InboxChanged
from shared.fleet.launch_needs import fill
from shared.fleet.loops import InboxFile, Loop

# --- inbox files ---

REPORTED_SINGLY_AT_MOST = 10
"""More files for one agent in one observation are one message."""


@dataclass(frozen=True)
class InboxNews:
    events: list[InboxChanged]
    messages: list[OutgoingMessage]


@dataclass(frozen=True)
class _InboxFileChange:
    path: str
    inbox: InboxFile
    change: Literal["changed", "consumed"]
    commit: Commit


def inbox_news(loop: Loop, observation: BranchObservation, values: Mapping[str, str], name: str) -> InboxNews:
    """What became of the inbox files of the loop called `name` since the branch was last observed."""
    found = list(_inbox_changes(loop, observation))
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
    return InboxNews(events, list(_messages(loop, [each for each in found if each.change == "changed"], values)))


def glob_pattern(pattern: str) -> re.Pattern[str]:
    """As git reads `:(glob)`: `*` and `?` stay within a directory, `**/` is any number of directories."""
    parts = re.split(r"(\*\*/|/\*\*$|^\*\*$|\*|\?)", pattern)
    meanings = {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(meanings.get(part, re.escape(part)) for part in parts), re.DOTALL)


def _inbox_changes(loop: Loop, observation: BranchObservation) -> Iterator[_InboxFileChange]:
    last = {change.path: change for change in observation.file_changes}
    commits = {commit.sha: commit for commit in observation.commits}
    for path in sorted({*last, *observation.files}):
        inbox = next((each for pattern, each in loop.inbox.items() if glob_pattern(pattern).fullmatch(path)), None)
        if inbox is None:
            continue
        if observation.rewritten and path not in observation.files:
            continue  # the same commits under other ids
        blob = observation.files[path] if path in observation.files else last[path].blob
        commit = commits.get(last[path].commit) if path in last else observation.last_commits.get(path)
        if commit is None and observation.commits:
            commit = observation.commits[-1]
        commit = commit or Commit(observation.tip or "", "somebody", "", 0, 0, "")
        yield _InboxFileChange(path, inbox, "consumed" if blob is None else "changed", commit)


def _messages(loop: Loop, changed: list[_InboxFileChange], values: Mapping[str, str]) -> Iterator[OutgoingMessage]:
    for agent in dict.fromkeys(agent for each in changed for agent in recipients(loop, each.inbox.to)):
        for_agent = [each for each in changed if agent in recipients(loop, each.inbox.to)]
        if len(for_agent) > REPORTED_SINGLY_AT_MOST:
            paths = "\n".join(f"- {each.path}" for each in for_agent[:REPORTED_SINGLY_AT_MOST])
            text = f"{len(for_agent)} files on {loop.branch} are for you, the first of them:\n{paths}"
            yield OutgoingMessage(agent, text, outlives_phase=True)
            continue
        for each in for_agent:
            more = {"path": each.path, "agent": agent, "role": role_of(loop, agent, each.inbox.to)}
            text = fill(each.inbox.text, {**values, **values_of_commit(each.commit), **more})
            yield OutgoingMessage(agent, text, outlives_phase=True)


# --- the status file ---

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
LINE_CHARACTERS_AT_MOST = 2_000


@dataclass(frozen=True)
class StatusFile:
    """What a status file says about one phase."""

    done_lines: tuple[str, ...] = ()
    """The lines that say that the phase is done."""
    refused: tuple[tuple[str, str], ...] = ()
    """Lines that look like it but do not count, and why."""


@lru_cache(maxsize=512)
def read_status(text: str, done: str) -> StatusFile:
    """`done` is the regular expression of a done line. Cached: it is read in every turn, and seldom changes."""
    pattern = re.compile(done)
    done_lines: list[str] = []
    refused: list[tuple[str, str]] = []
    for line in _plain_lines(text):
        found = pattern.search(line)
        if found is None:
            continue
        why = _placeholder(line, found)
        if why:
            refused.append((line, why))
        else:
            done_lines.append(line)
    return StatusFile(tuple(dict.fromkeys(done_lines)), tuple(dict.fromkeys(refused)))


def _plain_lines(text: str) -> Iterator[str]:
    """The lines that are neither quoted, fenced nor commented out."""
    fence, in_comment = "", False
    for line in (each.rstrip()[:LINE_CHARACTERS_AT_MOST] for each in text.removeprefix("\ufeff").split("\n")):
        if fence:
            fence = "" if _closes(line, fence) else fence
        elif not in_comment and (mark := FENCE.match(line)):
            fence = mark["ticks"] or mark["tildes"]
        else:
            visible, in_comment = _without_comments(line, in_comment=in_comment)
            if visible.strip() and not visible.lstrip().startswith(">"):
                yield visible


def _closes(line: str, fence: str) -> bool:
    mark = line.strip()
    return len(mark) >= len(fence) and set(mark) == {fence[0]} and len(line) - len(line.lstrip()) < 4


def _without_comments(line: str, *, in_comment: bool) -> tuple[str, bool]:
    """The line without comments, and whether a comment continues after it."""
    visible = ""
    while True:
        before, found, line = line.partition(END_COMMENT if in_comment else BEGIN_COMMENT)
        visible += "" if in_comment else before
        if not found:
            return visible.rstrip(), in_comment
        in_comment = not in_comment


def _placeholder(line: str, found: re.Match[str]) -> str:
    """Why a line is only a template; empty: it is not."""
    if any(group is not None and not group.strip() for group in found.groupdict().values()):
        return "a blank to be filled in"
    is_row = line.lstrip().startswith("|")  # the cells of a table are no choice
    if not is_row and (CHOICE_BEFORE.search(line[: found.start()]) or CHOICE_AFTER.match(line[found.end() :])):
        return "a choice that nobody made"
    return next((why for pattern, why in PLACEHOLDERS if pattern.search(line)), "")
