"""The processes of this machine: one look at all of them, and which agent runs in the tree below a pane.

The look itself reads one small file a process. What a process was started with is read only for those that are asked
about, and only as long as they are still the ones that were seen.
"""

from shared.processes.agents import agent_in, program_in, recognised_by
from shared.processes.details import OpenFile, arguments_of, cwd_of, environment_of, open_files_of, opened_by
from shared.processes.look import Processes
from shared.processes.marked import end_marked
from shared.processes.names import is_general
from shared.processes.process import Process, is_there
from shared.processes.version import version_of

__all__ = [
    "OpenFile",
    "Process",
    "Processes",
    "agent_in",
    "arguments_of",
    "cwd_of",
    "end_marked",
    "environment_of",
    "is_general",
    "is_there",
    "open_files_of",
    "opened_by",
    "program_in",
    "recognised_by",
    "version_of",
]
