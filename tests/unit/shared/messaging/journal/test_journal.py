"""The journal on real SQLite files: what is written is there, once, numbered without gaps, and nobody else reads it."""

import fcntl
import multiprocessing
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import MusterError
from shared.messaging.journal import (
    Journal,
    JournalLost,
    JournalReader,
    JournalUnavailable,
    Request,
    Transaction,
    why_not_writable,
)

Open = Callable[..., Journal]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "journal.db"


@pytest.fixture
def opened(path: Path) -> Iterator[Open]:
    """Opens journals on one file, and closes them."""
    journals: list[Journal] = []

    def open_journal(service: str = "spawner", at: Path = path) -> Journal:
        journals.append(Journal(at, service))
        return journals[-1]

    yield open_journal
    for journal in journals:
        journal.close()


def word(text: str, seq: int) -> tuple[str, bytes]:
    return f"topic/{text}", f"{text} {seq}".encode()


def tell(journal: Journal, *texts: str, at: float = 100.0) -> None:
    with journal.transaction() as transaction:
        transaction.append([partial(word, text) for text in texts], at)


def seqs(journal: Journal, source: str = "spawner") -> list[int]:
    return [entry.seq for entry in journal.entries(source, 0)]


def request(id_: str, *, agent: str | None = "builder", asked: float = 100.0, delivery: str | None = None) -> Request:
    return Request(id_, "spawn", b"{}", f"reply/{id_}", asked, asked + 60, agent, delivery)


def answer(journal: Journal, id_: str, said: bytes, at: float) -> None:
    with journal.transaction() as transaction:
        transaction.answer(id_, said, at)


def newest(journal: Journal, *topics: str, limit: int = 10, scanned: int = 100) -> list[tuple[str, int]]:
    found = journal.newest_on([f"topic/{each}" for each in topics], limit, scanned)
    return [(entry.source, entry.seq) for entry in found]


# --- events ---


def test_the_newest_events_of_some_topics_come_newest_first(opened: Open) -> None:
    spawner, monitor = opened("spawner"), opened("monitor")
    tell(spawner, "a", "b", at=100)
    tell(monitor, "a", "c", at=150)
    tell(spawner, "a", at=200)
    assert newest(monitor, "a") == [("spawner", 3), ("monitor", 1), ("spawner", 1)]
    assert newest(monitor, "a", limit=2) == [("spawner", 3), ("monitor", 1)]
    assert newest(monitor, "b", "c") == [("monitor", 2), ("spawner", 2)]
    assert newest(monitor, "d") == []
    assert newest(monitor) == []
    assert [entry.payload for entry in spawner.newest_on(["topic/c"], 9, 9)] == [b"c 2"]


def test_only_the_last_events_of_each_source_are_looked_through(opened: Open) -> None:
    spawner, monitor = opened("spawner"), opened("monitor")
    tell(spawner, "a", *["b"] * 5, at=200)
    tell(monitor, "a")
    assert newest(spawner, "a", scanned=5) == [("monitor", 1)]
    assert newest(spawner, "a", scanned=6) == [("spawner", 1), ("monitor", 1)]


def test_events_are_numbered_from_one_and_built_from_their_number(opened: Open) -> None:
    journal = opened()
    tell(journal, "a", "b")
    tell(journal, "c")
    assert [(e.seq, e.topic, e.payload) for e in journal.entries("spawner", 0)] == [
        (1, "topic/a", b"a 1"),
        (2, "topic/b", b"b 2"),
        (3, "topic/c", b"c 3"),
    ]
    assert journal.last_seq() == 3


def test_numbers_go_on_after_a_restart(opened: Open) -> None:
    tell(opened(), "a", "b")
    again = opened()
    tell(again, "c")
    assert seqs(again) == [1, 2, 3]


def test_numbers_go_on_after_everything_was_pruned(opened: Open) -> None:
    journal = opened()
    tell(journal, "a", "b", at=100.0)
    journal.note_published(2)
    journal.prune(before=200.0)
    assert seqs(journal) == []
    tell(journal, "c", at=201.0)
    assert seqs(journal) == [3]
    assert opened().last_seq() == 3


