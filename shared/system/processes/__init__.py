"""The processes of this machine: one look at all of them, and which agent runs in the tree below a pane.

The look itself reads one small file a process. What a process was started with is read only for those that are asked
about, and only as long as they are still the ones that were seen.
"""

from shared.system.processes.process import (
    OpenFile,
    Process,
    arguments_of,
    cwd_of,
    environment_of,
    is_general,
    is_there,
    open_files_of,
    opened_by,
)
from shared.system.processes.table import Processes, end_marked

__all__ = [
    "OpenFile",
    "Process",
    "Processes",
    "arguments_of",
    "cwd_of",
    "end_marked",
    "environment_of",
    "is_general",
    "is_there",
    "open_files_of",
    "opened_by",
]
