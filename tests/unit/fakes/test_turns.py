"""The driver of turns leaves in the journal what the runtime leaves there."""

import io
import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from shared.contract.commands import Command, Explain, Send
from shared.contract.envelope import Data
from shared.contract.events.lifecycle import AgentGaveUp, AgentStopped
from shared.contract.services import ServiceEntry
from shared.contract.topics import COMMAND, Space
from shared.messaging.inbox import LookRequest, MessageArrived
from shared.messaging.journal import Journal
from shared.runtime.loop import ServiceLoop
from shared.runtime.memory import MemoryTable
from shared.runtime.poll_timer import PollIntervals
from shared.runtime.turn import Turn
from shared.system.log import Log
from tests.fakes.bus import FakeBus, FakeInbox
from tests.fakes.peers import Peer
from tests.fakes.turns import TurnDriver, received

SPACE = Space("box")
TURNS, GONE = MemoryTable("turns", int), MemoryTable("gone", list[int])
STOPPED = AgentStopped(agent="builder", spawn="s1", reason="asked for")
FAR = datetime(2100, 1, 1, tzinfo=UTC)


ENTRY = ServiceEntry("monitor", "everything", writes=(), follows=("agent/{agent}/lifecycle",))


class Everything:
    """A service that does in each turn all that one can do in it."""

    name: ClassVar[str] = "monitor"

    def step(self, turn: Turn) -> None:
        for received_event in turn.events:
            turn.emit(AgentGaveUp(agent="builder", reason="heard"), cause=received_event.envelope.id)
        for pending in turn.commands:
            if getattr(pending.command, "agent", "") == "slow":
                turn.defer(pending, "not yet", FAR)
            else:
                turn.reply(pending, "done", turns=turn.memory.find(TURNS))
                turn.send_command(Send(agent="builder", id=f"for-{pending.request.id}", text="go"), "to try")
        turn.memory.put(TURNS, (turn.memory.find(TURNS) or 0) + 1)
        turn.memory.put(GONE, None if turn.memory.find(GONE) else [1])

    def states(self) -> Iterable[Data]:
        return []


QUICK, SLOW = Explain(agent="builder", id="c1"), Explain(agent="slow", id="c2")


def by_the_runtime(path: Path) -> None:
    journal = Journal(path, Everything.name)
    inbox = FakeInbox()
    polls = PollIntervals(connected_s=1_000.0, alone_s=1_000.0)
    loop = ServiceLoop(
        Everything(),
        ENTRY,
        journal,
        FakeBus(),
        inbox,
        SPACE,
        polls,
        Log(Everything.name, io.StringIO()),
    )

    def arrived(command: Command) -> MessageArrived:
        topic = COMMAND.name(SPACE, verb=command.verb)
        payload = command.model_dump_json(exclude_none=True).encode()
        return MessageArrived(topic, payload, retained=False, repeated=False, mid=1, qos=1, connection=1)

    loop.once()
    for item in (arrived(QUICK), arrived(SLOW), LookRequest("again")):
        inbox.put(item)
        loop.once()
    journal.close()


def by_the_driver(path: Path) -> None:
    journal = Journal(path, Everything.name)
    driver, service = TurnDriver(journal, SPACE, datetime.now(UTC)), Everything()
    spawner = Peer(path, "spawner", SPACE)
    heard = received(spawner.writer, STOPPED, seq=1, time=driver.now)
    spawner.close()
    driver.run(service.step, events=[heard])
    driver.run(service.step, QUICK)
    driver.run(service.step, SLOW)
    driver.run(service.step)
    journal.close()


def journal_of(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """What is in it, without what is another one in each run: times, and the journal's own name."""
    with closing(sqlite3.connect(path)) as database:
        (epoch,) = database.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()

        def rows(query: str) -> list[tuple[Any, ...]]:
            return [tuple(map(plain, row)) for row in database.execute(query)]

        def plain(value: Any) -> Any:
            if isinstance(value, bytes) and value.startswith(b"{"):
                return {key: each for key, each in json.loads(value).items() if key != "time"} | {"epoch": "e"}
            return value.replace(epoch, "e") if isinstance(value, str) else value

        found = {
            "event": rows("SELECT source, seq, topic, payload FROM event WHERE source = 'monitor' ORDER BY seq"),
            "cursor": rows("SELECT reader, source, epoch, seq FROM cursor ORDER BY source"),
            "memory": rows("SELECT owner, key, value FROM memory WHERE key != 'clock' ORDER BY key"),
            "request": rows("SELECT owner, id, verb, agent, answer, waits FROM request ORDER BY owner, id"),
        }
    return json.loads(json.dumps(found).replace(epoch, "e"))  # type: ignore[no-any-return]


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path]:
    """Two journals, in each of which a spawner has told the same."""
    made = (tmp_path / "runtime.db", tmp_path / "driver.db")
    for path in made:
        spawner = Peer(path, "spawner", SPACE)
        spawner.emit(STOPPED, time=datetime.now(UTC))
        spawner.close()
    return made


def test_the_same_turns_leave_the_same_journal(paths: tuple[Path, Path]) -> None:
    by_the_runtime(paths[0])
    by_the_driver(paths[1])
    real, driven = (journal_of(path) for path in paths)
    assert driven == real
    assert all(real.values()), "there was something of everything"


def test_a_turn_that_is_not_committed_leaves_no_trace_and_its_commands_come_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db", Everything.name)
    driver, service = TurnDriver(journal, SPACE, FAR), Everything()
    driver.run(service.step, QUICK, commits=False)
    assert (driver.memory, journal.last_seq()) == ({}, 0)
    assert list(driver.run(service.step).replies) == ["c1"]
    assert driver.memory["turns"] == 1
    journal.close()


def test_a_command_that_waited_too_long_is_refused(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db", Everything.name)
    driver = TurnDriver(journal, SPACE, datetime.now(UTC))
    driver.run(lambda _: None, QUICK)
    driver.now += timedelta(days=1)
    turn = driver.run(Everything().step)
    assert [reply.code for _, reply in turn.replies.values()] == ["expired"]
    journal.close()