def test_what_was_never_published_is_not_pruned(opened: Open) -> None:
    journal = opened()
    tell(journal, "a", "b", "c", at=100.0)
    journal.note_published(2)
    journal.prune(before=200.0)
    assert seqs(journal) == [3]


def test_pruning_leaves_what_is_young_enough(opened: Open) -> None:
    journal = opened()
    tell(journal, "a", at=100.0)
    tell(journal, "b", at=200.0)
    journal.note_published(2)
    journal.prune(before=200.0)
    assert seqs(journal) == [2]


def test_pruning_leaves_the_events_of_others(opened: Open) -> None:
    spawner, reconciler = opened(), opened("reconciler")
    tell(reconciler, "a", at=1.0)
    reconciler.note_published(1)
    spawner.prune(before=200.0)
    assert seqs(spawner, "reconciler") == [1]


def test_two_services_count_each_for_itself(opened: Open) -> None:
    spawner, reconciler = opened(), opened("reconciler")
    tell(spawner, "a")
    tell(reconciler, "b")
    tell(spawner, "c")
    assert seqs(spawner) == [1, 2]
    assert seqs(spawner, "reconciler") == [1]
    assert spawner.newest("reconciler") == 1
    assert spawner.sources() == ["reconciler", "spawner"]


def test_entries_come_in_pages_after_a_number(opened: Open) -> None:
    journal = opened()
    tell(journal, *"abcdef")
    assert [entry.seq for entry in journal.entries("spawner", 2, limit=3)] == [3, 4, 5]
    assert journal.entries("spawner", 6) == []
    assert journal.entries("nobody", 0) == []


def test_the_newest_of_all_sources_come_oldest_first(opened: Open) -> None:
    spawner, reconciler = opened(), opened("reconciler")
    tell(spawner, "old", at=1.0)
    tell(spawner, "a", at=10.0)
    tell(reconciler, "b", at=11.0)
    tell(spawner, "c", "d", at=12.0)
    assert [entry.topic for entry in spawner.entries_since(10.0, 100)] == [f"topic/{text}" for text in "abcd"]
    assert [entry.topic for entry in spawner.entries_since(10.0, 2)] == ["topic/c", "topic/d"]


def test_the_last_number_before_a_time_is_known(opened: Open) -> None:
    journal = opened()
    assert journal.seq_before(1e9) == 0
    tell(journal, "a", "b", at=10.0)
    tell(journal, "c", at=20.0)
    tell(opened("reconciler"), *"vwxyz", at=5.0)
    assert [journal.seq_before(at) for at in (10.0, 10.5, 20.0, 21.0)] == [0, 2, 2, 3]


# --- one transaction: all of it, or nothing ---


def everything(transaction: Transaction) -> None:
    transaction.append([partial(word, "a"), partial(word, "b")], 100.0)
    transaction.move_cursor("/box/reconciler", "e", 7)
    transaction.remember("key", {"deaths": [1.0]})
    transaction.answer("r1", b"done", 100.0)


def append_to(transaction: Transaction, build: Sequence[Callable[[int], tuple[str, bytes]]], at: float) -> None:
    transaction.append(list(build), at)


def do_and_fail(journal: Journal, do: Callable[[Transaction], None], error: BaseException) -> None:
    with journal.transaction() as transaction:
        do(transaction)
        raise error


def test_a_transaction_keeps_all_that_belongs_together(opened: Open) -> None:
    journal = opened()
    journal.requests.accept([request("r1")])
    with journal.transaction() as transaction:
        everything(transaction)
    again = opened()
    assert seqs(again) == [1, 2]
    assert again.cursors() == {("/box/reconciler", "e"): 7}
    assert again.memory() == {"key": {"deaths": [1.0]}}
    assert again.requests.answer_to("r1") == b"done"


