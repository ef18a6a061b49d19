"""The registrar: events become one file, people's edits of it are merged, and each change is published."""

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from registry import RegistryFile
from services.registrar.service import Registrar
from shared.contract.commands import Command, Rebuild, Stop
from shared.contract.envelope import Data, Event
from shared.contract.events.drift import Identified, SessionMissing, Unregistered
from shared.contract.events.lifecycle import AgentDeleted, AgentExited, AgentSpawned, AgentStopped
from shared.contract.services import entry_of
from shared.contract.states import AgentState, Desired, Status
from shared.contract.topics import AGENT_STATE, TOPICS, rows
from shared.fleet import FleetFile
from shared.messaging.cursors import ReceivedEvent
from shared.messaging.journal import Journal
from shared.runtime.turn import Turn
from shared.system.log import Log
from tests.fakes.peers import Peer
from tests.fakes.turns import TurnDriver, received

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def spawned(agent: str = "builder", spawn: str = "s1") -> AgentSpawned:
    return AgentSpawned(agent=agent, spawn=spawn, backend="demo", workspace="/", session=agent, pane="%1", pid=7)


def exited(agent: str = "builder", spawn: str = "s1", status: int = 1) -> AgentExited:
    return AgentExited(agent=agent, spawn=spawn, exit_status=status)


STOPPED = AgentStopped(agent="builder", spawn="s1", reason="asked for")
MISSING = SessionMissing(agent="builder", spawn="s1", session="builder")


def shown(states: list[Data]) -> list[tuple[str, Status]]:
    return [(each.agent, each.status) for each in states if isinstance(each, AgentState)]


class RunningRegistrar:
    """A registrar with a real file and a real journal, and a spawner that the test plays."""

    def __init__(self, directory: Path) -> None:
        fleet = directory / "fleet.yaml"
        fleet.write_text(json.dumps({"host": "box", "agents": {"builder": {}, "tester": {}}}))
        self.fleet_file = FleetFile(fleet)
        self.path = self.fleet_file.fleet.registry
        self.path.parent.mkdir()
        self.journal = Journal(self.fleet_file.fleet.journal, "registrar")
        self.spawner = Peer(self.fleet_file.fleet.journal, "spawner", self.fleet_file.fleet.space)
        self.turns = TurnDriver(self.journal, self.fleet_file.fleet.space, NOW)
        self.seq = 0
        self.restart()

    def close(self) -> None:
        self.journal.close()
        self.spawner.close()

    def restart(self) -> None:
        self.service = Registrar(self.fleet_file, RegistryFile(self.path), self.journal, Log("registrar"))

    @property
    def now(self) -> datetime:
        return self.turns.now

    @now.setter
    def now(self, now: datetime) -> None:
        self.turns.now = now

    def _received(self, event: Event) -> ReceivedEvent:
        self.seq += 1
        time = self.now + timedelta(milliseconds=self.seq)
        return received(self.spawner.writer, event, seq=self.seq, time=time)

    def step(self, *events: Event, commands: Sequence[Command] = (), commits: bool = True) -> Turn:
        return self.turns.run(
            self.service.step, *commands, events=[self._received(event) for event in events], commits=commits
        )

    def edit(self, before: str, after: str) -> None:
        text = self.path.read_text()
        assert before in text
        self.path.write_text(text.replace(before, after))

    def settle(self) -> None:
        """Nobody has written into the file for a while."""
        then = time.time() - 5
        os.utime(self.path, (then, then))

    def answer(self, command: Command, code: str = "ok", said: str = "done") -> None:
        self.spawner.answer(command, code, said, time=self.now)

    def file(self) -> RegistryFile:
        return RegistryFile(self.path)


@pytest.fixture
def registrar(tmp_path: Path) -> Iterator[RunningRegistrar]:
    registrar = RunningRegistrar(tmp_path)
    yield registrar
    registrar.close()


# --- events ---


def test_events_are_recorded_and_their_states_published(registrar: RunningRegistrar) -> None:
    taken = registrar.step(spawned(), spawned("tester", "s2"))
    assert shown(taken.states) == [("builder", Status.RUNNING), ("tester", Status.RUNNING)]
    assert set(registrar.file().records()) == {"builder", "tester"}


