"""The registry of agent sessions as a library: reading for everybody, writing for the registrar alone."""

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
