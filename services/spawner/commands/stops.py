"""Ending sessions on request: of one agent at once, of all agents a few in each turn.

A `stop_all` goes on over turns and over deaths of the spawner. Meanwhile no agent is kept running. One that `muster
down` sent holds as long as that process lives: if it was killed, nothing more is ended, and what was ended runs again.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from services.spawner.commands.replies import Refusal, by, defer
from services.spawner.sessions.termination import end_left_over, end_sessions
from services.spawner.view import SpawnerView
from shared.client.processes import going_down
from shared.contract.commands import StopAll
from shared.contract.events.lifecycle import AgentStopped
from shared.contract.states import Desired
from shared.runtime.memory import MemoryTable
from shared.runtime.turn import PendingCommand
from shared.system.tmux import Tmux

ENDED_IN_A_TURN = 50
"""More wait for the next turn, which follows at once: what was ended is published first, and the broker is heard."""
NAMED_IN_A_REPLY = 10
DOWN_LOOKED_AT_EVERY = timedelta(seconds=1)


@dataclass(frozen=True)
class StopProgress:
    """How far a `stop_all` is."""

    request: str
    down: int | None = None
    """The process id of the `muster down` that sent it: it counts as long as that lives."""
    cleared: int = 0
    """How many sessions are gone, those whose program had ended before among them."""
    ended: tuple[str, ...] = ()
    """The agents that ran."""


STOP_PROGRESS = MemoryTable("stop_all", StopProgress)


class Stops:
    def __init__(self, tmux: Tmux) -> None:
        self._tmux = tmux
        self.down_for_now: set[str] = set()
        """Agents that were ended until the services are started again: wanted, but not by this process."""

    def starts_nothing(self, view: SpawnerView) -> bool:
        """Whether all agents are being ended, or the `muster down` that had them ended still lives."""
        progress = view.turn.memory.find(STOP_PROGRESS)
        if progress is None:
            return False
        if progress.down is None:
            goes_on = any(pending.request.id == progress.request for pending in view.turn.commands)
        elif goes_on := going_down(view.fleet) == progress.down:
            view.turn.look_again_at(view.turn.now + DOWN_LOOKED_AT_EVERY)
        if not goes_on:
            view.turn.memory.put(STOP_PROGRESS, None)
        return goes_on

    def stop(self, view: SpawnerView, pending: PendingCommand, agent: str, *, for_now: bool) -> None:
        ran = view.running(agent) is not None
        end_sessions(self._tmux, [view.panes[agent]] if agent in view.panes else [])
        _end_left_over(view, [agent])
        self._publish(view, pending, agent, for_now=for_now)
        if for_now:
            self.down_for_now.add(agent)
        said = f"{agent} was stopped" if ran else f"{agent} was not running, and stays down"
        view.turn.reply(pending, said, agent=agent)

    def stop_all(self, view: SpawnerView, pending: PendingCommand, command: StopAll) -> None:
        if command.down is not None and going_down(view.fleet) != command.down:
            raise Refusal("the `muster down` that asked for this has ended, so no more agents are ended for it")
        progress = view.turn.memory.find(STOP_PROGRESS)
        if progress is None or progress.request != pending.request.id:
            progress = StopProgress(pending.request.id, command.down)
        found = [agent for agent in view.panes if view.known(agent).is_found]
        ours = {agent: pane for agent, pane in view.panes.items() if agent not in found}
        now = dict(list(ours.items())[:ENDED_IN_A_TURN])
        cleared, ended = progress.cleared + len(now), [agent for agent in now if view.running(agent)]
        progress = replace(progress, cleared=cleared, ended=(*progress.ended, *ended))
        end_sessions(self._tmux, list(now.values()))
        for agent in now:
            self._publish(view, pending, agent, for_now=command.for_now)
        view.turn.memory.put(STOP_PROGRESS, progress)
        if left := len(ours) - len(now):
            defer(view, pending, f"ended {cleared} of {cleared + left} agents")
            view.turn.look_again_at(view.turn.now)
        else:
            self._finish(view, pending, command, progress, found)

    def _finish(
        self, view: SpawnerView, pending: PendingCommand, command: StopAll, progress: StopProgress, found: list[str]
    ) -> None:
        """All sessions are gone: those agents follow that had none, or that a spawner ended which died of it."""
        rest = [agent for agent in dict.fromkeys([*view.fleet.agents, *view.adopted()]) if agent not in found]
        _end_left_over(view, rest)
        for agent in rest:
            self._publish(view, pending, agent, for_now=command.for_now)
        if command.down is None:
            view.turn.memory.put(STOP_PROGRESS, None)
            self.down_for_now |= set(view.fleet.agents) | set(view.adopted()) if command.for_now else set()
        said = _stopped(progress.ended)
        if len(found) == 1:
            said += f"; {found[0]}, which was only found, was left alone: name it to stop it"
        elif found:
            said += f"; {len(found)} that were only found were left alone: name them to stop them"
        view.turn.reply(pending, said, agents=list(progress.ended), left_alone=found)

    def _publish(self, view: SpawnerView, pending: PendingCommand, agent: str, *, for_now: bool) -> None:
        known, pane = view.known(agent), view.panes.pop(agent, None)
        stopped = known.as_stopped()
        view.remember(agent, stopped if for_now else replace(stopped, wish=Desired.STOPPED, overrides={}))
        if pane is not None or known.had_session or not (for_now or known.wish is Desired.STOPPED):
            spawn = pane.spawn if pane is not None else known.spawn
            event = AgentStopped(agent=agent, spawn=spawn, reason=by(pending), for_now=for_now)
            view.turn.emit(event, cause=pending.request.id)


def _end_left_over(view: SpawnerView, agents: Iterable[str]) -> None:
    """End the programs of agents whose session is gone. Together: each may take seconds."""
    gone = [view.known(agent).session for agent in agents if agent not in view.panes]
    end_left_over([(each.pid, each.spawn) for each in gone if each.pid and each.spawn])


def _stopped(ended: tuple[str, ...]) -> str:
    if not ended:
        return "no agent was running"
    return f"{', '.join(ended)}: stopped" if len(ended) <= NAMED_IN_A_REPLY else f"{len(ended)} agents were stopped"
