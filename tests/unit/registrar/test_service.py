"""The registrar: what everybody says becomes one file, people's edits of it are heeded, and each change is shown."""

import json
import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from registry import RegistryFile
from services.registrar.service import Registrar
from shared.contract.commands import Command, Rebuild, Reply, Stop
from shared.contract.envelope import Data, Envelope, Event
from shared.contract.events.drift import Identified, SessionMissing, Unregistered
from shared.contract.events.lifecycle import AgentDeleted, AgentExited, AgentSpawned, AgentStopped
from shared.contract.services import entry_of
from shared.contract.states import AgentState, Desired, Status
from shared.contract.topics import AGENT_STATE, TOPICS, row_for, rows
from shared.contract.writer import DocumentWriter
from shared.fleet import FleetFile
from shared.messaging.cursors import ReceivedEvent
from shared.messaging.intake import request_of
from shared.messaging.journal import Journal, Request
from shared.runtime.memory import Memory
from shared.runtime.turn import PendingCommand, Turn
from shared.system.log import Log

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def spawned(agent: str = "builder", spawn: str = "s1") -> AgentSpawned:
    return AgentSpawned(agent=agent, spawn=spawn, backend="demo", workspace="/", session=agent, pane="%1", pid=7)


def exited(agent: str = "builder", spawn: str = "s1", status: int = 1) -> AgentExited:
    return AgentExited(agent=agent, spawn=spawn, exit_status=status)


STOPPED = AgentStopped(agent="builder", spawn="s1", reason="asked for")
MISSING = SessionMissing(agent="builder", spawn="s1", session="builder")


def shown(states: list[Data]) -> list[tuple[str, Status]]:
    return [(each.agent, each.status) for each in states if isinstance(each, AgentState)]


class Office:
    """A registrar with a real file and a real journal, and what a loop does around it."""

    def __init__(self, directory: Path) -> None:
        fleet = directory / "fleet.yaml"
        fleet.write_text(json.dumps({"host": "box", "agents": {"builder": {}, "tester": {}}}))
        self.fleet_file = FleetFile(fleet)
        self.path = self.fleet_file.fleet.registry
        self.path.parent.mkdir()
        self.journal = Journal(self.fleet_file.fleet.journal, "registrar")
        self.memory: dict[str, Any] = {}
        self.now = NOW
        self.seq = 0
        self.hire()

    def hire(self) -> None:
        """A new process takes over."""
        self.registrar = Registrar(self.fleet_file, RegistryFile(self.path), self.journal, Log("registrar"))

    def heard(self, event: Event) -> ReceivedEvent:
        self.seq += 1
        envelope = Envelope[Any](
            type="muster.test",
            subject="",
            time=self.now + timedelta(milliseconds=self.seq),
            data=event,
            source="/box/spawner",
            seq=self.seq,
            epoch="e",
            id=f"e-{self.seq}",
        )
        return ReceivedEvent("box", row_for(event), envelope)

    def turn(self, *events: Event, pending: list[PendingCommand] | None = None) -> Turn:
        heard = [self.heard(event) for event in events]
        return Turn("registrar", self.now, poll=False, events=heard, commands=pending or [], memory=Memory(self.memory))

    def step(self, *events: Event, commits: bool = True, pending: list[PendingCommand] | None = None) -> Turn:
        taken = self.turn(*events, pending=pending)
        self.registrar.step(taken)
        if commits:
            self.memory.update(json.loads(json.dumps(taken.remembered)))
            with self.journal.transaction() as transaction:
                for key, value in taken.remembered.items():
                    transaction.remember(key, value)
                for command in taken.outgoing:
                    request = request_of(self.fleet_file.fleet.space, command, self.now.timestamp())
                    transaction.ask(request, command.addressee())
        return taken

    def write_down(self, *events: Event) -> None:
        """As the spawner does: what it says is in the journal."""
        journal = Journal(self.fleet_file.fleet.journal, "spawner")
        teller = DocumentWriter(self.fleet_file.fleet.space, "spawner", journal.epoch)

        def word(event: Event, seq: int) -> tuple[str, bytes]:
            return teller.event(event, seq=seq, time=NOW + timedelta(seconds=seq), cause=None)

        with journal.transaction() as transaction:
            transaction.append([partial(word, event) for event in events], NOW.timestamp())
        journal.close()

    def edit(self, before: str, after: str) -> None:
        text = self.path.read_text()
        assert before in text
        self.path.write_text(text.replace(before, after))

    def settle(self) -> None:
        """Nobody has written into the file for a while."""
        then = time.time() - 5
        os.utime(self.path, (then, then))

    def answer(self, command: Command, code: str = "ok", said: str = "done") -> None:
        """As the spawner does."""
        reply = Reply(id=command.id or "", verb=command.verb, ok=code == "ok", said=said, code=code, by="s", time=NOW)
        journal = Journal(self.fleet_file.fleet.journal, "spawner")
        with journal.transaction() as transaction:
            transaction.answer(command.id or "", reply.model_dump_json().encode(), self.now.timestamp())
        journal.close()

    def file(self) -> RegistryFile:
        return RegistryFile(self.path)


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    office = Office(tmp_path)
    yield office
    office.journal.close()