@pytest.mark.parametrize("error", [RuntimeError("a bug"), KeyboardInterrupt(), sqlite3.OperationalError("disk full")])
def test_a_transaction_that_fails_leaves_no_trace(opened: Open, error: BaseException) -> None:
    journal = opened()
    journal.requests.accept([request("r1")])
    expected = JournalUnavailable if isinstance(error, sqlite3.Error) else type(error)
    with pytest.raises(expected):
        do_and_fail(journal, everything, error)
    for view in (journal, opened()):
        assert seqs(view) == []
        assert view.last_seq() == 0
        assert view.cursors() == {}
        assert view.memory() == {}
        assert [each.id for each in view.requests.open()] == ["r1"]


def test_an_event_that_can_not_be_built_leaves_no_trace_of_the_others(opened: Open) -> None:
    journal = opened()

    def fails(seq: int) -> tuple[str, bytes]:
        raise ValueError(seq)

    with pytest.raises(ValueError, match="2"), journal.transaction() as transaction:
        transaction.append([partial(word, "a"), fails], 100.0)
    assert seqs(journal) == []
    tell(journal, "b")
    assert seqs(journal) == [1]


def test_work_goes_on_after_a_failed_transaction(opened: Open) -> None:
    journal = opened()
    with pytest.raises(RuntimeError), journal.transaction():
        raise RuntimeError
    tell(journal, "a")
    assert seqs(journal) == [1]


# --- several at once ---

EACH = 1_500
BATCH = 30


def write_many(together: threading.Barrier, path: Path, service: str, batch: int) -> None:
    journal = Journal(path, service)
    together.wait(60)
    left = EACH
    while left:
        texts = [f"{service}-{os.getpid()}"] * min(batch, left)
        tell(journal, *texts)
        left -= len(texts)
    journal.close()


def test_processes_that_write_at_once_lose_nothing(path: Path, opened: Open) -> None:
    """Two services, and two processes of each: more than ever run, for a lock has_field a service single."""
    opened()
    context = multiprocessing.get_context("spawn")
    jobs = [("spawner", BATCH), ("spawner", 100), ("reconciler", BATCH), ("reconciler", 100)]
    together = context.Barrier(len(jobs))
    processes = [context.Process(target=write_many, args=(together, path, *job)) for job in jobs]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * 4
    journal = opened()
    for service in ("spawner", "reconciler"):
        found = journal.entries(service, 0, limit=10 * EACH)
        assert [entry.seq for entry in found] == list(range(1, 2 * EACH + 1))
        assert [entry.payload.split()[-1] for entry in found] == [str(entry.seq).encode() for entry in found]
        assert len({entry.topic for entry in found}) == 2
        assert journal.newest(service) == 2 * EACH


def test_a_new_journal_waits_for_another_that_is_being_made(path: Path) -> None:
    """All services start at once on a fresh machine: each finds the file in whatever state the others have it."""
    path.parent.mkdir()
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")

    def finish() -> None:
        other.execute("COMMIT")
        other.close()

    timer = threading.Timer(0.2, finish)
    timer.start()
    try:
        journal = Journal(path, "spawner")
        assert timer.finished.is_set(), "it did not go on before"
        assert journal.last_seq() == 0
        journal.close()
    finally:
        timer.join()


# --- the file ---


def test_every_journal_has_an_epoch_of_its_own_that_stays(opened: Open, tmp_path: Path) -> None:
    assert opened().epoch == opened("reconciler").epoch
    assert opened().epoch != opened(at=tmp_path / "other.db").epoch


def test_nobody_else_may_read_the_files(opened: Open, path: Path) -> None:
    before = os.umask(0)
    try:
        tell(opened(), "a")
    finally:
        os.umask(before)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(("journal.db", "journal.db-wal", "journal.db-shm", "journal.db.lock"), 0o600)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def open_and_close(path: Path) -> None:
    Journal(path, "cli").close()


def test_a_view_that_is_closed_leaves_the_locks_of_the_others(opened: Open, path: Path) -> None:
    """POSIX drops a process's locks on a file with any descriptor of it; a stranger would then delete the live log."""
    journal = opened()
    opened("registrar").close()
    log = path.with_name("journal.db-wal")
    before = log.stat().st_ino
    stranger = multiprocessing.get_context("spawn").Process(target=open_and_close, args=(path,))
    stranger.start()
    stranger.join(60)
    assert stranger.exitcode == 0
    tell(journal, "a")
    assert log.stat().st_ino == before
    assert seqs(opened()) == [1]


