"""Handoff on real git remotes, with a real journal and registry; the test answers for the spawner."""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from registry import AgentRecord, RegistryFile
from services.handoff.loop_turn import BRANCHES, BranchMemory
from services.handoff.loops.phases import PROGRESS, PhaseProgress
from services.handoff.remotes.git import Git
from services.handoff.remotes.push_hints import PushHints
from services.handoff.remotes.targets import address_of
from services.handoff.remotes.watcher import RemoteWatcher
from services.handoff.service import Handoff
from shared.contract.commands import Command, Reply, Restart, Send
from shared.contract.envelope import Event
from shared.contract.events.loops import LoopEvent
from shared.contract.states import Activity
from shared.messaging.journal import Journal
from shared.runtime.memory import Memory
from shared.runtime.turn import Turn
from shared.system.log import Log
from tests.fakes.fleets import WrittenFleet
from tests.fakes.peers import Peer
from tests.fakes.records import START, make_record
from tests.fakes.turns import TurnDriver
from tests.fixtures.broker import wait_until
from tests.fixtures.repositories import ENV

E = TypeVar("E", bound=Event)
QUICK = {"poll_s": 0.05}
PAIR = {"builder": {"kind": "loop"}, "reviewer": {"kind": "loop"}}


class Station:
    def __init__(self, directory: Path, loops: Mapping[str, Any], agents: Mapping[str, Any] | None = None) -> None:
        self.agents = agents or {"builder": {}, "reviewer": {}}
        self._written = WrittenFleet(directory, self.agents, loops=_quick(loops))
        self.path, self.fleet_file = self._written.path, self._written.file
        fleet = self.fleet_file.fleet
        self.journal, self._spawner = Journal(fleet.journal, "handoff"), Peer(fleet.journal, "spawner", fleet.space)
        self.turns = TurnDriver(self.journal, fleet.space, START)
        self.registry = RegistryFile(fleet.registry)
        self.told: list[Event] = []
        self.asked: list[Command] = []
        self.trouble = ""
        """What the latest turn said was wrong."""
        self._news = threading.Event()
        self.watcher = self._begin()

    def declare(self, loops: Mapping[str, Any]) -> None:
        self._written.declare(self.agents, loops=_quick(loops))

    @property
    def memory(self) -> Memory:
        """What the service remembers."""
        return Memory(self.turns.memory)

    def branch(self, loop: str = "main") -> BranchMemory | None:
        """None until the branch was observed."""
        return self.memory.find(BRANCHES, loop)

    def tip(self) -> str | None:
        branch = self.branch()
        return branch.tip if branch is not None else None

    def phase_number(self) -> int:
        return (self.memory.find(PROGRESS, "main") or PhaseProgress()).number

    def _begin(self) -> RemoteWatcher:
        mirrors = self.fleet_file.fleet.home / "mirrors"
        watcher = RemoteWatcher(mirrors, Git(mirrors, {**os.environ, **ENV}), self._news.set, Log("handoff"))
        watcher.end_leftovers()
        watcher.begin()
        registry = RegistryFile(self.registry.path)
        self.hints = PushHints(watcher.ask_now, every_s=0.05)
        self.service = Handoff(self.fleet_file, registry, self.journal, watcher, self.hints)
        return watcher

    def restarts(self) -> None:
        """As a new process."""
        self.watcher.close()
        self.fleet_file = self._written.opened()
        self.watcher = self._begin()

    def close(self) -> None:
        self.hints.close()
        self.watcher.close()
        self.journal.close()
        self._spawner.close()

    # --- turns ---

    def turn(self, *commands: Command, commits: bool = True) -> Turn:
        self._news.clear()
        self.turns.now = max(self.turns.now, datetime.now(UTC))
        turn = self.turns.run(self.service.step, *commands, commits=commits)
        self.trouble = turn.trouble
        if commits:
            self.told += [event for event, _ in turn.emitted]
            self.asked += turn.outgoing
        return turn

    def until(self, says: Callable[[], Any], what: str, within_s: float = 20.0) -> Any:
        """Take turns as the loop would, until something is so."""

        def again() -> Any:
            self.turn()
            return says() or (self._news.wait(0.02) and None)

        return wait_until(again, f"{what}; told was {self.kinds()[-8:]}", within_s)

    def until_news(self) -> None:
        """Until something was seen, and not taken up."""
        assert self._news.wait(20), "nothing was seen"

    def settled(self) -> None:
        """Until the remotes were asked once more, and nothing is new."""
        began = datetime.now(UTC).timestamp()
        fleet = self.fleet_file.fleet
        addresses = {address_of(fleet, loop) for loop in fleet.declared.loops.values()}
        for address in addresses:
            self.until(lambda a=address: _answered_at(self.watcher, a) > began, "the remote is asked again")  # type: ignore[misc]
        for _ in range(3):
            self.turn()

    def reply(self, command: Command) -> Reply:
        (answer,) = self.turn(command).replies.values()
        return answer[1]

    # --- what was told and asked ---

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.told if isinstance(event, kind)]

    def kinds(self, loop: str | None = None) -> list[str]:
        return [each.kind for each in self.told if isinstance(each, LoopEvent) and loop in (None, each.loop)]

    def texts(self, agent: str) -> list[str]:
        """What the spawner was asked to type."""
        return [each.text or "" for each in self.asked if isinstance(each, Send) and each.agent == agent]

    def starts(self, agent: str) -> list[Restart]:
        return [each for each in self.asked if isinstance(each, Restart) and each.agent == agent]

    # --- what others do ---

    def runs(self, *agents: str, spawn: str = "s1", activity: Activity = Activity.WAITING, **more: Any) -> None:
        self.registry.write({agent: _record(spawn, activity, **more) for agent in agents}, (), {}, ())

    def answers(
        self, command: Command, said: str = "done", *, ok: bool = True, code: str = "", spawn: str = ""
    ) -> None:
        """As the spawner would."""
        code = code or ("ok" if ok else "refused")
        self._spawner.answer(command, code, said, time=START, **({"spawn": spawn} if spawn else {}))

    def answers_all(self, commands: Sequence[Command] | None = None) -> None:
        for command in self.asked if commands is None else commands:
            self.answers(command)


def _quick(loops: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {**QUICK, **loop} for name, loop in loops.items()}


def _answered_at(watcher: RemoteWatcher, address: str) -> float:
    status = watcher.status(address)
    return status.answered_at if status is not None else 0.0


def _record(spawn: str, activity: Activity, **more: Any) -> AgentRecord:
    return make_record(spawn=spawn, **{"workspace": "/", "activity": activity, **more})