# --- events ---


def test_what_was_said_is_recorded_and_shown(office: Office) -> None:
    taken = office.step(spawned(), spawned("tester", "s2"))
    assert shown(taken.states) == [("builder", Status.RUNNING), ("tester", Status.RUNNING)]
    assert set(office.file().records()) == {"builder", "tester"}


def test_of_several_events_about_an_agent_the_last_state_is_shown(office: Office) -> None:
    taken = office.step(spawned(), exited(), spawned(spawn="s2"))
    assert shown(taken.states) == [("builder", Status.RUNNING)]


def test_nothing_new_writes_nothing(office: Office) -> None:
    assert office.step().states == []
    assert not office.path.exists()
    office.step(spawned())
    before = office.path.stat().st_mtime_ns
    taken = office.step(SessionMissing(agent="builder", spawn="s0", session="builder"))
    assert (taken.states, taken.remembered) == ([], {})
    assert office.path.stat().st_mtime_ns == before


def test_a_burst_is_one_write(office: Office) -> None:
    taken = office.step(*(spawned(f"a{number}", f"s{number}") for number in range(100)))
    assert taken.coalesce_s > 0
    assert len(office.file().records()) == 100


def test_events_that_come_again_after_a_crash_change_nothing(office: Office) -> None:
    """The file was written, and the process killed before its journal was."""
    events = (spawned(), MISSING, spawned("tester", "s2"))
    office.step(*events, commits=False)
    before = office.path.read_bytes()
    office.seq = 0
    office.hire()
    taken = office.step(*events)
    assert office.path.read_bytes() == before
    assert taken.outgoing == []
    assert office.step().states == []


def test_all_states_are_told_again_on_a_new_connection(office: Office) -> None:
    office.step(spawned(), STOPPED, spawned("tester", "s2"))
    for _ in range(2):
        assert shown(list(office.registrar.states())) == [("builder", Status.STOPPED), ("tester", Status.RUNNING)]
        office.hire()


def test_an_agent_that_was_deleted_is_gone_from_file_and_bus(office: Office) -> None:
    office.step(spawned())
    taken = office.step(AgentDeleted(agent="builder", spawn="s1", reason="asked for"))
    assert office.file().records() == {}
    assert taken.cleared == [(AGENT_STATE, {"agent": "builder"})]


# --- a file that can't be used ---


def test_a_broken_file_is_told_and_all_goes_on_without_it(office: Office) -> None:
    office.step(spawned())
    good = office.path.read_text()
    office.path.write_text("agents: {")
    taken = office.step(STOPPED, spawned("tester", "s2"))
    assert "registry.yaml, line" in taken.trouble
    assert shown(taken.states) == [("builder", Status.STOPPED), ("tester", Status.RUNNING)]
    assert office.path.read_text() == "agents: {", "a person's edit is never overwritten"
    office.hire()
    assert shown(list(office.registrar.states())) == [("builder", Status.STOPPED), ("tester", Status.RUNNING)]
    assert office.step(exited("tester", "s2")).trouble
    office.path.write_text("# mended\n" + good)
    taken = office.step()
    assert taken.trouble == ""
    assert {agent: each.status for agent, each in office.file().records().items()} == {
        "builder": Status.STOPPED,
        "tester": Status.EXITED,
    }
    assert office.path.read_text().startswith("# mended\n")
    assert set(office.file().history()) == {"s1", "s2"}


def test_what_was_deleted_while_the_file_was_broken_does_not_come_back(office: Office) -> None:
    office.step(spawned(), spawned("tester", "s2"))
    good = office.path.read_text()
    office.path.write_text("agents: {")
    office.step(AgentDeleted(agent="builder", spawn="s1", reason="asked for"))
    office.path.write_text(good)
    office.hire()
    office.step()
    assert set(office.file().records()) == {"tester"}
    office.hire()
    office.step()
    assert set(office.file().records()) == {"tester"}


