"""The registry of agent sessions as a library: reading for everybody, writing for the registrar alone."""

from registry.file import BadRegistry, RegistryFile
from registry.records import AgentRecord, fold

__all__ = ["AgentRecord", "BadRegistry", "RegistryFile", "fold"]