@pytest.mark.parametrize("size", [10, 100, 3_000])
def test_a_damaged_file_is_set_aside_and_a_new_one_begun(path: Path, opened: Open, size: int) -> None:
    path.parent.mkdir()
    path.write_bytes(b"these are not the bytes of a database" * 100)
    os.truncate(path, size)
    journal = opened()
    tell(journal, "a")
    assert seqs(journal) == [1]
    assert journal.database.aside is not None
    assert journal.database.aside.stat().st_size == size


@pytest.mark.parametrize("size", [8, 4096])
def test_side_files_whose_journal_was_moved_away_are_set_aside(path: Path, opened: Open, size: int) -> None:
    before = opened()
    tell(before, *["x" * size] * 20)
    path.rename(path.with_name("moved"))
    after = opened()
    assert after.epoch != before.epoch
    assert seqs(after) == []
    with pytest.raises(JournalLost):
        tell(before, "into the void")
    tell(after, "a")
    assert seqs(opened()) == [1]


def test_damage_that_is_met_while_reading_heals_and_exactly_one_sets_it_aside(path: Path, opened: Open) -> None:
    first = opened()
    tell(first, *["x" * 200] * 200)
    first.close()
    with path.open("r+b") as file:
        file.seek(8 * 4096)
        file.write(b"\xff" * (path.stat().st_size - 8 * 4096))
    users = [opened(), opened("monitor")]
    for user in users:
        with pytest.raises(JournalLost):
            user.entries("spawner", 0)
    assert seqs(opened()) == []
    assert len([each for each in path.parent.glob("*.damaged-*") if not each.name.endswith(("-wal", "-shm"))]) == 1


