"""Drives loops: reports what is new on their branches, takes them through their phases, and delivers messages.

A turn takes the watcher's observations up (`branch_events.py`), answers commands (`commands.py`), runs the phases
(`phase_runner.py`) and delivers what waits for agents (`messages.py`). The decisions are in `loops/`.
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from registry import AgentRecord, RegistryFile
from registry.memory import RegistryReader
from services.handoff.branch_events import report_branch, report_status
from services.handoff.commands import answer
from services.handoff.loop_turn import OUTAGES, LoopTurn
from services.handoff.loops.mailbox import MAILBOXES
from services.handoff.messages import deliver, queue_message
from services.handoff.phase_runner import advance, run_actions, starting_agents
from services.handoff.remotes.observation import BranchObservation
from services.handoff.remotes.push_hints import PushHints
from services.handoff.remotes.targets import address_of, targets, watched_refs
from services.handoff.remotes.watcher import RemoteWatcher
from shared.contract.envelope import Data
from shared.contract.events.loops import RemoteReachable, RemoteUnreachable
from shared.fleet import Fleet, FleetFile
from shared.fleet.fleet import BadPath
from shared.fleet.loops import Loop, shown_remote
from shared.messaging.journal import Journal
from shared.runtime.turn import Turn


class Handoff:
    name: ClassVar[str] = "handoff"

    def __init__(
        self,
        fleet_file: FleetFile,
        registry: RegistryFile,
        journal: Journal,
        watcher: RemoteWatcher,
        hints: PushHints,
    ) -> None:
        self._fleet_file = fleet_file
        self._records = RegistryReader(registry, journal)
        self._watcher = watcher
        self._hints = hints

    def states(self) -> Iterable[Data]:
        return ()

    def step(self, turn: Turn) -> None:
        self._fleet_file.refresh()
        fleet = self._fleet_file.fleet
        loops = {name: _loop_turn(turn, fleet, name, declared) for name, declared in fleet.declared.loops.items()}
        watched = [loop for loop in loops.values() if loop.address]
        observations = self._watcher.take()
        records = self._records.read(turn) if watched else {}
        for loop in watched:
            with turn.isolated(f"loop {loop.name}"):
                self._report(loop, [each for each in observations if each.loop == loop.name])
        for pending in turn.commands:
            with turn.isolated("a loop that was asked for"):
                answer(turn, pending, fleet, loops, self._watcher)
            if pending.request.id not in turn.replies:
                turn.reply(pending, f"{pending.request.verb} failed; the log of {self.name} says why", code="refused")
        for loop in watched:
            with turn.isolated(f"loop {loop.name}"):
                report_status(loop)
                advance(loop)
                run_actions(loop, records)
        _deliver_all(turn, loops.values(), records)
        self._watcher.watch(targets(watched))
        self._hints.watch(watched_refs(watched))

    def _report(self, loop: LoopTurn, observations: Iterable[BranchObservation]) -> None:
        """Report whether the remote answers, and what is new on the branch."""
        self._report_outage(loop)
        for observation in observations:
            for message in report_branch(loop, observation):
                when, outlives_phase = loop.declared.when, message.outlives_phase
                queue_message(loop.turn, message.agent, loop.name, message.text, when, outlives_phase=outlives_phase)

    def _report_outage(self, loop: LoopTurn) -> None:
        status, down_since = self._watcher.status(loop.address), loop.find(OUTAGES)
        if status is None:
            return
        remote = shown_remote(loop.declared)
        if status.is_down:
            loop.turn.degrade(f"the remote of the loop {loop.name} does not answer: {status.failure}")
            if down_since is None:
                loop.put(OUTAGES, loop.now)
                loop.turn.emit(RemoteUnreachable(loop=loop.name, remote=remote, reason=status.failure))
        elif down_since is not None and status.answered_at and not status.failure:
            loop.put(OUTAGES, None)
            away_s = round(max(0.0, loop.now - down_since), 1)
            loop.turn.emit(RemoteReachable(loop=loop.name, remote=remote, away_s=away_s))


def _loop_turn(turn: Turn, fleet: Fleet, name: str, declared: Loop) -> LoopTurn:
    try:
        address = address_of(fleet, declared) if declared.enabled else ""
    except BadPath as error:
        turn.degrade(f"the remote of the loop {name} can't be one: {error}")
        address = ""
    return LoopTurn(turn, fleet, name, declared, address)


def _deliver_all(turn: Turn, loops: Iterable[LoopTurn], records: Mapping[str, AgentRecord]) -> None:
    starting = {agent for loop in loops for agent in starting_agents(loop)}
    for agent in turn.memory.all(MAILBOXES):
        with turn.isolated(f"a message for {agent}"):
            deliver(turn, agent, records.get(agent), is_starting=agent in starting)
