"""A good fleet file, and what follows from it: every agent with its defaults, every backend as a whole."""

import hashlib
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from shared.errors import MusterError
from shared.fleet.agent import Agent, Kind, SideService
from shared.fleet.backend import Backend, Deliver
from shared.fleet.model import Declaration
from shared.fleet.overlay import overlay
from shared.fleet.shipped import shipped
from shared.ids import as_id
from shared.topics import Space

SIDE_SERVICE = "service"
"""What stands for a backend where a side service is told of."""


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
    def agents(self) -> Mapping[str, Agent]:
        """Whom the fleet consists of, side services too, each with what `defaults` gives it."""
        agents = {name: overlay(self.declared.defaults, agent) for name, agent in self.declared.agents.items()}
        return {**agents, **{name: _as_agent(service) for name, service in self.declared.services.items()}}

    @cached_property
    def phased(self) -> frozenset[str]:
        """Agents of kind loop that play in a loop with phases: they are started when a phase begins, not before."""
        playing = {agent for loop in self.declared.loops.values() if loop.phases for agent in loop.roles.values()}
        return frozenset(agent for agent in playing if agent in self.agents and self.agents[agent].kind is Kind.LOOP)

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
            return Backend(binary=argv[0], argv=["{binary}", *argv[1:]], deliver=Deliver.ARG, prompt_args=[])
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
    return Agent.model_validate({**shared_fields, "kind": Kind.SERVICE, "backend": SIDE_SERVICE, "resume": False})
