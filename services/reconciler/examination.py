"""What runs in the panes of our agents, and in which conversation: examined only when something may have changed."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from registry import AgentRecord
from services.reconciler.classification import Examination
from shared.agents.identity import identify, identity_reader_for
from shared.agents.recognition import agent_in, program_in, recognised_by
from shared.contract.ids import is_conversation
from shared.fleet import Fleet
from shared.system.processes import Processes
from shared.system.tmux import Pane

ReadProcesses = Callable[[], Processes]

VALID_AT_FIRST_S = 1.0
"""How long an examination of an unidentified agent, young or active, is valid; doubled while nothing new is found."""
VALID_IF_YOUNG_S = 4.0
"""In a young session the doubling stops here."""
VALID_IF_ACTIVE_S = 10.0
"""How long an examination of an identified agent is valid once its pane shows activity."""
VALID_AT_MOST_S = 60.0
"""How long any examination is valid."""
YOUNG_SESSION_S = 60.0
"""A session is young until this age."""
STARTING_SESSION_S = 10.0
"""In a session that is younger than this, a wrong program never counts."""
WRONG_CONFIRMED_AFTER_S = 2.0
"""A wrong program counts when it is seen again after this time."""
QUIET_PANE_S = 60.0
"""After such a silence, new activity may be another program's."""
PROGRAMS_AT_MOST = 32
"""A pane that has run so many programs is no longer examined for each new one."""
EXAMINES_FOR_S = 0.01
"""The time for examinations in one turn: notices of tmux must not wait long."""
LEFT_OVER_AFTER_S = 0.05
"""Examinations for which a turn had no time follow after this time."""
GATHERS_FOR_S = 0.5
"""Examinations that become due are gathered for this long, since each turn reads all of tmux."""


@dataclass
class _ExaminedPane:
    pane: Pane
    at: float
    examined: Examination
    wrong: bool
    """Whether another program than the backend's was seen, confirmed or not."""
    unchanged: int
    """How many examinations in a row found the same."""
    activity: int
    """The latest activity that tmux showed."""
    commands: frozenset[str]
    """The programs that were seen in the foreground."""
    flaps: int = 0
    """How often the foreground went back to a known program and nothing else changed."""
    foreground: str = ""
    foreground_since: float = float("-inf")

    @property
    def is_unconfirmed(self) -> bool:
        return self.wrong and self.examined.runs_its_backend is None

    def is_known_program(self, pane: Pane) -> bool:
        known = pane.command in self.commands or len(self.commands) >= PROGRAMS_AT_MOST
        return self.is_same_process(pane) and known

    def is_same_process(self, pane: Pane) -> bool:
        return (self.pane.spawn, self.pane.pid) == (pane.spawn, pane.pid)

    def note(self, pane: Pane, now: float) -> None:
        """Note what tmux shows between two examinations."""
        if pane.command != self.foreground:
            if not 0 <= now - self.foreground_since < QUIET_PANE_S:
                self.flaps = 0
            self.foreground, self.foreground_since = pane.command, now
        if pane.activity - self.activity >= QUIET_PANE_S:
            self.unchanged = 0
        self.activity = pane.activity

    def valid_until(self, pane: Pane, now: float, *, identified: bool) -> float:
        if self.is_unconfirmed:
            return self.at + WRONG_CONFIRMED_AFTER_S
        active, young = pane.activity != self.pane.activity, abs(now - pane.created) < YOUNG_SESSION_S
        if not identified and (active or young):
            valid_s = min(_doubled(self.unchanged), VALID_IF_YOUNG_S if young else VALID_AT_MOST_S)
        else:
            valid_s = VALID_IF_ACTIVE_S if active else VALID_AT_MOST_S
        if pane.command != self.pane.command:
            valid_s = min(valid_s, _doubled(self.flaps) if self.flaps else 0.0)
        return self.at + valid_s

    def is_valid(self, pane: Pane, now: float, *, identified: bool) -> bool:
        """An examination of the future is not: the clock was set back."""
        return self.is_known_program(pane) and self.at <= now < self.valid_until(pane, now, identified=identified)


def _doubled(times: int) -> float:
    return VALID_AT_FIRST_S * 2.0 ** min(max(times - 1, 0), 10)


