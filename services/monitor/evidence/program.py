"""The program of one agent: which process it is, whether it lives, its version, and the live file that it may keep."""

import os
from collections.abc import Callable
from datetime import tzinfo
from pathlib import Path

from services.monitor.limits.zones import local_zone
from shared.agents.claude.identity import live_files
from shared.agents.claude.live_file import LiveFileReader
from shared.agents.evidence import Evidence
from shared.agents.recognition import program_in, version_of
from shared.fleet import Backend
from shared.system.processes import Process, Processes, environment_of, is_there
from shared.system.tmux import Pane

SEARCH_AGAIN_S, SEARCH_AGAIN_MAX_S = 0.5, 5.0
"""A program that is not found in its pane is searched again this soon; the time doubles up to the second."""
LIVE_FILE_AGAIN_S = 60.0
"""A wrapper may start the program that keeps a live file. Searched at the full minute, for all agents at once: each
search looks at all processes."""
KEEPS_LIVE_FILE = "claude"
"""The kind of agent that keeps a live file."""


class AgentProgram:
    def __init__(self, kind: str, look: Callable[[], Processes], process: Process | None = None) -> None:
        """`look` gives the processes of this moment. It is costly, so it is called only when it matters."""
        self.process = process
        self.version: str | None = None
        self._kind, self._look = kind, look
        self._lives: tuple[Process, bool] | None = None
        self._search_at, self._searches = float("-inf"), 0
        self._live_file: LiveFileReader | None = None
        self._may_be_live_files: list[tuple[Process, Path]] = []
        self._zone: tuple[Process | None, tzinfo] | None = None

    def begin(self) -> None:
        """Begin a turn: the system is asked again whether the process lives."""
        self._lives = None

    def lives(self, process: Process) -> bool:
        """Whether a process is there; the system is asked once a turn."""
        if self._lives is None or self._lives[0] is not process:
            self._lives = (process, is_there(process))
        return self._lives[1]

    @property
    def is_there(self) -> bool:
        """Whether the program was found and lives."""
        return self.process is not None and self.lives(self.process)

    def find(self, backend: Backend, pane: Pane, now: float, *, at_once: bool = False) -> bool:
        """Search the program if it is not known or gone, and its live file; True if it replaced another program."""
        is_there = self.is_there
        wants_live_file = self._kind == KEEPS_LIVE_FILE and self._live_file is None  # a wrapper may start it later
        longest_s = LIVE_FILE_AGAIN_S if is_there else SEARCH_AGAIN_MAX_S
        waits = not at_once and 0 <= self._search_at - now <= longest_s
        if pane.dead or (is_there and not wants_live_file) or waits:
            return False
        processes = self._look()
        found = self.process if is_there else program_in(processes, backend, pane.pid)
        self._searches += 1
        wait_s = min(SEARCH_AGAIN_MAX_S, SEARCH_AGAIN_S * 2.0 ** min(self._searches, 10))
        settled = is_there and wait_s == SEARCH_AGAIN_MAX_S
        self._search_at = (now // LIVE_FILE_AGAIN_S + 1) * LIVE_FILE_AGAIN_S if settled else now + wait_s
        if found is None:
            return False
        before = self.process
        if not is_there:
            self.process, self.version, self._searches, self._live_file = found, version_of(found), 0, None
        self._may_be_live_files = list(live_files(processes, found)) if self._kind == KEEPS_LIVE_FILE else []
        return before is not None and before != found

    @property
    def zone(self) -> tzinfo:
        """The time zone in which the program tells the time of day."""
        if self._zone is None or self._zone[0] is not self.process:
            variables = environment_of(self.process) if self.process is not None else os.environ
            self._zone = (self.process, local_zone(variables.get("TZ")))
        return self._zone[1]

    def read_live_file(self) -> Evidence | None:
        if self._live_file is None:
            found = next(((path, process) for process, path in self._may_be_live_files if path.is_file()), None)
            if found is None:
                return None
            self._live_file = LiveFileReader(*found)
        evidence = self._live_file.read()
        self.version = self._live_file.version or self.version
        return evidence
