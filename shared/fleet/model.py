"""The whole fleet file as it is written, before defaults and shipped backends are put below it."""

from pathlib import Path
from typing import Any, Literal

from pydantic import field_validator

from shared.fleet.agent import Agent, SideService
from shared.fleet.backend import Backend
from shared.fleet.host import (
    AdoptionSettings,
    BrokerSettings,
    EnvironmentSettings,
    LogSettings,
    PollSettings,
    RegistrySettings,
    StartSettings,
    TmuxSettings,
)
from shared.fleet.loops import Loop
from shared.fleet.policy import FleetRestarts
from shared.fleet.section import Section
from shared.ids import Id


class Declaration(Section):
    """A fleet of agents. Paths are relative to the file."""

    version: Literal[1] = 1
    """Of this file's format."""
    host: Id | None = None
    """This machine's name on the bus; default: its host name."""
    prefix: Id = "muster"
    """The first word of every topic."""
    tmux: TmuxSettings = TmuxSettings()
    broker: BrokerSettings = BrokerSettings()
    polls: PollSettings = PollSettings()
    logs: LogSettings = LogSettings()
    registry: RegistrySettings = RegistrySettings()
    adoption: AdoptionSettings = AdoptionSettings()
    start: StartSettings = StartSettings()
    restarts: FleetRestarts = FleetRestarts()
    environment: EnvironmentSettings = EnvironmentSettings()
    workspaces: list[Path] = [Path()]
    """Agents run in these directories and below, nowhere else; default: the directory of this file."""
    defaults: Agent = Agent()
    """What agents have that do not say otherwise."""
    backends: dict[Id, Backend] = {}
    """More kinds of agents, or changes of those that come with Muster."""
    agents: dict[Id, Agent] = {}
    """The agents, by name."""
    services: dict[Id, SideService] = {}
    """Commands that are kept running beside the agents."""
    loops: dict[Id, Loop] = {}
    """Builder and reviewer loops that git drives, by name."""

    @field_validator("agents", "backends", mode="before")
    @classmethod
    def _bare_means_defaults(cls, given: Any) -> Any:
        """`builder:` with nothing behind it is an agent with every default."""
        return (
            {name: {} if each is None else each for name, each in given.items()} if isinstance(given, dict) else given
        )
