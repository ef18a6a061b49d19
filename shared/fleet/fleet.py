"""A valid fleet file, and what follows from it: agents with their defaults, backends in full, paths, accounts."""

import hashlib
import socket
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from shared.contract.ids import as_id
from shared.contract.services import MANIFEST
from shared.contract.topics import Space
from shared.errors import MusterError
from shared.fleet.backend import Backend, PromptDelivery
from shared.fleet.declaration import Agent, AgentKind, Declaration, SideService
from shared.fleet.profiles import shipped
from shared.fleet.section import Section

S = TypeVar("S", bound=Section)

EITHER_OR = (("prompt", "prompt_file"),)
"""A value for one of these also replaces the other."""
WHOLE = ("wake",)
"""Mappings that are replaced as a whole."""
DIALOGS = "dialogs"
"""The list whose members are merged by their id."""


def overlay(below: S, above: S) -> S:
    """`below` with the values that `above` sets. Mappings and dialogs are merged, lists and plain values replaced."""
    base, changes = below.model_dump(exclude_unset=True), above.model_dump(exclude_unset=True)
    for one, other in EITHER_OR:
        if one in changes or other in changes:
            base = {key: value for key, value in base.items() if key not in (one, other)}
    return type(above).model_validate(_merge(base, changes))


def _merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        if key == DIALOGS and base.get(key):
            merged[key] = _merge_dialogs(base[key], value)
            continue
        mergeable = isinstance(value, Mapping) and isinstance(base.get(key), Mapping) and key not in WHOLE
        merged[key] = _merge(base[key], value) if mergeable else value
    return merged


def _merge_dialogs(base: list[dict[str, Any]], changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge by id, new ones first: the first dialog that matches counts. One with a `match` replaces the other as a
    whole, since the other's keys are for another dialog.
    """
    changed = {each["id"]: each for each in changes}
    there = {each["id"] for each in base}
    merged = [each for name, each in changed.items() if name not in there]
    for each in base:
        change = changed.get(each["id"], {})
        merged.append(change if "match" in change else {**each, **change})
    return [each for each in merged if each.get("match", "") is not None]


class BadPath(MusterError):
    """A path that can't be resolved: the home of an unknown user, or a circular link."""


@dataclass(frozen=True)
class Fleet:
    """One fleet: its file, and what follows from it. Immutable; an edit of the file gives another one."""

    path: Path
    declared: Declaration

    @cached_property
    def home(self) -> Path:
        """The directory of Muster's own files for this fleet."""
        return self.path.parent / ".muster"

    @property
    def space(self) -> Space:
        return Space(host=self.declared.host or as_id(socket.gethostname()), prefix=self.declared.prefix)

    @property
    def journal(self) -> Path:
        return self.home / "journal.db"

    @property
    def registry(self) -> Path:
        return self.home / "registry.yaml"

    @property
    def hooks(self) -> Path:
        """The directory into which agents' hooks write."""
        return self.home / "hooks"

    @property
    def logs(self) -> Path:
        return self.home / "logs" / "agents"

    @cached_property
    def stamp(self) -> str:
        """The fleet's mark on its tmux sessions: fleets may share one tmux server."""
        return hashlib.sha256(str(self.home).encode()).hexdigest()[:12]

    @cached_property
    def services(self) -> tuple[str, ...]:
        """The names of Muster's services that this fleet runs."""
        return tuple(
            entry.name for entry in MANIFEST if not entry.optional or getattr(self.declared, entry.name).enabled
        )

    @cached_property
    def agents(self) -> Mapping[str, Agent]:
        """All agents by name, with `defaults` filled in, and side services as agents."""
        agents = {name: overlay(self.declared.defaults, agent) for name, agent in self.declared.agents.items()}
        return {**agents, **{name: _as_agent(service) for name, service in self.declared.services.items()}}

    @cached_property
    def phased(self) -> frozenset[str]:
        """Agents of kind loop in a loop with phases: they are started when a phase begins, not before."""
        playing = {agent for loop in self.declared.loops.values() if loop.phases for agent in loop.roles.values()}
        return frozenset(
            agent for agent in playing if agent in self.agents and self.agents[agent].kind is AgentKind.LOOP
        )

    def starts_by_itself(self, agent: str) -> bool:
        """Whether an agent runs without a command to start it."""
        return self.agents[agent].enabled and agent not in self.phased

    @cached_property
    def backends(self) -> Mapping[str, Backend]:
        """Every backend in full, by name. One whose `like` leads nowhere is missing; `check` reports it."""
        found: dict[str, Backend] = dict(shipped())
        waiting = dict(self.declared.backends)
        while waiting:
            ready = [name for name, backend in waiting.items() if _base(name, backend) not in waiting.keys() - {name}]
            ready = [name for name in ready if waiting[name].like != name]
            if not ready:
                break
            for name in ready:
                backend = waiting.pop(name)
                base = found.get(_base(name, backend))
                if base is not None or backend.like is None:
                    found[name] = overlay(base or Backend(), backend)
        return found

    def profile(self, agent: str) -> Backend:
        """The backend of an agent. Raises KeyError if the fleet has no such agent or backend."""
        if agent in self.declared.services:
            argv = self.declared.services[agent].argv
            return Backend(binary=argv[0], argv=["{binary}", *argv[1:]], deliver=PromptDelivery.ARG, prompt_args=[])
        return self.backends[self.agents[agent].backend]

    @cached_property
    def roots(self) -> tuple[Path, ...]:
        """The directories below which agents may run. A bad path is left out; `check` reports it."""
        found = []
        for root in self.declared.workspaces:
            with suppress(BadPath):
                found.append(self.resolve(root))
        return tuple(found)

    def resolve(self, path: Path) -> Path:
        """An absolute path for one in the file, with links followed. Raises BadPath."""
        try:
            return (self.path.parent / path.expanduser()).resolve()
        except OSError as error:
            raise BadPath(f"no path can be like this: {error.strerror}") from error
        except (RuntimeError, ValueError) as error:
            raise BadPath(f"no path can be like this: {error}") from error

    def allows(self, workspace: Path) -> bool:
        """Whether an agent may run in this (resolved) directory."""
        return any(workspace == root or root in workspace.parents for root in self.roots)


def _base(name: str, backend: Backend) -> str:
    return backend.like or name


def _as_agent(service: SideService) -> Agent:
    shared_fields = service.model_dump(exclude_unset=True, exclude={"argv"})
    return Agent.model_validate({**shared_fields, "kind": AgentKind.SERVICE, "backend": SIDE_SERVICE, "resume": False})


def account_of(fleet: Fleet, agent: str, backend: str | None = None) -> str:
    """The account of an agent: the declared one, else one for each backend. `backend` is what it runs on, if known."""
    declared = fleet.agents.get(agent)
    if declared is not None and declared.account is not None:
        return declared.account
    return backend or (declared.backend if declared is not None else "unknown")


def is_concerned(models: Collection[str] | None, model: str | None) -> bool:
    """Whether a limit of these models concerns an agent on `model`. None: all models. "": agents that name no model."""
    if models is None:
        return True
    named = (model or "").lower()
    return any((each.lower() in named) if each else not named for each in models)


SIDE_SERVICE = "service"
"""The backend's name in reports about side services."""
