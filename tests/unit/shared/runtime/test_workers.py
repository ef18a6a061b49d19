"""Work off the loop's thread: few at once in each lane, in order, cancelled and closed."""

import io
import threading
from collections.abc import Iterator

import pytest

from shared.runtime.workers import Work, Workers
from shared.system.log import Log
from tests.fixtures.broker import wait_until


@pytest.fixture
def logged() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def workers(logged: io.StringIO) -> Iterator[Workers]:
    made = Workers({"one": 1, "two": 2}, Log("test", logged))
    yield made
    made.close(5.0)


class Gate:
    """Work that says that it began, and waits to be let go or cancelled."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.open = threading.Event()

    def work(self, name: str) -> Work:
        def run(cancelled: threading.Event) -> None:
            self.begun.append(name)
            while not cancelled.is_set() and not self.open.wait(0.005):
                pass
            self.ended.append(f"{name}{' cancelled' * cancelled.is_set()}")

        return run


def test_a_lane_does_few_at_once_and_the_others_in_order(workers: Workers) -> None:
    gate = Gate()
    for name in "ab":
        workers.submit("two", name, gate.work(name))
    wait_until(lambda: len(gate.begun) == 2, "two have begun")
    workers.submit("two", "c", gate.work("c"))
    workers.submit("two", "first", gate.work("first"), first=True)
    assert workers.is_under_way("c")
    gate.open.set()
    wait_until(lambda: len(gate.ended) == 4, "all have ended")
    assert gate.begun[2:] == ["first", "c"]
    wait_until(lambda: not workers.is_busy, "nothing runs")
    assert not workers.is_under_way("c")


def test_what_hangs_in_one_lane_holds_up_no_other(workers: Workers) -> None:
    hangs, other = Gate(), Gate()
    other.open.set()
    workers.submit("one", "hangs", hangs.work("hangs"))
    workers.submit("two", "goes", other.work("goes"))
    wait_until(lambda: other.ended == ["goes"], "the other lane goes on")
    assert hangs.ended == []


def test_what_is_cancelled_ends_or_never_begins(workers: Workers) -> None:
    gate = Gate()
    workers.submit("one", "runs", gate.work("runs"))
    workers.submit("one", "waits", gate.work("waits"))
    wait_until(lambda: gate.begun == ["runs"], "the first has begun")
    workers.cancel("waits")
    workers.cancel("runs")
    assert not workers.is_under_way("runs")
    wait_until(lambda: gate.ended == ["runs cancelled"], "it was told")
    workers.submit("one", "next", gate.work("next"))
    wait_until(lambda: gate.begun == ["runs", "next"], "the lane is free again")


def test_work_that_fails_leaves_its_thread_for_the_next(workers: Workers, logged: io.StringIO) -> None:
    gate = Gate()
    gate.open.set()

    def fails(_: threading.Event) -> None:
        raise ValueError("odd")

    workers.submit("one", "fails", fails)
    workers.submit("one", "next", gate.work("next"))
    wait_until(lambda: gate.ended == ["next"], "the next is done")
    assert not workers.is_under_way("fails")
    assert "ValueError: odd" in logged.getvalue()


def test_nothing_is_begun_after_the_end(workers: Workers) -> None:
    gate = Gate()
    workers.submit("one", "runs", gate.work("runs"))
    workers.submit("one", "waits", gate.work("waits"))
    wait_until(lambda: gate.begun == ["runs"], "the first has begun")
    workers.close(5.0)
    workers.submit("two", "late", gate.work("late"))
    assert gate.ended == ["runs cancelled"]
    assert gate.begun == ["runs"]


def test_a_lane_goes_on_where_no_more_threads_can_be_had(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    gate.open.set()
    workers.submit("two", "a", gate.work("a"))
    wait_until(lambda: gate.ended == ["a"], "one thread is there")

    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none_left)
    for name in "bcd":
        workers.submit("two", name, gate.work(name))
    wait_until(lambda: len(gate.ended) == 4, "the one does it all")
    with pytest.raises(RuntimeError):
        workers.submit("one", "e", gate.work("e"))
