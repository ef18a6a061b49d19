"""The inside of our sessions: what runs in each pane and which conversation it is in, looked at when it is worth it."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from registry import AgentRecord
from services.reconciler.comparison import Examination
from shared.agents.identity import identify, reader_for
from shared.agents.recognition import agent_in, program_in, recognised_by
from shared.contract.ids import is_conversation
from shared.fleet import Fleet
from shared.system.processes import Processes
from shared.system.tmux import Pane

Look = Callable[[], Processes]

YOUNG_S, YOUNG_EVERY_S = 60.0, 4.0
"""For so long after its start, an agent that has not said who it is is looked at so often, seen in vain or not."""
SOON_S, LATER_S, AT_LEAST_S = 1.0, 10.0, 60.0
"""How long a look is good: unidentified and young or just active (twice as long each time), active, in any case."""
QUIET_S = 60.0
"""A pane in which something happens after so long may have become somebody else."""
COMMANDS_AT_MOST = 32
"""Who has run so many programs will run others."""
AT_ONCE_S = 0.01
"""So long sessions are looked into in one turn: what tmux tells meanwhile must not wait for long."""
GOES_ON_S, GATHERS_S = 0.05, 0.5
"""Each turn is a whole look at tmux. What was left over comes soon; what will be due comes together."""
DOUBTS_S, STARTS_S = 2.0, 10.0
"""That its program is not there is believed the second time, and not of a session that is younger."""


@dataclass
class _Looked:
    """What was last seen in one session."""

    pane: Pane
    at: float
    examined: Examination
    wrong: bool
    """Whether another program than its own was seen, believed or not."""
    vain: int
    """How often it was looked at, and did not say anything new of itself."""
    activity: int
    """When something last happened in it, as far as tmux was asked."""
    commands: frozenset[str]
    """The programs that were seen in front in it."""
    flaps: int = 0
    """How often one of them came back, and all was as before: some run small programs all the time."""
    command: str = ""
    changed: float = float("-inf")
    """What was last in front, looked into or not, and since when."""

    @property
    def doubted(self) -> bool:
        return self.wrong and self.examined.runs_its_backend is None

    def is_of(self, pane: Pane) -> bool:
        known = pane.command in self.commands or len(self.commands) >= COMMANDS_AT_MOST
        return self.is_in(pane) and known

    def is_in(self, pane: Pane) -> bool:
        return (self.pane.spawn, self.pane.pid) == (pane.spawn, pane.pid)

    def notice(self, pane: Pane, now: float) -> None:
        """What happens in it between two looks."""
        if pane.command != self.command:
            if not 0 <= now - self.changed < QUIET_S:
                self.flaps = 0
            self.command, self.changed = pane.command, now
        if pane.activity - self.activity >= QUIET_S:
            self.vain = 0
        self.activity = pane.activity

    def good_until(self, pane: Pane, now: float, *, identified: bool) -> float:
        if self.doubted:
            return self.at + DOUBTS_S
        active, young = pane.activity != self.pane.activity, abs(now - pane.created) < YOUNG_S
        if not identified and (active or young):
            good_s = min(_doubled(self.vain), YOUNG_EVERY_S if young else AT_LEAST_S)
        else:
            good_s = LATER_S if active else AT_LEAST_S
        if pane.command != self.pane.command:
            good_s = min(good_s, _doubled(self.flaps) if self.flaps else 0.0)
        return self.at + good_s

    def is_good(self, pane: Pane, now: float, *, identified: bool) -> bool:
        """A look from the future is none: the clock was set back."""
        return self.is_of(pane) and self.at <= now < self.good_until(pane, now, identified=identified)


def _doubled(times: int) -> float:
    return SOON_S * 2.0 ** min(max(times - 1, 0), 10)


@dataclass
class PaneExaminer:
    clock: Callable[[], float] = time.perf_counter
    """What measures how long the looks take."""
    _looked: dict[str, _Looked] = field(default_factory=dict)

    def look(
        self,
        fleet: Fleet,
        records: Mapping[str, AgentRecord],
        panes: Mapping[str, Pane],
        look: Look,
        now: float,
        *,
        at_most_s: float = AT_ONCE_S,
    ) -> float | None:
        """See again what may have changed; answers when there is more to see, though nobody will say so."""
        for agent in self._looked.keys() - panes.keys():
            del self._looked[agent]
        alive = {agent: pane for agent, pane in panes.items() if not pane.dead}
        known = {agent: _is_known(fleet, records.get(agent)) for agent in alive}
        due = [agent for agent, pane in alive.items() if not self._is_good(agent, pane, now, identified=known[agent])]
        due.sort(key=self._looked_at)  # in turn: all of them come to it, however many there are
        left = self._into(fleet, records, {agent: alive[agent] for agent in due}, look, now, at_most_s)
        if left:
            return now + GOES_ON_S
        soonest = min(
            (self._looked[a].good_until(pane, now, identified=known[a]) for a, pane in alive.items()), default=None
        )
        return None if soonest is None else max(soonest, now + GATHERS_S)

    def _is_good(self, agent: str, pane: Pane, now: float, *, identified: bool) -> bool:
        looked = self._looked.get(agent)
        if looked is None:
            return False
        looked.notice(pane, now)
        return looked.is_good(pane, now, identified=identified)

    def _looked_at(self, agent: str) -> float:
        looked = self._looked.get(agent)
        return looked.at if looked is not None else float("-inf")

    def _into(
        self,
        fleet: Fleet,
        records: Mapping[str, AgentRecord],
        due: Mapping[str, Pane],
        look: Look,
        now: float,
        at_most_s: float,
    ) -> int:
        """Look into sessions, as many as there is time for, but one at least; answers how many are left."""
        if not due:
            return 0
        processes = look()
        began, done = self.clock(), 0
        for agent, pane in due.items():
            if done and self.clock() - began >= at_most_s:
                break
            record, before = records.get(agent), self._looked.get(agent)
            self._looked[agent] = self._examine(fleet, record, pane, processes, before, now)
            done += 1
        return len(due) - done

    def of(self, agent: str, pane: Pane | None) -> Examination:
        looked = self._looked.get(agent)
        return looked.examined if looked and pane and looked.pane.spawn == pane.spawn else Examination()

    def forget(self) -> None:
        """Have all of it looked at anew; only doubts stay."""
        self._looked = {agent: looked for agent, looked in self._looked.items() if looked.wrong}
        for looked in self._looked.values():
            looked.at = float("-inf")

    def _examine(
        self,
        fleet: Fleet,
        record: AgentRecord | None,
        pane: Pane,
        processes: Processes,
        before: _Looked | None,
        now: float,
    ) -> _Looked:
        examined = examine(fleet, record, pane, processes)
        wrong = examined.runs_its_backend is False
        seen_twice = before is not None and before.wrong and before.pane.spawn == pane.spawn
        if wrong and (not seen_twice or abs(now - pane.created) < STARTS_S):
            examined = replace(examined, runs_its_backend=None)
        looked = _Looked(pane, now, examined, wrong, 1, pane.activity, frozenset({pane.command}), 0, pane.command)
        if before is None or not before.is_in(pane):
            return looked
        looked.commands, looked.changed = before.commands | {pane.command}, before.changed
        if before.is_of(pane) and (before.examined, before.wrong) == (examined, wrong):
            looked.vain = before.vain + 1
            looked.flaps = before.flaps + (pane.command != before.pane.command)
        return looked


def _is_known(fleet: Fleet, record: AgentRecord | None) -> bool:
    """Whether its conversation is known, or never will be."""
    if record is None or record.transcript is not None:
        return record is not None
    backend = fleet.backends.get(record.backend)
    return backend is None or reader_for(record.backend, backend) is None


def examine(fleet: Fleet, record: AgentRecord | None, pane: Pane, processes: Processes) -> Examination:
    """What the processes in a pane are, and which conversation they are in."""
    below = processes.below(pane.pid)
    if not below:
        return Examination()
    found = agent_in(processes, fleet.backends, pane.pid)
    found_name = found[0] if found is not None else None
    name = record.backend if record is not None else found_name
    backend = fleet.backends.get(name or "")
    if name is None or backend is None:
        return Examination(found=found_name)
    called = recognised_by(backend.model_copy(update={"like": None}))
    its_own = program_in(processes, backend, pane.pid)
    if its_own is None:
        return Examination(runs_its_backend=False if called else None, found=found_name)
    workspace = Path(record.workspace if record is not None else pane.path)
    identity = identify(name, backend, processes, its_own, workspace)
    if identity is not None and not is_conversation(identity.conversation):
        identity = None
    return Examination(runs_its_backend=True, found=name, identity=identity)