def test_a_full_disk_is_told_and_the_file_follows_later(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    office.step(spawned())
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        taken = office.step(STOPPED)
    assert "No space left" in taken.trouble
    assert taken.look_again is not None
    assert shown(taken.states) == [("builder", Status.STOPPED)]
    assert office.step().trouble == ""
    assert office.file().records()["builder"].status is Status.STOPPED


def test_a_file_that_was_removed_is_written_anew(office: Office) -> None:
    office.step(spawned(), STOPPED)
    office.path.unlink()
    office.step()
    assert office.file().records()["builder"].status is Status.STOPPED
    office.path.write_text("")
    assert "registry.yaml, line 1" in office.step().trouble, "it may be in the middle of being saved"


def test_a_session_that_was_reported_while_the_file_was_gone_is_recorded_as_it_was(office: Office) -> None:
    """The reconciler looks at the file too, and may have found none."""
    office.step(spawned(), Identified(agent="builder", spawn="s1", conversation="c1", transcript="/t/c1"))
    before = office.file().records()
    office.path.unlink()
    found = Unregistered(
        agent="builder", spawn="s1", backend="demo", workspace="/", session="builder", pane="%1", pid=7
    )
    office.now += timedelta(seconds=5)
    assert office.step(found).states == []
    assert office.file().records() == before


def test_an_entry_that_was_rewritten_is_named_to_people(office: Office) -> None:
    office.step(spawned(), spawned("tester", "s2"))
    head, _, tail = office.path.read_text().partition("  tester:\n")
    fields = ", ".join(line.strip() for line in tail.splitlines())
    office.path.write_text(f"{head}  tester: {{{fields}}}\n")
    taken = office.step(exited())
    assert taken.trouble == "", "only the entry that changes is rewritten"
    taken = office.step(exited("tester", "s2"))
    assert "agents.tester was rewritten in plain block style, because flow style" in taken.trouble
    assert office.file().records()["tester"].status is Status.EXITED


# --- people's edits ---


def test_a_wish_in_the_file_is_asked_of_the_spawner_once(office: Office) -> None:
    office.step(spawned())
    office.edit("desired: running", "desired: stopped   # for tonight")
    taken = office.step()
    assert [(each.verb, getattr(each, "agent", "")) for each in taken.outgoing] == [("stop", "builder")]
    assert [each.desired for each in taken.states if isinstance(each, AgentState)] == [Desired.STOPPED]
    assert office.step().outgoing == []
    office.answer(taken.outgoing[0])
    office.step(STOPPED)
    assert "desired: stopped   # for tonight" in office.path.read_text()
    office.edit("desired: stopped", "desired: running")
    assert [each.verb for each in office.step().outgoing] == ["spawn"]


def test_a_wish_that_was_typed_while_nobody_ran_is_taken_up(office: Office) -> None:
    office.step(spawned())
    office.edit("desired: running", "desired: stopped")
    office.hire()
    assert [each.verb for each in office.step().outgoing] == ["stop"]


def test_a_wish_is_not_lost_with_a_turn_that_came_to_nothing(office: Office) -> None:
    office.step(spawned())
    office.edit("desired: running", "desired: stopped")
    assert [each.verb for each in office.step(commits=False).outgoing] == ["stop"]
    assert [each.verb for each in office.step().outgoing] == ["stop"]
    assert office.step().outgoing == []


def test_a_wish_that_is_refused_is_put_back_with_a_sentence(office: Office) -> None:
    office.step(spawned(), STOPPED)
    office.edit("desired: stopped", "desired: running # please")
    taken = office.step()
    office.answer(taken.outgoing[0], "refused", "builder can't be started from there")
    taken = office.step()
    assert "can't be started from there" in taken.trouble
    assert "desired: stopped # please" in office.path.read_text()
    assert office.step().outgoing == []


def test_a_wish_that_nobody_heard_is_asked_again(office: Office) -> None:
    office.step(spawned())
    office.edit("desired: running", "desired: stopped")
    taken = office.step()
    office.answer(taken.outgoing[0], "expired")
    assert [each.verb for each in office.step().outgoing] == ["stop"]


def test_a_fact_is_put_back_and_told(office: Office) -> None:
    office.step(spawned())
    office.edit("pid: 7", "pid: 99  # mine")
    taken = office.step()
    assert "pid of builder" in taken.trouble
    assert "pid: 7  # mine" in office.path.read_text()
    office.now += timedelta(minutes=2)
    assert office.step().trouble == ""


def test_what_was_written_before_a_crash_is_nobodys_wish(office: Office) -> None:
    """The file tells a stop, the journal does not yet; meanwhile the agent was started again."""
    office.step(spawned())
    seq = office.seq
    office.step(STOPPED, commits=False)
    office.hire()
    office.seq = seq
    taken = office.step(STOPPED, spawned(spawn="s2"))
    assert (taken.outgoing, taken.trouble) == ([], "")
    record = office.file().records()["builder"]
    assert (record.status, record.desired, record.reason) == (Status.RUNNING, Desired.RUNNING, "spawned")


def test_a_file_of_an_earlier_version_is_what_events_begin_with(office: Office) -> None:
    office.step(spawned(), spawned("tester", "t1"), exited("tester", "t1"))
    office.memory.clear()
    with office.journal.database.writing() as connection:
        connection.execute("DELETE FROM memory")
    office.hire()
    taken = office.step(STOPPED, spawned("tester", "t2"))
    assert taken.outgoing == []
    records = office.file().records()
    assert (records["builder"].status, records["tester"].status) == (Status.STOPPED, Status.RUNNING)


def test_an_edit_in_a_turn_with_an_event_that_came_to_nothing_is_not_lost(office: Office) -> None:
    office.step(spawned())
    office.edit("desired: running", "desired: stopped")
    seq = office.seq
    identified = Identified(agent="builder", spawn="s1", conversation="c1")
    office.step(identified, commits=False)
    office.seq = seq
    assert [each.verb for each in office.step(identified).outgoing] == ["stop"]
    assert "desired: stopped" in office.path.read_text()


def test_an_edit_can_be_undone(office: Office) -> None:
    office.step(spawned())
    office.edit("level: 1", "level: 1\n    role: tests")
    office.step()
    office.edit("role: tests", "role: ''")
    office.step()
    assert office.file().records()["builder"].role == ""


def test_an_editor_that_was_left_open_over_a_restart_starts_nobody(office: Office) -> None:
    office.step(spawned())
    stale = office.path.read_text()
    office.step(STOPPED)
    office.hire()
    office.step()
    office.path.write_text(f"# a note\n{stale}")
    taken = office.step()
    assert taken.outgoing == []
    assert "not known any more" in taken.trouble
    assert office.file().records()["builder"].desired is Desired.STOPPED
    assert office.path.read_text().startswith("# a note\n")


def test_a_record_can_not_be_renamed_by_hand(office: Office) -> None:
    office.step(spawned())
    office.edit("  builder:", "  maker:")
    office.settle()
    taken = office.step()
    assert set(office.file().records()) == {"builder"}
    assert "can't be renamed" in taken.trouble or "put back" in taken.trouble
    assert office.file().history() == {}


def test_half_a_save_is_waited_for(office: Office) -> None:
    office.step(spawned(), exited())
    whole = office.path.read_text()
    office.path.write_text("version: 1\nagents: {}\n")
    taken = office.step(spawned("tester", "s2"))
    assert taken.look_again is not None
    assert office.path.read_text() == "version: 1\nagents: {}\n"
    office.path.write_text(whole)
    office.settle()
    office.step()
    assert set(office.file().records()) == {"builder", "tester"}


def test_a_broken_history_keeps_nobody_from_writing(office: Office) -> None:
    office.step(spawned(), exited(), spawned(spawn="s2"))
    text = office.path.read_text()
    head, _, tail = text.partition("history:")
    office.path.write_text(f"{head}history:{tail.replace('ended:', 'endet:')}")
    office.now += timedelta(minutes=5)
    taken = office.step(AgentStopped(agent="builder", spawn="s2", reason="asked for"))
    assert taken.trouble == ""
    assert office.file().records()["builder"].status is Status.STOPPED


def test_an_editor_that_was_left_open_reverts_nothing(office: Office) -> None:
    office.step(spawned())
    stale = office.path.read_text()
    office.step(Identified(agent="builder", spawn="s1", conversation="c1"))
    office.step(STOPPED)
    office.path.write_text(stale.replace("role", "role").replace("agents:", "# a note\nagents:"))
    taken = office.step()
    assert (taken.outgoing, taken.trouble) == ([], "")
    record = office.file().records()["builder"]
    assert (record.status, record.desired, record.conversation) == (Status.STOPPED, Desired.STOPPED, "c1")
    assert "# a note\n" in office.path.read_text()


def test_a_record_that_somebody_took_out_comes_back_only_if_it_runs(office: Office) -> None:
    office.step(spawned(), spawned("tester", "s2"), exited("tester", "s2"))
    office.path.write_text("version: 1\nagents: {}\n")
    office.settle()
    taken = office.step()
    assert set(office.file().records()) == {"builder"}
    assert "muster forget builder" in taken.trouble
    assert taken.cleared == [(AGENT_STATE, {"agent": "tester"})]


def test_edits_while_a_burst_is_written_are_merged(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.step(spawned(), spawned("tester", "s2"))
    write = RegistryFile.write
    edits = iter(["desired: stopped"])

    def edited_under_it(self: RegistryFile, *given: Any) -> None:
        for edit in edits:
            text = office.path.read_text()
            office.path.write_text(text.replace("desired: running", edit, 1))
        write(self, *given)

    monkeypatch.setattr(RegistryFile, "write", edited_under_it)
    taken = office.step(exited("tester", "s2"))
    assert [each.verb for each in taken.outgoing] == ["stop"]
    records = office.file().records()
    assert (records["builder"].desired, records["tester"].status) == (Desired.STOPPED, Status.EXITED)


def right_after_a_write(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Once, before the registrar does anything else."""
    write = RegistryFile.write

    def and_then(self: RegistryFile, *args: Any) -> None:
        write(self, *args)
        monkeypatch.undo()
        act()

    monkeypatch.setattr(RegistryFile, "write", and_then)


def test_a_wish_right_after_a_write_is_heeded(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    right_after_a_write(monkeypatch, lambda: office.edit("desired: running", "desired: stopped"))
    office.step(spawned())
    (wish,) = office.step().outgoing
    assert isinstance(wish, Stop)
    assert office.file().records()["builder"].desired is Desired.STOPPED


def test_a_file_that_is_removed_right_after_a_write_is_written_anew(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.write_down(spawned(), exited(), spawned(spawn="s2"))
    office.step(spawned(), exited())
    right_after_a_write(monkeypatch, office.path.unlink)
    office.step(spawned(spawn="s2"))
    assert not office.path.exists()
    office.step()
    assert office.file().records()["builder"].spawn == "s2"
    assert set(office.file().history()) == {"s1"}


# --- history ---


def test_the_history_tells_how_each_session_ended(office: Office) -> None:
    office.step(spawned(), exited(status=3), spawned(spawn="s2"), MISSING.model_copy(update={"spawn": "s2"}))
    office.step(spawned(spawn="s3"), spawned(spawn="s4"))
    ended = office.file().history()
    assert {spawn: (each.status, each.exit_status) for spawn, each in ended.items()} == {
        "s1": (Status.EXITED, 3),
        "s2": (Status.TERMINATED, None),
        "s3": (Status.TERMINATED, None),
    }


def test_what_ended_long_ago_is_pruned(office: Office) -> None:
    office.step(spawned(), exited(), spawned("stray", "s9"), exited("stray", "s9"))
    office.now += timedelta(hours=23)
    office.step(spawned("tester", "s2"), exited("tester", "s2"))
    assert set(office.file().history()) == {"s1", "s9", "s2"}
    office.now += timedelta(hours=2)
    taken = office.step()
    assert set(office.file().history()) == {"s2"}
    assert set(office.file().records()) == {"builder", "tester"}, "who is declared keeps a record"
    assert [(each.verb, getattr(each, "agent", "")) for each in taken.outgoing] == [("forget", "stray")]


# --- rebuilding ---


def test_the_file_is_rebuilt_from_the_journal(office: Office) -> None:
    office.write_down(spawned(), exited(status=2), spawned("tester", "s2"))
    office.step(spawned("other", "s7"))
    request = Request("r1", "rebuild", b"{}", "muster/box/reply/r1", NOW.timestamp(), NOW.timestamp() + 60)
    taken = office.step(pending=[PendingCommand(request, Rebuild(id="r1"))])
    assert {agent: each.status for agent, each in office.file().records().items()} == {
        "builder": Status.EXITED,
        "tester": Status.RUNNING,
    }
    assert {spawn: each.exit_status for spawn, each in office.file().history().items()} == {"s1": 2}
    assert "2 agents" in taken.replies["r1"][1].said
    assert [each.name for each in office.path.parent.glob("registry.yaml.before-*")]
    assert taken.cleared == [(AGENT_STATE, {"agent": "other"})]
    office.hire()
    assert {agent for agent, _ in shown(list(office.registrar.states()))} == {"builder", "tester"}


def test_it_follows_whoever_writes_about_agents_and_owns_their_states() -> None:
    about_agents = {row for row in TOPICS if row.pattern.startswith("agent/") and not row.retain}
    assert set(rows(entry_of(Registrar.name).follows)) == about_agents
    assert AGENT_STATE.writers == (Registrar.name,)
