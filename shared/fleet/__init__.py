"""The fleet file: its models, and reading and checking it. Every fault is reported with its line."""

from shared.fleet.backend import Backend, PromptDelivery
from shared.fleet.declaration import Agent, AgentKind, Declaration, FleetRestarts, RestartPolicy
from shared.fleet.faults import BadFleetFile
from shared.fleet.file import FleetFile, find_fleet_file, load_fleet
from shared.fleet.fleet import SIDE_SERVICE, Fleet

__all__ = [
    "SIDE_SERVICE",
    "Agent",
    "AgentKind",
    "Backend",
    "BadFleetFile",
    "Declaration",
    "Fleet",
    "FleetFile",
    "FleetRestarts",
    "PromptDelivery",
    "RestartPolicy",
    "find_fleet_file",
    "load_fleet",
]
