"""Which commits are reported, to which agents, and with which text. Pure."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from services.handoff.remotes.observation import BranchObservation, Commit
from shared.contract.events.loops import CommitMatched, CommitsSummedUp, MatchedCommit, WorkClaimed, WorkReviewed
from shared.fleet.launch_needs import fill
from shared.fleet.loops import Loop, subject_of

REPORTED_SINGLY_AT_MOST = 10
"""More matches in one observation are summed up."""
SHOWN_IN_SUMMARY = 5
"""The newest of them are named."""
SUBJECT_CHARACTERS, AUTHOR_CHARACTERS = 500, 100
KINDS: Mapping[str, type[WorkClaimed] | type[WorkReviewed]] = {"claim": WorkClaimed, "review": WorkReviewed}
"""Patterns with an event of their own, by name."""


@dataclass(frozen=True)
class CommitMatch:
    pattern: str
    commit: Commit


@dataclass(frozen=True)
class OutgoingMessage:
    agent: str
    text: str
    outlives_phase: bool = False
    """Whether it still holds in the next phase, such as a message about a file."""


@dataclass(frozen=True)
class MatchedCommits:
    """The matches among the commits of one observation."""

    events: Sequence[MatchedCommit | CommitsSummedUp]
    messages: Sequence[OutgoingMessage]
    keys: Sequence[str]
    """Of the commits that are reported now."""
    carried: int
    """How many commits match and were reported before."""


def match(
    loop: Loop, observation: BranchObservation, reported: Collection[str], values: Mapping[str, str], name: str
) -> MatchedCommits:
    """`reported`: keys of commits that were reported before. `values`: for every template of the loop called `name`."""
    found = [CommitMatch(pattern, commit) for commit in observation.commits for pattern in _patterns(loop, commit)]
    before = observation.dropped_keys | set(reported)
    fresh = [each for each in found if each.commit.key not in before]
    keys = list(dict.fromkeys(each.commit.key for each in fresh))
    carried = len({each.commit.key for each in found} - set(keys))
    if len(fresh) > REPORTED_SINGLY_AT_MOST:
        return MatchedCommits(*_summed_up(loop, observation, fresh, name), keys, carried)
    events = [_event(loop, each, name) for each in fresh]
    messages = [
        OutgoingMessage(agent, _text(loop, each, agent, values)) for each in fresh for agent in _to(loop, each.pattern)
    ]
    return MatchedCommits(events, messages, keys, carried)


def recipients(loop: Loop, targets: Iterable[str]) -> list[str]:
    """The agents for roles and names."""
    return list(dict.fromkeys(loop.roles.get(target, target) for target in targets))


def role_of(loop: Loop, agent: str, targets: Iterable[str]) -> str:
    return next((target for target in targets if loop.roles.get(target) == agent), "")


def _patterns(loop: Loop, commit: Commit) -> list[str]:
    return [name for name, pattern in loop.patterns.items() if re.search(subject_of(name, pattern), commit.subject)]


def _to(loop: Loop, pattern: str) -> list[str]:
    return recipients(loop, loop.patterns[pattern].to)


def _event(loop: Loop, found: CommitMatch, name: str) -> MatchedCommit:
    commit = found.commit
    kind: type[WorkClaimed] | type[WorkReviewed] | type[CommitMatched] = KINDS.get(found.pattern, CommitMatched)
    return kind(
        loop=name,
        pattern=found.pattern,
        branch=loop.branch,
        commit=commit.sha,
        subject=commit.subject[:SUBJECT_CHARACTERS],
        author=commit.author[:AUTHOR_CHARACTERS],
        committed=_time(commit.committed),
        to=_to(loop, found.pattern),
    )


def _text(loop: Loop, found: CommitMatch, agent: str, values: Mapping[str, str]) -> str:
    pattern = loop.patterns[found.pattern]
    more = {"pattern": found.pattern, "agent": agent, "role": role_of(loop, agent, pattern.to)}
    return fill(pattern.text, {**values, **values_of_commit(found.commit), **more})


def values_of_commit(commit: Commit) -> dict[str, str]:
    """The values of a commit for a template."""
    subject, author = commit.subject[:SUBJECT_CHARACTERS], commit.author[:AUTHOR_CHARACTERS]
    return {"commit": commit.sha[:10], "sha": commit.sha, "author": author, "subject": subject}


def _summed_up(
    loop: Loop, observation: BranchObservation, fresh: Sequence[CommitMatch], name: str
) -> tuple[Sequence[CommitsSummedUp], Sequence[OutgoingMessage]]:
    agents = list(dict.fromkeys(agent for each in fresh for agent in _to(loop, each.pattern)))
    messages = [
        OutgoingMessage(agent, _summary(loop, [each for each in fresh if agent in _to(loop, each.pattern)]))
        for agent in agents
    ]
    event = CommitsSummedUp(
        loop=name,
        branch=loop.branch,
        commits=observation.total,
        matched=dict(Counter(each.pattern for each in fresh)),
        first=fresh[0].commit.sha,
        last=fresh[-1].commit.sha,
        to=agents,
    )
    return [event], messages


def _summary(loop: Loop, found: Sequence[CommitMatch]) -> str:
    counts = ", ".join(f"{count} {pattern}" for pattern, count in Counter(each.pattern for each in found).items())
    commits = list(dict.fromkeys(each.commit for each in found))
    first, last = commits[0].sha[:10], commits[-1].sha[:10]
    newest = [
        f"- {each.sha[:10]} {each.author[:AUTHOR_CHARACTERS]}: {each.subject[:SUBJECT_CHARACTERS]}"
        for each in commits[-SHOWN_IN_SUMMARY:]
    ]
    head = (
        f"{len(commits)} commits for you came to {loop.branch} at once ({counts}), from {first} to {last}. The newest:"
    )
    return "\n".join([head, *newest])


def _time(seconds: int) -> datetime:
    """A commit can claim any time; one that is out of range counts as the epoch."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)
