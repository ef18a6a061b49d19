"""The fleet file: what people declare, read once per change and checked with the line of every fault."""

from shared.fleet.file import BadFleetFile, Fleet, FleetFile, find_fleet_file, load_fleet
from shared.fleet.model import Agent, Backend, Declaration, RestartPolicy

__all__ = [
    "Agent",
    "Backend",
    "BadFleetFile",
    "Declaration",
    "Fleet",
    "FleetFile",
    "RestartPolicy",
    "find_fleet_file",
    "load_fleet",
]
