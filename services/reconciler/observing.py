"""One look at the world: tmux every time, processes and the agents' own files as often as it is worth it.

A source that does not answer raises, or leaves what it would tell unknown. It never reads as empty.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from registry import AgentRecord
from services.reconciler.conversation_files import ConversationFiles
from services.reconciler.insides import AT_ONCE_S, Insides
from services.reconciler.sights import Sight
from services.reconciler.unstamped import Stranger, Unstamped
from shared.fleet import Fleet
from shared.ids import is_id
from shared.processes import Processes
from shared.tmux import Pane, Tmux

SOONEST_S = 0.05
"""Each turn is a whole look at tmux: not sooner than this after the last one, unless somebody says so."""


@dataclass(frozen=True)
class World:
    panes: Mapping[str, Pane]
    """The fleet's sessions, by agent."""
    sights: Mapping[str, Sight]
    """What is seen of each agent that is recorded or runs."""
    strangers: list[Stranger]
    look_again_s: float | None
    """When there is more to see, though nobody will say so."""


class Observer:
    def __init__(self, tmux: Tmux, own: Mapping[str, str]) -> None:
        self._tmux = tmux
        self._insides = Insides()
        self._files = ConversationFiles(own)
        self._unstamped = Unstamped()

    def stamps(self, fleet: Fleet) -> Mapping[str, str]:
        """Which agents have a session at all."""
        return self._tmux.stamps(fleet.stamp)

    def look(self, fleet: Fleet, records: Mapping[str, AgentRecord], now: float, *, thoroughly: bool) -> World:
        """What tmux says now, and of all else what is new, where it is worth a look; `thoroughly`, all of it.

        `records` were read before: what is started in between is only not known yet, never missing.
        """
        panes = self._tmux.look()
        ours = {pane.agent: pane for pane in panes if pane.agent and is_ours(pane, fleet)}
        if thoroughly:
            self._insides.forget()
            self._files.forget()
            self._unstamped.forget()
        processes = cache(Processes.look)  # one look, and only if somebody asks; what tmux just told is in it
        at_most_s = float("inf") if thoroughly else AT_ONCE_S
        again = [self._insides.look(fleet, records, ours, processes, now, at_most_s=at_most_s)]
        self._files.look(fleet, records, now)
        strangers = list(self._unstamped.look(fleet, panes, processes, now))
        again.append(self._unstamped.next_look)
        sights = {
            agent: self._sight(agent, records.get(agent), ours.get(agent)) for agent in records.keys() | ours.keys()
        }
        soonest = min((at for at in again if at is not None), default=None)
        return World(ours, sights, strangers, None if soonest is None else max(SOONEST_S, soonest - now))

    def _sight(self, agent: str, record: AgentRecord | None, pane: Pane | None) -> Sight:
        kept = self._files.of(agent, record)
        return Sight(pane, self._insides.of(agent, pane), kept.transcript, kept.moved_to)


def is_ours(pane: Pane, fleet: Fleet) -> bool:
    """Whether its stamps are ours. Anybody can change them, and then they are nobody's."""
    return pane.fleet == fleet.stamp and is_id(pane.agent or "") and is_id(pane.spawn or "")
