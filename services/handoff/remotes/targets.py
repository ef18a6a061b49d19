"""What has to be asked of which remote, by the fleet file and by what is remembered."""

from collections.abc import Mapping
from pathlib import Path

from services.handoff.loops.templates import status_path
from services.handoff.memory import BranchMemory
from services.handoff.remotes.observation import BranchWatch, Target
from services.handoff.remotes.push_hints import RefTrail
from shared.fleet import Fleet
from shared.fleet.file import as_path
from shared.fleet.fleet import BadPath
from shared.fleet.loops import IS_SCP_LIKE, Loop, subject_of


def address_of(fleet: Fleet, loop: Loop) -> str:
    """A remote as git takes it: a path is from where the fleet file is."""
    return str(fleet.resolve(as_path(loop.remote))) if is_path(loop.remote) else loop.remote


def is_path(remote: str) -> bool:
    """Whether it is on this machine, as git reads it."""
    return "://" not in remote and not IS_SCP_LIKE.match(remote)


def trails(fleet: Fleet, loops: Mapping[str, Loop], addresses: Mapping[str, str]) -> dict[str, RefTrail]:
    """By remote: where it would show that somebody here has pushed."""
    found: dict[str, RefTrail] = {}
    for name, address in addresses.items():
        loop, before = loops[name], found.get(address, RefTrail(()))
        clones = [workspace for agent in loop.roles.values() if (workspace := _workspace(fleet, agent)) is not None]
        found[address] = RefTrail(
            tuple(sorted({*before.branches, loop.branch})),
            tuple(sorted({*before.clones, *clones})),
            Path(address) if is_path(address) else None,
        )
    return found


def _workspace(fleet: Fleet, agent: str) -> Path | None:
    try:
        return fleet.resolve(fleet.agents[agent].dir)
    except (BadPath, KeyError):
        return None


def status_paths(loop: Loop) -> tuple[str, ...]:
    """The status files of all phases: what is pushed at once may be about several."""
    found = (status_path(loop, number) for number in range(1, len(loop.phases) + 1))
    return tuple(dict.fromkeys(path for path in found if path is not None))


def watch_of(name: str, loop: Loop, address: str, seen: BranchMemory | None) -> BranchWatch:
    known = seen if seen is not None and (seen.address, seen.branch) == (address, loop.branch) else None
    statuses = status_paths(loop)
    return BranchWatch(
        loop=name,
        branch=loop.branch,
        remote=address,
        subjects=tuple(subject_of(each, pattern) for each, pattern in loop.patterns.items()),
        inbox=tuple(loop.inbox),
        new_inbox=tuple(path for path in loop.inbox if known is not None and path not in known.inbox),
        statuses=statuses,
        is_known=known is not None,
        seen=known.tip if known is not None else None,
        is_gone=known is not None and known.is_gone,
        before=known.before if known is not None else None,
        knows_statuses=known is not None and set(statuses) <= known.statuses.keys(),
    )


def targets(
    loops: Mapping[str, Loop], addresses: Mapping[str, str], seen: Mapping[str, BranchMemory]
) -> dict[str, Target]:
    """By remote: loops on one remote share its mirror, and it is asked as often as the most eager of them wants."""
    wanted: dict[str, list[str]] = {}
    for name, address in addresses.items():
        wanted.setdefault(address, []).append(name)
    return {
        address: Target(
            address,
            min(loops[name].poll_s for name in names),
            tuple(watch_of(name, loops[name], address, seen.get(name)) for name in names),
        )
        for address, names in wanted.items()
    }
