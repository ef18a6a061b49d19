"""The processes of this machine. Listing them reads one small file each; details are read on request."""

from shared.system.processes.process import (
    OpenFile,
    Process,
    arguments_of,
    cwd_of,
    environment_of,
    is_general,
    is_there,
    opened_by,
)
from shared.system.processes.table import Processes, ProcessesOnDemand, end_marked

__all__ = [
    "OpenFile",
    "Process",
    "Processes",
    "ProcessesOnDemand",
    "arguments_of",
    "cwd_of",
    "end_marked",
    "environment_of",
    "is_general",
    "is_there",
    "opened_by",
]
