"""The registry of agent sessions as a library: reading for everybody, writing for the registrar alone."""

from registry.file import BadRegistry, RegistryFile
from registry.folding import fold
from registry.records import AgentRecord, EndedSession

__all__ = ["AgentRecord", "BadRegistry", "EndedSession", "RegistryFile", "fold"]
