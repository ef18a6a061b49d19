"""What other services read: the file, or the registrar's memory while the file is missing, broken or behind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from registry import AgentRecord, RegistryFile
from registry.memory import RegistryReader
from shared.messaging.journal import Journal
from shared.runtime.memory import Memory
from shared.runtime.turn import Turn
from tests.fakes.records import rows_of
from tests.unit.registry.samples import NOW, record


class Host:
    """A registry file, and the journal with the registrar's memory."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "registry.yaml"
        self.file = RegistryFile(self.path)
        self.registrar = Journal(directory / "journal.db", "registrar")
        self.journal = Journal(directory / "journal.db", "reconciler")
        self.reader = RegistryReader(RegistryFile(self.path), self.journal)

    def remember(self, agent: str, record: AgentRecord | None, written: AgentRecord | None) -> None:
        with self.registrar.transaction() as transaction:
            for key, value in rows_of(agent, record, written).items():
                transaction.remember(key, value)

    def turn(self) -> Turn:
        return Turn("reconciler", NOW, poll=False, events=[], commands=[], memory=Memory({}))


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path)
    yield host
    host.registrar.close()
    host.journal.close()


def test_the_file_is_read_while_it_is_up_to_date(host: Host) -> None:
    host.file.write({"builder": record()})
    host.remember("builder", record(), record())
    path_edited = host.path.read_text().replace("reason: spawned", "reason: by hand")
    host.path.write_text(path_edited)
    assert host.reader.read(host.turn())["builder"].reason == "by hand"


def test_without_a_file_the_memory_is_read(host: Host) -> None:
    host.file.write({"builder": record()})
    host.remember("builder", record(), record())
    assert host.reader.read(host.turn()) == {"builder": record()}
    host.path.unlink()
    turn = host.turn()
    first = host.reader.read(turn)
    assert first == {"builder": record()}
    assert turn.trouble == "", "the registrar writes it again"
    assert host.reader.read(turn)["builder"] is first["builder"]
    host.file.records()
    host.file.write({"builder": record()})
    assert host.reader.read(turn) == {"builder": record()}


def test_without_a_file_and_a_memory_there_are_no_records(host: Host) -> None:
    assert host.reader.read(host.turn()) == {}


def test_a_file_that_is_behind_is_not_read(host: Host) -> None:
    host.file.write({"builder": record()})
    host.remember("builder", record(reason="new"), record())
    assert host.reader.read(host.turn())["builder"].reason == "new"
    host.remember("builder", None, record())
    assert host.reader.read(host.turn()) == {}


def test_a_broken_file_is_reported_and_the_memory_is_read(host: Host) -> None:
    host.path.write_text("agents: {")
    host.remember("builder", record(), record())
    turn = host.turn()
    assert host.reader.read(turn) == {"builder": record()}
    assert "registry.yaml, line" in turn.trouble