@dataclass
class PaneExaminer:
    """Keeps the latest examination of each agent's pane."""

    clock: Callable[[], float] = time.perf_counter
    """Measures how long examinations take."""
    _panes: dict[str, _ExaminedPane] = field(default_factory=dict)

    def update(
        self,
        fleet: Fleet,
        records: Mapping[str, AgentRecord],
        panes: Mapping[str, Pane],
        read_processes: ReadProcesses,
        now: float,
        *,
        at_most_s: float = EXAMINES_FOR_S,
    ) -> float | None:
        """Examine again what may have changed: at least one pane, and as many as `at_most_s` allows.

        Returns when the next examination is due, even if tmux notices nothing; None: there is nothing to examine.
        """
        for agent in self._panes.keys() - panes.keys():
            del self._panes[agent]
        alive = {agent: pane for agent, pane in panes.items() if not pane.dead}
        identified = {agent: _is_identified(fleet, records.get(agent)) for agent in alive}
        due = [agent for agent, pane in alive.items() if not self._is_valid(agent, pane, now, identified[agent])]
        # The oldest first, so that each gets its turn.
        due.sort(key=lambda agent: self._panes[agent].at if agent in self._panes else float("-inf"))
        processes = read_processes() if due else Processes([])
        began = self.clock()
        for place, agent in enumerate(due):
            if place and self.clock() - began >= at_most_s:
                return now + LEFT_OVER_AFTER_S
            self._panes[agent] = self._examine(fleet, records.get(agent), alive[agent], processes, agent, now)
        next_due = [
            self._panes[agent].valid_until(pane, now, identified=identified[agent]) for agent, pane in alive.items()
        ]
        return max(min(next_due), now + GATHERS_FOR_S) if next_due else None

    def of(self, agent: str, pane: Pane | None) -> Examination:
        known = self._panes.get(agent)
        return known.examined if known and pane and known.pane.spawn == pane.spawn else Examination()

    def expire(self) -> None:
        """Have every pane examined again. A wrong program that waits for its confirmation is kept."""
        self._panes = {agent: known for agent, known in self._panes.items() if known.wrong}
        for known in self._panes.values():
            known.at = float("-inf")

    def _is_valid(self, agent: str, pane: Pane, now: float, identified: bool) -> bool:
        known = self._panes.get(agent)
        if known is None:
            return False
        known.note(pane, now)
        return known.is_valid(pane, now, identified=identified)

    def _examine(
        self, fleet: Fleet, record: AgentRecord | None, pane: Pane, processes: Processes, agent: str, now: float
    ) -> _ExaminedPane:
        before = self._panes.get(agent)
        examined = examine(fleet, record, pane, processes)
        wrong = examined.runs_its_backend is False
        seen_twice = before is not None and before.wrong and before.pane.spawn == pane.spawn
        if wrong and (not seen_twice or abs(now - pane.created) < STARTING_SESSION_S):
            examined = replace(examined, runs_its_backend=None)
        after = _ExaminedPane(pane, now, examined, wrong, 1, pane.activity, frozenset({pane.command}), 0, pane.command)
        if before is None or not before.is_same_process(pane):
            return after
        after.commands, after.foreground_since = before.commands | {pane.command}, before.foreground_since
        if before.is_known_program(pane) and (before.examined, before.wrong) == (examined, wrong):
            after.unchanged = before.unchanged + 1
            after.flaps = before.flaps + (pane.command != before.pane.command)
        return after


def _is_identified(fleet: Fleet, record: AgentRecord | None) -> bool:
    """Whether the agent's conversation is recorded, or can't be found out at all."""
    if record is None or record.transcript is not None:
        return record is not None
    backend = fleet.backends.get(record.backend)
    return backend is None or identity_reader_for(record.backend, backend) is None


def examine(fleet: Fleet, record: AgentRecord | None, pane: Pane, processes: Processes) -> Examination:
    """Which program the processes in a pane are, and in which conversation it is."""
    if not processes.below(pane.pid):
        return Examination()
    found = agent_in(processes, fleet.backends, pane.pid)
    found_name = found[0] if found is not None else None
    name = record.backend if record is not None else found_name
    backend = fleet.backends.get(name or "")
    if name is None or backend is None:
        return Examination(found=found_name)
    process = program_in(processes, backend, pane.pid)
    if process is None:
        is_recognisable = recognised_by(backend.model_copy(update={"like": None}))
        return Examination(runs_its_backend=False if is_recognisable else None, found=found_name)
    workspace = Path(record.workspace if record is not None else pane.path)
    identity = identify(name, backend, processes, process, workspace)
    if identity is not None and not is_conversation(identity.conversation):
        identity = None
    return Examination(runs_its_backend=True, found=name, identity=identity)
