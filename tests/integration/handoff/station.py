"""Handoff on real git remotes, with a real journal and registry; the test plays the spawner and the clock goes on."""

import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from registry import AgentRecord, RegistryFile
from services.handoff.looking.git import Git
from services.handoff.looking.hints import Hints
from services.handoff.looking.looker import Looker
from services.handoff.service import Handoff
from shared.commands import Command, Reply, Restart, Send
from shared.desk import request_of
from shared.events import Event, LoopEvent
from shared.fleet import FleetFile
from shared.ids import new_id
from shared.journal import Journal
from shared.log import Log
from shared.states import Activity, Desired, Status
from shared.turn import Asked, Turn
from tests.fixtures.broker import wait_until
from tests.fixtures.repositories import ENV

E = TypeVar("E", bound=Event)
START = datetime(2030, 1, 1, tzinfo=UTC)
QUICK = {"poll_s": 0.05}
PAIR = {"builder": {"kind": "loop"}, "reviewer": {"kind": "loop"}}


class Station:
    def __init__(self, directory: Path, loops: Mapping[str, Any], agents: Mapping[str, Any] | None = None) -> None:
        self.path = directory / "fleet.yaml"
        self.agents = agents or {"builder": {}, "reviewer": {}}
        self.declare(loops)
        self.fleet_file = FleetFile(self.path)
        self.fleet_file.fleet.home.mkdir(mode=0o700)
        self.journal = Journal(self.fleet_file.fleet.journal, "handoff")
        self._spawner = Journal(self.fleet_file.fleet.journal, "spawner")
        self.registry = RegistryFile(self.fleet_file.fleet.registry)
        self.memory: dict[str, Any] = {}
        self.told: list[Event] = []
        self.asked: list[Command] = []
        self.now = START
        self._news = threading.Event()
        self.looker = self._begin()

    def declare(self, loops: Mapping[str, Any]) -> None:
        declared = {name: {**QUICK, **loop} for name, loop in loops.items()}
        self.path.write_text(json.dumps({"host": "box", "agents": self.agents, "loops": declared}))

    def _begin(self) -> Looker:
        mirrors = self.fleet_file.fleet.home / "mirrors"
        looker = Looker(mirrors, Git(mirrors, {**os.environ, **ENV}), self._news.set)
        looker.tidy()
        looker.begin()
        registry = RegistryFile(self.registry.path)
        self.hints = Hints(looker.look_now, every_s=0.05)
        self.service = Handoff(self.fleet_file, registry, self.journal, looker, self.hints, Log("handoff"))
        return looker

    def restarts(self) -> None:
        """As a new process."""
        self.looker.close()
        self.fleet_file = FleetFile(self.path)
        self.looker = self._begin()

    def close(self) -> None:
        self.hints.close()
        self.looker.close()
        self.journal.close()
        self._spawner.close()

    # --- turns ---

    def turn(self, *commands: Command, commits: bool = True) -> Turn:
        self._news.clear()
        self.now = max(self.now, datetime.now(UTC))
        space = self.fleet_file.fleet.space
        made = [each.model_copy(update={"id": each.id or new_id()}) for each in commands]
        asked = [Asked(request_of(space, each, self.now.timestamp()), each) for each in made]
        turn = Turn("handoff", self.now, poll=False, heard=[], asked=asked, memory=self.memory)
        self.service.step(turn)
        if commits:
            kept = json.loads(json.dumps(turn.kept))
            self.memory = {key: each for key, each in (self.memory | kept).items() if each is not None}
            self.told += [event for event, _ in turn.told]
            self.asked += turn.wanted
            requests = [request_of(space, each, self.now.timestamp()) for each in turn.wanted]
            self.journal.requests.accept(requests, "spawner")
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
        addresses = {self.service.address_of(name) for name in self.fleet_file.fleet.declared.loops}
        for address in addresses:
            self.until(lambda a=address: _asked_at(self.looker, a) > began, "the remote is asked again")  # type: ignore[misc]
        for _ in range(3):
            self.turn()

    def reply(self, command: Command) -> Reply:
        (answer,) = self.turn(command).answers.values()
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
        reply = Reply(
            id=str(command.id),
            verb=command.verb,
            ok=code == "ok",
            said=said,
            code=code,
            result={"spawn": spawn} if spawn else {},
            by="spawner",
            time=START,
        )
        with self._spawner.transaction() as transaction:
            transaction.answer(str(command.id), reply.model_dump_json().encode(), 1.0)

    def answers_all(self, commands: Sequence[Command] | None = None) -> None:
        for command in self.asked if commands is None else commands:
            self.answers(command)


def _asked_at(looker: Looker, address: str) -> float:
    standing = looker.standing(address)
    return standing.answered_at if standing is not None else 0.0


def _record(spawn: str, activity: Activity, **more: Any) -> AgentRecord:
    known: dict[str, Any] = {"since": START, "reason": "asked for", "backend": "demo", "workspace": "/", "spawn": spawn}
    return AgentRecord(status=Status.RUNNING, desired=Desired.RUNNING, **{**known, "activity": activity, **more})
