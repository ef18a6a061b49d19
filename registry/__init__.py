"""The registry of agent sessions as a library: reading for everybody, writing for the registrar alone."""

from registry.faults import BadRegistry, CantBeEdited, ChangedMeanwhile, LateSave
from registry.file import RegistryFile
from registry.folding import endings, fold
from registry.records import AgentRecord, EndedSession

__all__ = [
    "AgentRecord",
    "BadRegistry",
    "CantBeEdited",
    "ChangedMeanwhile",
    "EndedSession",
    "LateSave",
    "RegistryFile",
    "endings",
    "fold",
]
