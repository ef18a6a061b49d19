"""Which commits are told, to whom, and in how many words. Pure."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from services.handoff.remotes.observation import BranchObservation, Commit
from shared.contract.events.loops import CommitMatched, CommitsSummedUp, MatchedCommit, WorkClaimed, WorkReviewed
from shared.fleet.launch_needs import fill
from shared.fleet.loops import Loop, subject_of

AT_MOST = 10
"""More that match in one look are summed up."""
SHOWN = 5
"""Of those, so many of the newest are named."""
SUBJECT_CHARACTERS, AUTHOR_CHARACTERS = 500, 100
KINDS: Mapping[str, type[WorkClaimed] | type[WorkReviewed]] = {"claim": WorkClaimed, "review": WorkReviewed}
"""By the name of the pattern; all others are `commit`."""


@dataclass(frozen=True)
class CommitMatch:
    pattern: str
    commit: Commit


@dataclass(frozen=True)
class Ping:
    """A message to an agent."""

    agent: str
    text: str
    lasts: bool = False
    """Whether it is worth saying in the next phase too: a file that is there still, say."""


@dataclass(frozen=True)
class MatchedCommits:
    """What is told of the commits of one look."""

    events: Sequence[MatchedCommit | CommitsSummedUp]
    pings: Sequence[Ping]
    keys: Sequence[str]
    """Of the commits that are told now: they are not told again, whatever becomes of the branch."""
    carried: int
    """How many match and were told before."""


def match(
    loop: Loop, sight: BranchObservation, told: Collection[str], values: Mapping[str, str], name: str
) -> MatchedCommits:
    """`told`: keys of commits that were told before. `values`: what every template of the loop may say."""
    found = [CommitMatch(pattern, commit) for commit in sight.commits for pattern in _patterns(loop, commit)]
    before = sight.dropped_keys | set(told)
    fresh = [each for each in found if each.commit.key not in before]
    keys = list(dict.fromkeys(each.commit.key for each in fresh))
    carried = len({each.commit.key for each in found} - set(keys))
    if len(fresh) > AT_MOST:
        return MatchedCommits(*_summed_up(loop, sight, fresh, name), keys, carried)
    events = [_event(loop, each, name) for each in fresh]
    pings = [Ping(agent, _text(loop, each, agent, values)) for each in fresh for agent in _to(loop, each.pattern)]
    return MatchedCommits(events, pings, keys, carried)


def recipients(loop: Loop, targets: Iterable[str]) -> list[str]:
    """The agents behind roles and names."""
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
    return fill(pattern.text, {**values, **of_commit(found.commit), **more})


def of_commit(commit: Commit) -> dict[str, str]:
    """What a template may say of a commit."""
    subject, author = commit.subject[:SUBJECT_CHARACTERS], commit.author[:AUTHOR_CHARACTERS]
    return {"commit": commit.sha[:10], "sha": commit.sha, "author": author, "subject": subject}


def _summed_up(
    loop: Loop, sight: BranchObservation, fresh: Sequence[CommitMatch], name: str
) -> tuple[Sequence[CommitsSummedUp], Sequence[Ping]]:
    agents = list(dict.fromkeys(agent for each in fresh for agent in _to(loop, each.pattern)))
    pings = [Ping(agent, _summary(loop, [e for e in fresh if agent in _to(loop, e.pattern)])) for agent in agents]
    event = CommitsSummedUp(
        loop=name,
        branch=loop.branch,
        commits=sight.total,
        matched=dict(Counter(each.pattern for each in fresh)),
        first=fresh[0].commit.sha,
        last=fresh[-1].commit.sha,
        to=agents,
    )
    return [event], pings


def _summary(loop: Loop, found: Sequence[CommitMatch]) -> str:
    counts = ", ".join(f"{count} {pattern}" for pattern, count in Counter(each.pattern for each in found).items())
    commits = list(dict.fromkeys(each.commit for each in found))
    first, last = commits[0].sha[:10], commits[-1].sha[:10]
    newest = [
        f"- {each.sha[:10]} {each.author[:AUTHOR_CHARACTERS]}: {each.subject[:SUBJECT_CHARACTERS]}"
        for each in commits[-SHOWN:]
    ]
    head = (
        f"{len(commits)} commits for you came to {loop.branch} at once ({counts}), from {first} to {last}. The newest:"
    )
    return "\n".join([head, *newest])


def _time(seconds: int) -> datetime:
    """A commit can say any time; one that no calendar has is none."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)
