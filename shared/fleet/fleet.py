"""A valid fleet file and what follows from it: every agent with its defaults, every backend in full, every account."""

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
"""Who says one of these has not left the other as it was."""
WHOLE = ("wake",)
"""Mappings that make sense only as they were written together."""
DIALOGS = "dialogs"
"""The list whose members have names, and are merged by them."""


def overlay(below: S, above: S) -> S:
    """`above`, and where it says nothing `below`. Mappings and dialogs are merged, lists and plain values replaced."""
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
    """By id: new ones first, for the first that matches counts. One with a `match` takes the other's place whole, so
    that keys are pressed in no other dialog than they were meant for.
    """
    changed = {each["id"]: each for each in changes}
    there = {each["id"] for each in base}
    merged = [each for name, each in changed.items() if name not in there]
    for each in base:
        change = changed.get(each["id"], {})
        merged.append(change if "match" in change else {**each, **change})
    return [each for each in merged if each.get("match", "") is not None]


class BadPath(MusterError):
    """A path of the fleet file that can't be one: of a user who does not exist, or through a link to itself."""


@dataclass(frozen=True)
class Fleet:
    path: Path
    declared: Declaration

    @cached_property
    def home(self) -> Path:
        """Where Muster keeps its own files for this fleet."""
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
        """Where agents tell what they do."""
        return self.home / "hooks"

    @property
    def logs(self) -> Path:
        return self.home / "logs" / "agents"

    @cached_property
    def stamp(self) -> str:
        """Marks this fleet's tmux sessions: two fleets may share one tmux server."""
        return hashlib.sha256(str(self.home).encode()).hexdigest()[:12]

    @cached_property
    def services(self) -> tuple[str, ...]:
        """Muster's own services that this fleet runs."""
        return tuple(
            entry.name for entry in MANIFEST if not entry.optional or getattr(self.declared, entry.name).enabled
        )

    @cached_property
    def agents(self) -> Mapping[str, Agent]:
        """Whom the fleet consists of, side services too, each with what `defaults` gives it."""
        agents = {name: overlay(self.declared.defaults, agent) for name, agent in self.declared.agents.items()}
        return {**agents, **{name: _as_agent(service) for name, service in self.declared.services.items()}}

    @cached_property
    def phased(self) -> frozenset[str]:
        """Agents of kind loop that play in a loop with phases: they are started when a phase begins, not before."""
        playing = {agent for loop in self.declared.loops.values() if loop.phases for agent in loop.roles.values()}
        return frozenset(
            agent for agent in playing if agent in self.agents and self.agents[agent].kind is AgentKind.LOOP
        )

    def starts_by_itself(self, agent: str) -> bool:
        """Whether an agent is to run though nobody ever asked for it."""
        return self.agents[agent].enabled and agent not in self.phased

    @cached_property
    def backends(self) -> Mapping[str, Backend]:
        """Every backend as it is in force. One whose `like` leads nowhere is left out; `check` tells of it."""
        found: dict[str, Backend] = dict(shipped())
        waiting = dict(self.declared.backends)
        while waiting:
            able = [name for name, backend in waiting.items() if _base(name, backend) not in waiting.keys() - {name}]
            able = [name for name in able if waiting[name].like != name]
            if not able:
                break
            for name in able:
                backend = waiting.pop(name)
                base = found.get(_base(name, backend))
                if base is not None or backend.like is None:
                    found[name] = overlay(base or Backend(), backend)
        return found

    def backend(self, name: str) -> Backend | None:
        return self.backends.get(name)

    def profile(self, agent: str) -> Backend:
        """How this agent is run. KeyError when the fleet has no such agent or backend."""
        if agent in self.declared.services:
            argv = self.declared.services[agent].argv
            return Backend(binary=argv[0], argv=["{binary}", *argv[1:]], deliver=PromptDelivery.ARG, prompt_args=[])
        return self.backends[self.agents[agent].backend]

    @cached_property
    def roots(self) -> tuple[Path, ...]:
        """Where agents may run. What can't be a path allows nothing; `check` tells of it."""
        found = []
        for root in self.declared.workspaces:
            with suppress(BadPath):
                found.append(self.resolve(root))
        return tuple(found)

    def resolve(self, path: Path) -> Path:
        """A path of the file, from where the file is. Links are followed to their end. Raises BadPath."""
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
    """The account that an agent uses: as it is declared, else one for each backend.

    `backend` is what runs it, where that is known; else what is declared.
    """
    declared = fleet.agents.get(agent)
    if declared is not None and declared.account is not None:
        return declared.account
    return backend or (declared.backend if declared is not None else "unknown")


def is_concerned(models: Collection[str] | None, model: str | None) -> bool:
    """Whether an agent on this model is concerned by a limit of these; None: of all, "": of those that name none."""
    if models is None:
        return True
    named = (model or "").lower()
    return any((each.lower() in named) if each else not named for each in models)


SIDE_SERVICE = "service"
"""What stands for a backend where a side service is told of."""
