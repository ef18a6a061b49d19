"""What no single key can show to be wrong: names that lead nowhere, places that are not allowed."""

from collections.abc import Iterator
from pathlib import Path

from shared.fleet.agent import Agent, Kind
from shared.fleet.backend import Backend
from shared.fleet.faults import Faults, allowed
from shared.fleet.fleet import SIDE_SERVICE, Fleet
from shared.fleet.shipped import shipped
from shared.tmux.panes import KEEPER

Found = Iterator[tuple[tuple[str, ...], str]]
"""Where, and what is wrong there."""


def check(fleet: Fleet, faults: Faults) -> None:
    """Raise BadFleetFile for the first thing that is wrong."""
    for rule in (_backends, _agents, _names, _workspaces, _loops):
        for where, said in rule(fleet):
            raise faults.at(where, said)


def _backends(fleet: Fleet) -> Found:
    declared = fleet.declared.backends
    known = {*declared, *shipped()}
    for name, backend in declared.items():
        where = ("backends", name)
        if name == SIDE_SERVICE:
            yield where, f"{SIDE_SERVICE!r} stands for side services; choose another name"
        if backend.like is not None and backend.like not in known - {name}:
            yield (*where, "like"), f"there is no such backend; {allowed(backend.like, sorted(known - {name}))}"
        if name not in fleet.backends:
            yield (*where, "like"), "it leads back to itself"
        yield from (((*where, *place), said) for place, said in _backend(fleet.backends[name]))


def _backend(backend: Backend) -> Found:
    if not backend.binary and any("{binary}" in word for word in backend.argv):
        yield (), "it has no `binary`: name the program to run, or another backend to be `like`"
    if backend.screen.box is not None and "(?P<text>" not in backend.screen.box:
        yield ("screen", "box"), "it must have the group (?P<text>…) around what is typed in the box"


def _agents(fleet: Fleet) -> Found:
    known = sorted(fleet.backends)
    for section, agents in (("defaults", {"": fleet.declared.defaults}), ("agents", fleet.declared.agents)):
        for name, agent in agents.items():
            where = (section, name) if name else (section,)
            if agent.backend not in known:
                yield (*where, "backend"), f"there is no backend {agent.backend!r}; {allowed(agent.backend, known)}"
            if agent.kind is Kind.SERVICE:
                yield (*where, "kind"), "commands that are no agents are declared under `services`"


def _names(fleet: Fleet) -> Found:
    for name in fleet.declared.services:
        if name in fleet.declared.agents:
            yield ("services", name), f"an agent is named {name!r} too; choose another name"
    for section, members in (("agents", fleet.declared.agents), ("services", fleet.declared.services)):
        if KEEPER in members:
            yield (section, KEEPER), "this name is Muster's own; choose another"


def _workspaces(fleet: Fleet) -> Found:
    for name, agent in fleet.agents.items():
        section = "services" if name in fleet.declared.services else "agents"
        if (said := outside(fleet, agent.dir)) is not None:
            yield (section, name, "dir"), said


def outside(fleet: Fleet, directory: Path) -> str | None:
    """Why an agent can't run in a directory; None when it may."""
    try:
        workspace = fleet.resolve(directory)
    except (RuntimeError, ValueError, OSError) as error:
        return f"no directory can be {str(directory)!r}: {error}"
    if fleet.allows(workspace):
        return None
    roots = ", ".join(map(str, fleet.roots))
    return f"{workspace} is outside the allowed workspaces ({roots}); move it, or add a directory to `workspaces`"


def _loops(fleet: Fleet) -> Found:
    agents = fleet.declared.agents
    for name, loop in fleet.declared.loops.items():
        where = ("loops", name)
        for role, agent in loop.roles.items():
            if agent not in agents:
                yield (*where, "roles", role), f"there is no agent {agent!r}; {allowed(agent, sorted(agents))}"
        roles = sorted(loop.roles)
        for pattern_name, pattern in loop.patterns.items():
            if pattern.to not in loop.roles:
                yield (*where, "patterns", pattern_name, "to"), f"no role of this loop; {allowed(pattern.to, roles)}"
        for path, role in loop.inbox.items():
            if role not in loop.roles:
                yield (*where, "inbox", path), f"no role of this loop; {allowed(role, roles)}"
        if loop.on_complete is not None and not _is_task(agents.get(loop.on_complete)):
            tasks = sorted(each for each, agent in agents.items() if agent.kind is Kind.TASK)
            yield (*where, "on_complete"), f"it must be an agent of kind task; {allowed(loop.on_complete, tasks)}"


def _is_task(agent: Agent | None) -> bool:
    return agent is not None and agent.kind is Kind.TASK
