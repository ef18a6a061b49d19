"""A dry run reads a copy of the journal and leaves the original untouched."""

import sqlite3
from pathlib import Path

import pytest

from services.reconciler.single_run import copy_journal, dry_turn
from shared.contract.commands import Adopt
from shared.contract.topics import Space
from shared.errors import MusterError
from shared.messaging.journal import Journal
from tests.fakes.peers import Peer
from tests.unit.reconciler.samples import NOW


def state_of(directory: Path) -> dict[str, tuple[int, bytes]]:
    return {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in directory.iterdir()}


def crashed(directory: Path) -> Path:
    """A journal whose last user was killed: most of it is in the write-ahead log that was left over."""
    alive, left = directory / "alive", directory / "left"
    alive.mkdir()
    left.mkdir()
    journal = Journal(alive / "journal.db", "registrar")
    with journal.transaction() as transaction:
        transaction.remember("agent:builder", {"record": None})
    for file in alive.iterdir():
        (left / file.name).write_bytes(file.read_bytes())
    journal.close()
    assert (left / "journal.db-wal").stat().st_size
    return left / "journal.db"


@pytest.mark.parametrize("shared_memory", [True, False])
def test_a_write_ahead_log_that_was_left_over_is_read_and_not_touched(tmp_path: Path, shared_memory: bool) -> None:
    journal = crashed(tmp_path)
    if not shared_memory:
        journal.with_name("journal.db-shm").unlink()
    before = state_of(journal.parent)
    copy = tmp_path / "copy.db"
    copy_journal(journal, copy)
    opened = Journal(copy, "reconciler")
    assert opened.memory("registrar") == {"agent:builder": {"record": None}}
    opened.close()
    assert state_of(journal.parent) == before


def test_a_journal_in_use_is_copied_with_all_that_was_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db", "registrar")
    for number in range(3):
        with journal.transaction() as transaction:
            transaction.remember("number", number)
        copy = tmp_path / f"copy-{number}.db"
        copy_journal(tmp_path / "journal.db", copy)
        opened = Journal(copy, "reconciler")
        assert opened.memory("registrar") == {"number": number}
        opened.close()
    journal.close()


def test_a_copy_is_made_again_when_a_new_log_began_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal.db"
    journal = Journal(path, "registrar")
    copies = []

    def copyfile(source: Path, target: Path) -> None:
        target.write_bytes(source.read_bytes())
        copies.append(source.name)
        if len(copies) == 1:  # all of the log goes into the database, and a new one begins
            with sqlite3.connect(path) as other:
                other.execute("PRAGMA wal_checkpoint(RESTART)")
            other.close()
            with journal.transaction() as transaction:
                transaction.remember("new", True)

    monkeypatch.setattr("shutil.copyfile", copyfile)
    copy_journal(path, tmp_path / "copy.db")
    assert copies == ["journal.db", "journal.db-wal"] * 2
    opened = Journal(tmp_path / "copy.db", "reconciler")
    assert opened.memory("registrar") == {"new": True}
    opened.close()
    journal.close()


def test_where_there_is_no_journal_there_is_no_copy(tmp_path: Path) -> None:
    copy_journal(tmp_path / "journal.db", tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []


def test_a_journal_that_can_not_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "journal.db").mkdir()
    with pytest.raises(MusterError, match="can't be read"):
        copy_journal(tmp_path / "journal.db", tmp_path / "copy.db")


def test_a_dry_run_reads_what_the_spawner_answered(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db", "reconciler")
    spawner = Peer(tmp_path / "journal.db", "spawner", Space("box"))
    command = Adopt(agent="work", session="work", id="r1")
    spawner.is_asked(command, NOW)
    assert dry_turn(journal).reply_for("r1") is None
    spawner.answer(command, "refused", time=NOW)
    reply = dry_turn(journal).reply_for("r1")
    assert (reply.code if reply is not None else "") == "refused"
    journal.close()
    spawner.close()
