"""What to ask of each remote, by the fleet file and by what is remembered of the branches."""

from collections.abc import Iterable
from pathlib import Path

from services.handoff.loop_turn import LoopTurn
from services.handoff.loops.templates import status_path
from services.handoff.remotes.observation import BranchWatch, Target
from services.handoff.remotes.push_hints import WatchedRefs
from shared.fleet import Fleet
from shared.fleet.file import as_path
from shared.fleet.fleet import BadPath
from shared.fleet.loops import IS_SCP_LIKE, Loop, subject_of


def address_of(fleet: Fleet, loop: Loop) -> str:
    """The remote as git takes it: a path is relative to the fleet file."""
    return str(fleet.resolve(as_path(loop.remote))) if is_path(loop.remote) else loop.remote


def is_path(remote: str) -> bool:
    """Whether git reads it as a path on this host."""
    return "://" not in remote and not IS_SCP_LIKE.match(remote)


def targets(loops: Iterable[LoopTurn]) -> dict[str, Target]:
    """By the remote's address. Loops on one remote share its mirror; the shortest `poll_s` counts."""
    by_address: dict[str, list[LoopTurn]] = {}
    for loop in loops:
        by_address.setdefault(loop.address, []).append(loop)
    return {
        address: Target(address, min(loop.declared.poll_s for loop in sharing), tuple(map(_watch_of, sharing)))
        for address, sharing in by_address.items()
    }


def _watch_of(loop: LoopTurn) -> BranchWatch:
    declared, known = loop.declared, loop.known_branch
    paths = (status_path(declared, number) for number in range(1, len(declared.phases) + 1))
    statuses = tuple(dict.fromkeys(path for path in paths if path is not None))
    return BranchWatch(
        loop=loop.name,
        branch=declared.branch,
        remote=loop.address,
        subjects=tuple(subject_of(name, pattern) for name, pattern in declared.patterns.items()),
        inbox=tuple(declared.inbox),
        new_inbox=tuple(path for path in declared.inbox if known is not None and path not in known.inbox),
        statuses=statuses,
        is_known=known is not None,
        tip=known.tip if known is not None else None,
        is_gone=known is not None and known.is_gone,
        head=known.head if known is not None else None,
        knows_statuses=known is not None and set(statuses) <= known.statuses.keys(),
    )


def watched_refs(loops: Iterable[LoopTurn]) -> dict[str, WatchedRefs]:
    """By the remote's address: where a push on this host would show."""
    found: dict[str, WatchedRefs] = {}
    for loop in loops:
        before = found.get(loop.address, WatchedRefs(()))
        workspaces = [_workspace(loop.fleet, agent) for agent in loop.declared.roles.values()]
        found[loop.address] = WatchedRefs(
            tuple(sorted({*before.branches, loop.declared.branch})),
            tuple(sorted({*before.clones, *(path for path in workspaces if path is not None)})),
            Path(loop.address) if is_path(loop.address) else None,
        )
    return found


def _workspace(fleet: Fleet, agent: str) -> Path | None:
    try:
        return fleet.resolve(fleet.agents[agent].dir)
    except (BadPath, KeyError):
        return None
