"""The registry of agent sessions as a library. Any process may read it; only the registrar writes it."""

from registry.disk import ChangedMeanwhile
from registry.file import CantBeEdited, RegistryFile
from registry.records import AgentRecord, EndedSession
from registry.replaced_files import LateSave
from registry.validation import BadRegistry

__all__ = [
    "AgentRecord",
    "BadRegistry",
    "CantBeEdited",
    "ChangedMeanwhile",
    "EndedSession",
    "LateSave",
    "RegistryFile",
]