def test_of_several_events_about_an_agent_only_the_last_state_is_published(registrar: RunningRegistrar) -> None:
    taken = registrar.step(spawned(), exited(), spawned(spawn="s2"))
    assert shown(taken.states) == [("builder", Status.RUNNING)]


def test_an_event_that_changes_nothing_writes_nothing(registrar: RunningRegistrar) -> None:
    assert registrar.step().states == []
    assert not registrar.path.exists()
    registrar.step(spawned())
    before = registrar.path.stat().st_mtime_ns
    taken = registrar.step(SessionMissing(agent="builder", spawn="s0", session="builder"))
    assert (taken.states, dict(taken.memory.changes)) == ([], {})
    assert registrar.path.stat().st_mtime_ns == before


def test_a_burst_is_one_write(registrar: RunningRegistrar) -> None:
    taken = registrar.step(*(spawned(f"a{number}", f"s{number}") for number in range(100)))
    assert taken.coalesce_s > 0
    assert len(registrar.file().records()) == 100


def test_events_that_come_again_after_a_crash_change_nothing(registrar: RunningRegistrar) -> None:
    """The file was written, and the process killed before its journal was."""
    events = (spawned(), MISSING, spawned("tester", "s2"))
    registrar.step(*events, commits=False)
    before = registrar.path.read_bytes()
    registrar.seq = 0
    registrar.restart()
    taken = registrar.step(*events)
    assert registrar.path.read_bytes() == before
    assert taken.outgoing == []
    assert registrar.step().states == []


def test_all_states_are_known_for_a_new_connection(registrar: RunningRegistrar) -> None:
    registrar.step(spawned(), STOPPED, spawned("tester", "s2"))
    for _ in range(2):
        assert shown(list(registrar.service.states())) == [("builder", Status.STOPPED), ("tester", Status.RUNNING)]
        registrar.restart()


def test_an_agent_that_was_deleted_is_gone_from_file_and_bus(registrar: RunningRegistrar) -> None:
    registrar.step(spawned())
    taken = registrar.step(AgentDeleted(agent="builder", spawn="s1", reason="asked for"))
    assert registrar.file().records() == {}
    assert taken.cleared == [(AGENT_STATE, {"agent": "builder"})]


# --- a file that can't be used ---


def test_a_broken_file_is_reported_and_the_records_go_on_without_it(registrar: RunningRegistrar) -> None:
    registrar.step(spawned())
    good = registrar.path.read_text()
    registrar.path.write_text("agents: {")
    taken = registrar.step(STOPPED, spawned("tester", "s2"))
    assert "registry.yaml, line" in taken.trouble
    assert shown(taken.states) == [("builder", Status.STOPPED), ("tester", Status.RUNNING)]
    assert registrar.path.read_text() == "agents: {", "a person's edit is never overwritten"
    registrar.restart()
    assert shown(list(registrar.service.states())) == [("builder", Status.STOPPED), ("tester", Status.RUNNING)]
    assert registrar.step(exited("tester", "s2")).trouble
    registrar.path.write_text("# mended\n" + good)
    taken = registrar.step()
    assert taken.trouble == ""
    assert {agent: each.status for agent, each in registrar.file().records().items()} == {
        "builder": Status.STOPPED,
        "tester": Status.EXITED,
    }
    assert registrar.path.read_text().startswith("# mended\n")
    assert set(registrar.file().history()) == {"s1", "s2"}


def test_an_agent_deleted_while_the_file_was_broken_does_not_come_back(registrar: RunningRegistrar) -> None:
    registrar.step(spawned(), spawned("tester", "s2"))
    good = registrar.path.read_text()
    registrar.path.write_text("agents: {")
    registrar.step(AgentDeleted(agent="builder", spawn="s1", reason="asked for"))
    registrar.path.write_text(good)
    registrar.restart()
    registrar.step()
    assert set(registrar.file().records()) == {"tester"}
    registrar.restart()
    registrar.step()
    assert set(registrar.file().records()) == {"tester"}


