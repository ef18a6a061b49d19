"""The inside of our sessions: what runs in each pane and which conversation it is in, looked at when it is worth it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from registry import AgentRecord
from services.reconciler.sights import Examined
from shared.fleet import Fleet
from shared.identity import identify, reader_for
from shared.ids import is_conversation
from shared.processes import Processes, agent_in, recognised_by
from shared.tmux import Pane

Look = Callable[[], Processes]

YOUNG_S = 60.0
"""For so long after its start, an agent that has not said who it is is looked at every second."""
SOON_S, LATER_S, AT_LEAST_S = 1.0, 10.0, 60.0
"""How long a look is good: unidentified and young or just active, active, in any case."""
DOUBTS_S, STARTS_S = 2.0, 10.0
"""That its program is not there is believed the second time, and not of a session that is younger."""


@dataclass
class _Looked:
    """What was last seen in one session."""

    pane: Pane
    at: float
    examined: Examined
    wrong: bool
    """Whether another program than its own was seen, believed or not."""

    @property
    def doubted(self) -> bool:
        return self.wrong and self.examined.runs_its_backend is None

    def is_of(self, pane: Pane) -> bool:
        return (self.pane.spawn, self.pane.pid, self.pane.command) == (pane.spawn, pane.pid, pane.command)

    def good_until(self, pane: Pane, now: float, *, identified: bool) -> float:
        if self.doubted:
            return self.at + DOUBTS_S
        active = pane.activity != self.pane.activity
        if not identified and (active or now - pane.created < YOUNG_S):
            return self.at + SOON_S
        return self.at + (LATER_S if active else AT_LEAST_S)


@dataclass
class Insides:
    _looked: dict[str, _Looked] = field(default_factory=dict)

    def look(
        self,
        fleet: Fleet,
        records: Mapping[str, AgentRecord],
        panes: Mapping[str, Pane],
        look: Look,
        now: float,
        *,
        at_most: int,
    ) -> float | None:
        """See again what may have changed; answers when there is more to see, though nobody will say so."""
        for agent in self._looked.keys() - panes.keys():
            del self._looked[agent]
        next_look: list[float] = []
        for agent, pane in panes.items():
            if pane.dead:
                continue
            record, looked = records.get(agent), self._looked.get(agent)
            known = _is_known(fleet, record)
            if looked is None or not looked.is_of(pane) or now >= looked.good_until(pane, now, identified=known):
                if at_most == 0:
                    next_look.append(now)
                    continue
                at_most -= 1
                looked = self._looked[agent] = self._examine(fleet, record, pane, look(), looked, now)
            next_look.append(looked.good_until(pane, now, identified=known))
        return min(next_look, default=None)

    def of(self, agent: str, pane: Pane | None) -> Examined:
        looked = self._looked.get(agent)
        return looked.examined if looked and pane and looked.pane.spawn == pane.spawn else Examined()

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
        if wrong and (not seen_twice or now - pane.created < STARTS_S):
            examined = replace(examined, runs_its_backend=None)
        return _Looked(pane, now, examined, wrong)


def _is_known(fleet: Fleet, record: AgentRecord | None) -> bool:
    """Whether its conversation is known, or never will be."""
    if record is None or record.transcript is not None:
        return record is not None
    backend = fleet.backends.get(record.backend)
    return backend is None or reader_for(record.backend, backend) is None


def examine(fleet: Fleet, record: AgentRecord | None, pane: Pane, processes: Processes) -> Examined:
    """What the processes in a pane are, and which conversation they are in."""
    below = processes.below(pane.pid)
    if not below:
        return Examined()
    found = agent_in(processes, fleet.backends, pane.pid)
    found_name = found[0] if found is not None else None
    name = record.backend if record is not None else found_name
    backend = fleet.backends.get(name or "")
    if name is None or backend is None:
        return Examined(found=found_name)
    called = recognised_by(backend.model_copy(update={"like": None}))
    its_own = [process for process in below if called & processes.names(process)]
    if not its_own:
        return Examined(runs_its_backend=False if called else None, found=found_name)
    workspace = Path(record.workspace if record is not None else pane.path)
    identity = identify(name, backend, processes, its_own[0], workspace)
    if identity is not None and not is_conversation(identity.conversation):
        identity = None
    return Examined(runs_its_backend=True, found=name, identity=identity)
