"""The fleet file: what people declare, read once per change and checked with the line of every fault."""

from shared.fleet.agent import Agent, Kind
from shared.fleet.backend import Backend, Deliver
from shared.fleet.faults import BadFleetFile
from shared.fleet.file import FleetFile, find_fleet_file, load_fleet
from shared.fleet.fleet import SIDE_SERVICE, Fleet
from shared.fleet.model import Declaration
from shared.fleet.policy import FleetRestarts, RestartPolicy

__all__ = [
    "SIDE_SERVICE",
    "Agent",
    "Backend",
    "BadFleetFile",
    "Declaration",
    "Deliver",
    "Fleet",
    "FleetFile",
    "FleetRestarts",
    "Kind",
    "RestartPolicy",
    "find_fleet_file",
    "load_fleet",
]