def test_a_locked_journal_is_not_damaged(path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.messaging.journal.database.BUSY_MS", 10)
    opened()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(JournalUnavailable):
        Journal(path, "monitor")
    other.close()
    assert list(path.parent.glob("*.damaged-*")) == []


def test_a_process_that_was_stopped_while_it_opens_the_journal_hangs_nobody(
    path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.messaging.journal.database.BUSY_MS", 10)
    opened()
    with path.with_name("journal.db.lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(JournalUnavailable, match="another process has been opening it for too long"):
            Journal(path, "monitor")
    opened("monitor")


def test_an_error_of_the_callers_own_is_not_the_journals(opened: Open) -> None:
    def fails() -> None:
        raise FileNotFoundError("a file of the caller's")

    with pytest.raises(FileNotFoundError), opened().transaction():
        fails()


def test_a_page_that_went_bad_gives_a_sentence(path: Path, opened: Open) -> None:
    journal = Journal(path, "spawner")
    tell(journal, *["x" * 200] * 200)
    journal.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    with pytest.raises(MusterError, match=r"journal\.db"):
        Journal(path, "spawner").entries("spawner", 0)


def test_a_place_where_no_file_can_be_made_gives_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file, not a directory")
    with pytest.raises(MusterError, match=r"journal\.db"):
        Journal(tmp_path / "taken" / "journal.db", "spawner")


def test_a_directory_in_place_of_the_file_gives_a_sentence(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(MusterError, match=r"journal\.db"):
        Journal(path, "spawner")


def test_a_journal_that_stays_locked_gives_a_sentence(
    path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.messaging.journal.database.BUSY_MS", 10)
    journal = opened()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(JournalUnavailable, match=r"journal\.db could not be used: database is locked"):
        tell(journal, "a")
    other.execute("ROLLBACK")
    other.close()
    tell(journal, "a")
    assert seqs(journal) == [1]


def test_a_removed_file_is_noticed(opened: Open, path: Path) -> None:
    journal = opened()
    assert not journal.database.vanished()
    path.unlink()
    assert journal.database.vanished()


def test_a_replaced_file_is_noticed(opened: Open, path: Path) -> None:
    journal = opened()
    path.unlink()
    assert opened().epoch != journal.epoch
    assert journal.database.vanished()


def test_a_moved_directory_is_noticed(opened: Open, path: Path) -> None:
    journal = opened()
    path.parent.rename(path.parent.with_name("moved"))
    assert journal.database.vanished()


# --- places, memory, counters ---


def test_a_cursor_is_kept_for_each_reader_source_and_epoch(opened: Open) -> None:
    spawner, registrar = opened(), opened("registrar")
    with registrar.transaction() as transaction:
        transaction.move_cursor("/box/spawner", "e1", 1)
        transaction.move_cursor("/box/spawner", "e1", 5)
        transaction.move_cursor("/box/spawner", "e2", 2)
    with spawner.transaction() as transaction:
        transaction.move_cursor("/box/spawner", "e1", 3)
    assert registrar.cursors() == {("/box/spawner", "e1"): 5, ("/box/spawner", "e2"): 2}
    assert spawner.cursors() == {("/box/spawner", "e1"): 3}


def test_memory_is_each_services_own(opened: Open) -> None:
    spawner, reconciler = opened(), opened("reconciler")
    for journal, value in ((spawner, [1, None]), (reconciler, "other")):
        with journal.transaction() as transaction:
            transaction.remember("key", value)
    assert opened().memory() == {"key": [1, None]}
    assert reconciler.memory() == {"key": "other"}


def test_what_is_remembered_as_none_is_forgotten(opened: Open) -> None:
    journal = opened()
    with journal.transaction() as transaction:
        transaction.remember("key", 1)
        transaction.remember("other", 0)
    with journal.transaction() as transaction:
        transaction.remember("key", None)
        transaction.remember("never", None)
    assert opened().memory() == {"other": 0}


def test_connections_are_counted_for_each_service_over_restarts(opened: Open) -> None:
    assert [opened().next_connection() for _ in range(3)] == [1, 2, 3]
    assert opened("reconciler").next_connection() == 1


def test_progress_and_the_last_contact_are_stored(opened: Open) -> None:
    assert (opened().published(), opened().listened()) == (0, 0.0)
    opened().note_published(5)
    opened().note_listened(123.5)
    opened("reconciler").note_published(1)
    assert (opened().published(), opened().listened()) == (5, 123.5)


# --- requests ---


def test_the_same_id_is_taken_once(opened: Open) -> None:
    journal = opened()
    journal.requests.accept([request("r1", asked=1.0), request("r1", asked=2.0)])
    journal.requests.accept([request("r1", asked=3.0)])
    assert [(each.id, each.asked) for each in journal.requests.open()] == [("r1", 1.0)]


def test_an_answered_request_is_not_opened_again_and_keeps_its_first_answer(opened: Open) -> None:
    journal = opened()
    journal.requests.accept([request("r1")])
    assert journal.requests.waiting()
    assert journal.requests.answer_to("r1") is None
    answer(journal, "r1", b"first", 101.0)
    answer(journal, "r1", b"second", 102.0)
    journal.requests.accept([request("r1")])
    assert journal.requests.open() == []
    assert not journal.requests.waiting()
    assert journal.requests.answer_to("r1") == b"first"


def test_a_request_comes_back_as_it_was_given(opened: Open) -> None:
    journal = opened()
    whole = Request("r1", "stop", b'{"agent": "a"}\xff', "muster/box/reply/r1", 1.5, 61.5, "a", "7:abc")
    journal.requests.accept([whole])
    assert opened().requests.open() == [whole]


def test_requests_wait_oldest_first(opened: Open) -> None:
    journal = opened()
    journal.requests.accept([request("b", asked=2.0), request("c", asked=1.0), request("a", asked=2.0)])
    assert [each.id for each in journal.requests.open()] == ["c", "a", "b"]


def test_a_request_put_in_line_for_another_is_only_its_owners(opened: Open) -> None:
    cli, spawner = opened("cli"), opened()
    cli.requests.accept([request("r1")], owner="spawner")
    assert not cli.requests.waiting()
    assert [each.id for each in spawner.requests.open()] == ["r1"]
    answer(cli, "r1", b"not its owner", 101.0)
    assert spawner.requests.waiting()
    answer(spawner, "r1", b"done", 101.0)
    assert cli.requests.answer_to("r1", "spawner") == b"done"
    assert cli.requests.answer_to("r1") is None


def test_answers_given_since_a_time_can_be_sent_again(opened: Open) -> None:
    journal = opened()
    journal.requests.accept([request(id_) for id_ in ("r1", "r2", "r3", "r4")])
    for id_, at in (("r2", 103.0), ("r1", 102.0), ("r3", 101.0)):
        answer(journal, id_, id_.encode(), at)
    assert journal.requests.answers_since(102.0) == [("reply/r1", b"r1"), ("reply/r2", b"r2")]


def test_old_answers_are_pruned_and_open_requests_stay(opened: Open) -> None:
    journal = opened()
    journal.requests.accept([request("open", asked=1.0), request("old"), request("young")])
    answer(journal, "old", b"", 150.0)
    answer(journal, "young", b"", 250.0)
    journal.prune(before=200.0)
    assert [each.id for each in journal.requests.open()] == ["open"]
    assert journal.requests.answer_to("old") is None
    assert journal.requests.answer_to("young") == b""


@pytest.mark.parametrize(("now", "busy"), [(100.0, True), (159.0, True), (160.0, False)])
def test_others_can_see_an_open_command_about_an_agent(opened: Open, now: float, busy: bool) -> None:
    spawner, reconciler = opened(), opened("reconciler")
    spawner.requests.accept([request("r1", asked=100.0)])
    assert reconciler.requests.open_about("builder", now) is busy, "nobody is busy with what has expired"
    assert not reconciler.requests.open_about("tester", now)
    assert not reconciler.requests.answered_about("builder", 0, 1000)
    spawner.requests.accept([request("all", agent="*", asked=100.0)])
    assert reconciler.requests.open_about("tester", now) is busy


@pytest.mark.parametrize(("since", "until", "was_busy"), [(105, 110, True), (106, 110, False), (90, 104, False)])
def test_others_can_see_an_answered_command_about_an_agent(
    opened: Open, since: float, until: float, was_busy: bool
) -> None:
    spawner, reconciler = opened(), opened("reconciler")
    spawner.requests.accept([request("r1", asked=100.0)])
    answer(spawner, "r1", b"", 105.0)
    assert reconciler.requests.answered_about("builder", since, until) is was_busy
    assert not reconciler.requests.answered_about("tester", since, until)
    assert not reconciler.requests.open_about("builder", since)


@pytest.mark.parametrize(
    ("key", "kept", "has"),
    [
        ("agent:builder", {"record": {"backend": "claude"}}, False),
        ("agent:builder", {"record": {"base": 1, "reason": '"base": 1'}}, False),
        ("agent:builder", {"record": None, "base": {"backend": "claude"}}, True),
        ("agent:builder", {"record": {"backend": "claude"}, "base": None}, True),
        ("ended:builder", {"base": 1}, False),
        ("b:builder", {"base": 1}, False),
    ],
)
def test_what_another_keeps_can_be_asked_without_reading_it_all(
    opened: Open, key: str, kept: dict[str, Any], has: bool
) -> None:
    registrar, reconciler = opened("registrar"), opened("reconciler")
    with registrar.transaction() as transaction:
        transaction.remember("agent:other", {"record": {}})
        transaction.remember(key, kept)
    assert reconciler.memory_has_field("registrar", "agent:", "base") is has
    assert not reconciler.memory_has_field("spawner", "agent:", "base")
    with closing(JournalReader(registrar.database.path)) as reader:
        assert reader.memory_has_field("registrar", "agent:", "base") is has


# --- only reading ---


def test_a_reader_sees_what_is_committed_waits_for_nobody_and_leaves_nothing_behind(opened: Open) -> None:
    journal = opened()
    tell(journal, "one")
    path = journal.database.path
    with journal.database.writing(), closing(JournalReader(path)) as reader:
        assert (reader.epoch, reader.newest("spawner"), reader.sources()) == (journal.epoch, 1, ["spawner"])
    journal.close()
    before = {each: each.read_bytes() for each in path.parent.iterdir()}
    with closing(JournalReader(path)) as reader:
        assert len(reader.entries("spawner", 0)) == 1
    assert {each: each.read_bytes() for each in path.parent.iterdir()} == before


def test_a_reader_reports_a_file_that_is_no_journal_and_leaves_it(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    path.write_text("no journal")
    with pytest.raises(JournalUnavailable, match="a service that opens it sets it aside") as raised:
        JournalReader(path)
    assert raised.value.is_damage
    assert [each.name for each in tmp_path.iterdir()] == ["journal.db"]


@pytest.mark.parametrize(("version", "said"), [(99, "a newer version"), (1, "an older version")])
def test_a_journal_of_another_version_is_named_to_readers_and_writers(opened: Open, version: int, said: str) -> None:
    journal = opened()
    path = journal.database.path
    journal.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    for kind in (Journal, JournalReader):
        with pytest.raises(MusterError, match=f"is of {said} of Muster"):
            kind(path, "spawner")


def test_why_nothing_can_be_stored_is_a_sentence(opened: Open) -> None:
    path = opened().database.path
    assert why_not_writable(path) == ""
    lock = path.with_name("journal.db.lock")
    lock.unlink()
    lock.mkdir()  # what can't be opened for writing, whoever asks
    why = why_not_writable(path)
    assert why.startswith(f"{path.parent} can't be written: Is a directory; make it writable for ")
    with pytest.raises(JournalUnavailable, match="make it writable"):
        Journal(path, "spawner")


def test_where_no_journal_was_ever_made_nothing_is_wrong(tmp_path: Path) -> None:
    assert why_not_writable(tmp_path / "journal.db") == ""
    assert why_not_writable(tmp_path / "not made yet" / "journal.db") == ""


def test_a_redelivered_command_is_recognised(opened: Open) -> None:
    journal = opened()
    journal.requests.accept([request("r1", asked=100.0, delivery="5:abc")])
    assert journal.requests.redelivered("5:abc", since=100.0)
    assert not journal.requests.redelivered("5:abc", since=100.1)
    assert not journal.requests.redelivered("6:abc", since=0.0)
    assert not opened("reconciler").requests.redelivered("5:abc", since=0.0)


# --- any order of things ---

steps = st.lists(
    st.one_of(
        st.tuples(st.just("tell"), st.integers(0, 4)),
        st.tuples(st.just("fail"), st.integers(1, 4)),
        st.tuples(st.just("publish"), st.integers(0, 30)),
        st.tuples(st.just("prune"), st.integers(0, 30)),
        st.tuples(st.just("reopen"), st.just(0)),
    ),
    max_size=15,
)


@given(steps)
@settings(max_examples=40, deadline=None)
def test_numbers_never_repeat_and_never_skip_whatever_happens(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal.db"
    journal = Journal(path, "spawner")
    told, published, now = 0, 0, 0.0
    gone: set[int] = set()
    for what, count in steps:
        now += 1
        match what:
            case "tell":
                tell(journal, *["x"] * count, at=now)
                told += count
            case "fail":
                build = [partial(word, "x")] * count
                with pytest.raises(RuntimeError):
                    do_and_fail(journal, partial(append_to, build=build, at=now), RuntimeError())
            case "publish":
                published = min(count, told)
                journal.note_published(published)
            case "prune":
                gone |= {e.seq for e in journal.entries("spawner", 0) if e.at < count and e.seq <= published}
                journal.prune(before=float(count))
            case _:
                journal.close()
                journal = Journal(path, "spawner")
        assert journal.last_seq() == told
        assert seqs(journal) == [seq for seq in range(1, told + 1) if seq not in gone]
    journal.close()


def test_one_value_of_the_memory_is_read_alone(opened: Open) -> None:
    journal = opened("board")
    with journal.transaction() as transaction:
        transaction.remember("comments:a", {"x": 1})
        transaction.remember("comments:ab", {"x": 2})
    assert journal.memory_under("comments:a") == {"comments:a": {"x": 1}}
    assert journal.memory_under("comments:") == {}
    assert opened("spawner").memory_under("comments:a") == {}, "of this service"