def no_space(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_an_agent_that_only_the_file_still_shows_does_not_come_back(
    registrar: RunningRegistrar, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file was written, the process killed before its commit, and the next one can't write the file."""
    registrar.step(spawned(), commits=False)
    registrar.restart()
    registrar.seq = 0
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", no_space)
        registrar.step(spawned(), AgentDeleted(agent="builder", spawn="s1", reason="asked for"))
    assert set(registrar.file().records()) == {"builder"}
    registrar.restart()
    registrar.step()
    assert registrar.file().records() == {}


def test_a_full_disk_is_reported_and_the_file_follows_later(
    registrar: RunningRegistrar, monkeypatch: pytest.MonkeyPatch
) -> None:
    registrar.step(spawned())
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", no_space)
        taken = registrar.step(STOPPED)
    assert "No space left" in taken.trouble
    assert taken.look_again is not None
    assert shown(taken.states) == [("builder", Status.STOPPED)]
    assert registrar.step().trouble == ""
    assert registrar.file().records()["builder"].status is Status.STOPPED


def test_a_file_that_was_removed_is_written_anew(registrar: RunningRegistrar) -> None:
    registrar.step(spawned(), STOPPED)
    registrar.path.unlink()
    registrar.step()
    assert registrar.file().records()["builder"].status is Status.STOPPED
    registrar.path.write_text("")
    assert "registry.yaml, line 1" in registrar.step().trouble, "it may be in the middle of being saved"


def test_a_session_that_was_reported_while_the_file_was_gone_is_recorded_as_it_was(registrar: RunningRegistrar) -> None:
    """The reconciler looks at the file too, and may have found none."""
    registrar.step(spawned(), Identified(agent="builder", spawn="s1", conversation="c1", transcript="/t/c1"))
    before = registrar.file().records()
    registrar.path.unlink()
    found = Unregistered(
        agent="builder", spawn="s1", backend="demo", workspace="/", session="builder", pane="%1", pid=7
    )
    registrar.now += timedelta(seconds=5)
    assert registrar.step(found).states == []
    assert registrar.file().records() == before


def test_an_entry_that_was_rewritten_is_named_to_people(registrar: RunningRegistrar) -> None:
    registrar.step(spawned(), spawned("tester", "s2"))
    head, _, tail = registrar.path.read_text().partition("  tester:\n")
    fields = ", ".join(line.strip() for line in tail.splitlines())
    registrar.path.write_text(f"{head}  tester: {{{fields}}}\n")
    taken = registrar.step(exited())
    assert taken.trouble == "", "only the entry that changes is rewritten"
    taken = registrar.step(exited("tester", "s2"))
    assert "agents.tester was rewritten in plain block style, because flow style" in "".join(taken.notices)
    assert registrar.file().records()["tester"].status is Status.EXITED


# --- people's edits ---


def test_a_changed_desired_is_sent_to_the_spawner_once(registrar: RunningRegistrar) -> None:
    registrar.step(spawned())
    registrar.edit("desired: running", "desired: stopped   # for tonight")
    taken = registrar.step()
    assert [(each.verb, getattr(each, "agent", "")) for each in taken.outgoing] == [("stop", "builder")]
    assert [each.desired for each in taken.states if isinstance(each, AgentState)] == [Desired.STOPPED]
    assert registrar.step().outgoing == []
    registrar.answer(taken.outgoing[0])
    registrar.step(STOPPED)
    assert "desired: stopped   # for tonight" in registrar.path.read_text()
    registrar.edit("desired: stopped", "desired: running")
    assert [each.verb for each in registrar.step().outgoing] == ["spawn"]


def test_a_desired_changed_while_the_registrar_was_down_is_sent(registrar: RunningRegistrar) -> None:
    registrar.step(spawned())
    registrar.edit("desired: running", "desired: stopped")
    registrar.restart()
    assert [each.verb for each in registrar.step().outgoing] == ["stop"]


def test_a_changed_desired_survives_a_turn_that_was_not_committed(registrar: RunningRegistrar) -> None:
    registrar.step(spawned())
    registrar.edit("desired: running", "desired: stopped")
    assert [each.verb for each in registrar.step(commits=False).outgoing] == ["stop"]
    assert [each.verb for each in registrar.step().outgoing] == ["stop"]
    assert registrar.step().outgoing == []


def test_a_refused_desired_is_put_back_with_the_reason(registrar: RunningRegistrar) -> None:
    registrar.step(spawned(), STOPPED)
    registrar.edit("desired: stopped", "desired: running # please")
    taken = registrar.step()
    registrar.answer(taken.outgoing[0], "refused", "builder can't be started from there")
    taken = registrar.step()
    assert "can't be started from there" in "".join(taken.notices)
    assert "desired: stopped # please" in registrar.path.read_text()
    assert registrar.step().outgoing == []


def test_a_desired_whose_command_expired_is_sent_again(registrar: RunningRegistrar) -> None:
    registrar.step(spawned())
    registrar.edit("desired: running", "desired: stopped")
    taken = registrar.step()
    registrar.answer(taken.outgoing[0], "expired")
    assert [each.verb for each in registrar.step().outgoing] == ["stop"]


def test_an_observed_field_is_put_back_and_reported(registrar: RunningRegistrar) -> None:
    registrar.step(spawned())
    registrar.edit("pid: 7", "pid: 99  # mine")
    taken = registrar.step()
    assert "pid of builder" in "".join(taken.notices)
    assert "pid: 7  # mine" in registrar.path.read_text()
    registrar.now += timedelta(minutes=2)
    assert registrar.step().trouble == ""


def test_what_was_written_before_a_crash_is_not_taken_for_an_edit(registrar: RunningRegistrar) -> None:
    """The file tells a stop, the journal does not yet; meanwhile the agent was started again."""
    registrar.step(spawned())
    seq = registrar.seq
    registrar.step(STOPPED, commits=False)
    registrar.restart()
    registrar.seq = seq
    taken = registrar.step(STOPPED, spawned(spawn="s2"))
    assert (taken.outgoing, taken.trouble) == ([], "")
    record = registrar.file().records()["builder"]
    assert (record.status, record.desired, record.reason) == (Status.RUNNING, Desired.RUNNING, "spawned")


def test_without_a_memory_the_records_begin_with_the_file(registrar: RunningRegistrar) -> None:
    registrar.step(spawned(), spawned("tester", "t1"), exited("tester", "t1"))
    with registrar.journal.database.writing() as connection:
        connection.execute("DELETE FROM memory")
    registrar.restart()
    taken = registrar.step(STOPPED, spawned("tester", "t2"))
    assert taken.outgoing == []
    records = registrar.file().records()
    assert (records["builder"].status, records["tester"].status) == (Status.STOPPED, Status.RUNNING)


def test_an_edit_in_a_turn_that_was_not_committed_is_not_lost(registrar: RunningRegistrar) -> None:
    registrar.step(spawned())
    registrar.edit("desired: running", "desired: stopped")
    seq = registrar.seq
    identified = Identified(agent="builder", spawn="s1", conversation="c1")
    registrar.step(identified, commits=False)
    registrar.seq = seq
    assert [each.verb for each in registrar.step(identified).outgoing] == ["stop"]
    assert "desired: stopped" in registrar.path.read_text()


def test_an_edit_can_be_undone(registrar: RunningRegistrar) -> None:
    registrar.step(spawned())
    registrar.edit("level: 1", "level: 1\n    role: tests")
    registrar.step()
    registrar.edit("role: tests", "role: ''")
    registrar.step()
    assert registrar.file().records()["builder"].role == ""


def test_an_editor_left_open_over_a_restart_starts_no_agent(registrar: RunningRegistrar) -> None:
    registrar.step(spawned())
    stale = registrar.path.read_text()
    registrar.step(STOPPED)
    registrar.restart()
    registrar.step()
    registrar.path.write_text(f"# a note\n{stale}")
    taken = registrar.step()
    assert taken.outgoing == []
    assert "not known any more" in "".join(taken.notices)
    assert registrar.file().records()["builder"].desired is Desired.STOPPED
    assert registrar.path.read_text().startswith("# a note\n")


def test_a_record_can_not_be_renamed_by_hand(registrar: RunningRegistrar) -> None:
    registrar.step(spawned())
    registrar.edit("  builder:", "  maker:")
    registrar.settle()
    taken = registrar.step()
    assert set(registrar.file().records()) == {"builder"}
    assert "can't be renamed" in taken.notices[0] or "put back" in taken.notices[0]
    assert registrar.file().history() == {}


def test_a_half_saved_file_is_left_alone_until_it_is_complete(registrar: RunningRegistrar) -> None:
    registrar.step(spawned(), exited())
    whole = registrar.path.read_text()
    registrar.path.write_text("version: 1\nagents: {}\n")
    taken = registrar.step(spawned("tester", "s2"))
    assert taken.look_again is not None
    assert registrar.path.read_text() == "version: 1\nagents: {}\n"
    registrar.path.write_text(whole)
    registrar.settle()
    registrar.step()
    assert set(registrar.file().records()) == {"builder", "tester"}


def test_an_invalid_history_does_not_stop_writing(registrar: RunningRegistrar) -> None:
    registrar.step(spawned(), exited(), spawned(spawn="s2"))
    text = registrar.path.read_text()
    head, _, tail = text.partition("history:")
    registrar.path.write_text(f"{head}history:{tail.replace('ended:', 'endet:')}")
    registrar.now += timedelta(minutes=5)
    taken = registrar.step(AgentStopped(agent="builder", spawn="s2", reason="asked for"))
    assert taken.trouble == ""
    assert registrar.file().records()["builder"].status is Status.STOPPED


def test_an_editor_that_was_left_open_reverts_nothing(registrar: RunningRegistrar) -> None:
    registrar.step(spawned())
    stale = registrar.path.read_text()
    registrar.step(Identified(agent="builder", spawn="s1", conversation="c1"))
    registrar.step(STOPPED)
    registrar.path.write_text(stale.replace("role", "role").replace("agents:", "# a note\nagents:"))
    taken = registrar.step()
    assert (taken.outgoing, taken.trouble) == ([], "")
    record = registrar.file().records()["builder"]
    assert (record.status, record.desired, record.conversation) == (Status.STOPPED, Desired.STOPPED, "c1")
    assert "# a note\n" in registrar.path.read_text()


def test_a_removed_record_comes_back_only_if_its_agent_runs(registrar: RunningRegistrar) -> None:
    registrar.step(spawned(), spawned("tester", "s2"), exited("tester", "s2"))
    registrar.path.write_text("version: 1\nagents: {}\n")
    registrar.settle()
    taken = registrar.step()
    assert set(registrar.file().records()) == {"builder"}
    assert "muster forget builder" in "".join(taken.notices)
    assert taken.cleared == [(AGENT_STATE, {"agent": "tester"})]


def test_edits_while_a_burst_is_written_are_merged(
    registrar: RunningRegistrar, monkeypatch: pytest.MonkeyPatch
) -> None:
    registrar.step(spawned(), spawned("tester", "s2"))
    write = RegistryFile.write
    edits = iter(["desired: stopped"])

    def edited_under_it(self: RegistryFile, *given: Any) -> None:
        for edit in edits:
            text = registrar.path.read_text()
            registrar.path.write_text(text.replace("desired: running", edit, 1))
        write(self, *given)

    monkeypatch.setattr(RegistryFile, "write", edited_under_it)
    taken = registrar.step(exited("tester", "s2"))
    assert [each.verb for each in taken.outgoing] == ["stop"]
    records = registrar.file().records()
    assert (records["builder"].desired, records["tester"].status) == (Desired.STOPPED, Status.EXITED)


def right_after_a_write(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Once, before the registrar does anything else."""
    write = RegistryFile.write

    def and_then(self: RegistryFile, *args: Any) -> None:
        write(self, *args)
        monkeypatch.undo()
        act()

    monkeypatch.setattr(RegistryFile, "write", and_then)


def test_a_desired_changed_right_after_a_write_is_sent(
    registrar: RunningRegistrar, monkeypatch: pytest.MonkeyPatch
) -> None:
    right_after_a_write(monkeypatch, lambda: registrar.edit("desired: running", "desired: stopped"))
    registrar.step(spawned())
    (wish,) = registrar.step().outgoing
    assert isinstance(wish, Stop)
    assert registrar.file().records()["builder"].desired is Desired.STOPPED


def test_a_file_that_is_removed_right_after_a_write_is_written_anew(
    registrar: RunningRegistrar, monkeypatch: pytest.MonkeyPatch
) -> None:
    registrar.spawner.emit(spawned(), exited(), spawned(spawn="s2"), time=NOW)
    registrar.step(spawned(), exited())
    right_after_a_write(monkeypatch, registrar.path.unlink)
    registrar.step(spawned(spawn="s2"))
    assert not registrar.path.exists()
    registrar.step()
    assert registrar.file().records()["builder"].spawn == "s2"
    assert set(registrar.file().history()) == {"s1"}


# --- history ---


def test_the_history_tells_how_each_session_ended(registrar: RunningRegistrar) -> None:
    registrar.step(spawned(), exited(status=3), spawned(spawn="s2"), MISSING.model_copy(update={"spawn": "s2"}))
    registrar.step(spawned(spawn="s3"), spawned(spawn="s4"))
    ended = registrar.file().history()
    assert {spawn: (each.status, each.exit_status) for spawn, each in ended.items()} == {
        "s1": (Status.EXITED, 3),
        "s2": (Status.TERMINATED, None),
        "s3": (Status.TERMINATED, None),
    }


def test_what_ended_long_ago_is_pruned(registrar: RunningRegistrar) -> None:
    registrar.step(spawned(), exited(), spawned("stray", "s9"), exited("stray", "s9"))
    registrar.now += timedelta(hours=23)
    registrar.step(spawned("tester", "s2"), exited("tester", "s2"))
    assert set(registrar.file().history()) == {"s1", "s9", "s2"}
    registrar.now += timedelta(hours=2)
    taken = registrar.step()
    assert set(registrar.file().history()) == {"s2"}
    assert set(registrar.file().records()) == {"builder", "tester"}, "who is declared keeps a record"
    assert [(each.verb, getattr(each, "agent", "")) for each in taken.outgoing] == [("forget", "stray")]


@pytest.mark.parametrize("by", [-30 * 3600, 30 * 3600])
def test_what_ended_just_before_the_clock_was_set_is_kept_for_its_time(registrar: RunningRegistrar, by: float) -> None:
    registrar.step(spawned(), exited(), spawned("stray", "s9"), exited("stray", "s9"))
    registrar.now += timedelta(seconds=1)
    registrar.turns.jump(by)
    registrar.now += timedelta(hours=23)
    assert registrar.step().outgoing == []
    assert set(registrar.file().history()) == {"s1", "s9"}
    registrar.now += timedelta(hours=2)
    registrar.step()
    assert by < 0 or registrar.file().history() == {}


# --- rebuilding ---


def test_the_file_is_rebuilt_from_the_journal(registrar: RunningRegistrar) -> None:
    registrar.spawner.emit(spawned(), exited(status=2), spawned("tester", "s2"), time=NOW)
    registrar.step(spawned("tester", "s0"))
    taken = registrar.step(commands=[Rebuild(id="r1")])
    assert {agent: (each.status, each.spawn) for agent, each in registrar.file().records().items()} == {
        "builder": (Status.EXITED, "s1"),
        "tester": (Status.RUNNING, "s2"),
    }
    assert {spawn: each.exit_status for spawn, each in registrar.file().history().items()} == {"s1": 2}
    assert "2 agents" in taken.replies["r1"][1].said
    assert [each.name for each in registrar.path.parent.glob("registry.yaml.before-*")]
    registrar.restart()
    assert {agent for agent, _ in shown(list(registrar.service.states()))} == {"builder", "tester"}


def test_a_rebuild_keeps_what_a_young_journal_does_not_tell_of(registrar: RunningRegistrar) -> None:
    registrar.spawner.emit(spawned("tester", "s2"), time=NOW)
    registrar.step(spawned("other", "s7"), exited(status=2))  # of an earlier journal
    registrar.step(commands=[Rebuild(id="r1")])
    assert set(registrar.file().records()) == {"other", "tester"}
    registrar.spawner.emit(AgentDeleted(agent="other", spawn="s7", reason="asked for"), time=NOW)
    registrar.step(commands=[Rebuild(id="r2")])
    assert set(registrar.file().records()) == {"tester"}, "the journal tells that it was deleted"


def test_it_follows_every_topic_about_agents_and_writes_their_states() -> None:
    about_agents = {row for row in TOPICS if row.pattern.startswith("agent/") and not row.retain}
    assert set(rows(entry_of(Registrar.name).follows)) == about_agents
    assert AGENT_STATE.writers == (Registrar.name,)
