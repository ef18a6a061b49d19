"""A spawner on a tmux that is as the test says, with a real journal and fleet file, and a clock that the test moves."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from registry import RegistryFile
from services.spawner.commands.sessions import SessionCommands
from services.spawner.service import Spawner
from services.spawner.sessions.conversations import ConversationRecords
from services.spawner.sessions.keeper import SessionKeeper
from services.spawner.sessions.memory import AGENTS, AgentMemory
from services.spawner.sessions.output_logs import LogKeeper
from services.spawner.typing.keys import KeyPresses
from services.spawner.typing.queue import TypingQueue
from services.spawner.typing.texts import TextDelivery
from shared.contract.commands import Command, Reply
from shared.contract.envelope import Event
from shared.messaging.journal import Journal
from shared.runtime.turn import Turn
from shared.system.log import Log
from tests.fakes.fleets import WrittenFleet
from tests.fakes.records import START, make_pane
from tests.fakes.tmux import FakeTmux
from tests.fakes.turns import TurnDriver

RULE = "─" * 40
QUICK_RESTART = {"first_wait_s": 0, "longest_wait_s": 0, "burst": 2}


def box(text: str = "\x1b[2mtype a message\x1b[0m", footer: str = "demo agent · enter to send") -> str:
    return f"{RULE}\n› {text}\n{RULE}\n  {footer}"


def dialog(what: str = "ask x") -> str:
    return f"{RULE}\nDo you allow this? {what}\n  1. Yes\n  2. No\n1 or 2 · esc to refuse"


class SpawnerWorld:
    def __init__(self, home: Path, agents: Mapping[str, Any], **settings: Any) -> None:
        self.written = WrittenFleet(home, agents, **settings)
        self.tmux = FakeTmux()
        fleet = self.written.file.fleet
        self.journal = Journal(fleet.journal, "spawner")
        self.turns = TurnDriver(self.journal, fleet.space, START)
        self.events: list[Event] = []
        self.replies: dict[str, Reply] = {}
        """The final ones, by command id."""
        self.said: dict[str, str] = {}
        """What each command was last said to wait for."""
        self.restarts()

    def restarts(self) -> None:
        """The spawner, as a new process."""
        file = self.written.opened()
        logs = LogKeeper(self.tmux, file.fleet.logs, max_bytes=1_000_000, keep=1)
        records = ConversationRecords()
        keeper = SessionKeeper(self.tmux, logs.pipe_for, records)
        commands = SessionCommands(self.tmux, keeper, records.purge, records.is_silent)
        typing = TypingQueue(TextDelivery(self.tmux, records), KeyPresses(self.tmux))
        self.service = Spawner(
            file, self.tmux, keeper, commands, typing, logs, RegistryFile(file.fleet.registry), Log("spawner")
        )

    def turn(self, *commands: Command, after: float = 0.0, commits: bool = True, poll: bool = False) -> Turn:
        turn = self.turns.run(self.service.step, *commands, after=after, commits=commits, poll=poll)
        if commits:
            self.events += [event for event, _ in turn.emitted]
            self.replies |= {key: reply for key, (_, reply) in turn.replies.items()}
            self.said |= {key: reply.said for key, (_, reply, _) in turn.deferred.items()}
        return turn

    def turns_for(self, seconds: float, step: float = 0.5) -> None:
        for _ in range(round(seconds / step)):
            self.turn(after=step)

    def reply(self, command: Command) -> Reply:
        """Of a command that is answered in the turn in which it comes."""
        self.turn(command)
        return self.replies[command.id or ""]

    def known(self, agent: str = "builder") -> AgentMemory:
        return AGENTS.load(self.turns.memory[AGENTS.key(agent)])

    def kinds(self, agent: str = "builder") -> list[str]:
        return [getattr(event, "kind", "") for event in self.events if getattr(event, "agent", None) == agent]

    # --- what happens in tmux ---

    def shows(self, screen: str, agent: str = "builder") -> None:
        self.tmux.shown[self.tmux.panes[agent].pane_id] = screen

    def exits(self, status: int = 1, screen: str = "", agent: str = "builder") -> None:
        """Its program ends; its pane stays."""
        self.tmux.panes[agent] = replace(self.tmux.panes[agent], dead=True, dead_status=status)
        self.shows(screen, agent)

    def opens(self, session: str) -> None:
        """A person opens a session."""
        self.tmux.panes[session] = make_pane(None, None, session=session, session_id="$99", pane_id="%99", fleet=None)

    def close(self) -> None:
        self.journal.close()
