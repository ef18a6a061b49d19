"""Work in threads: its result or its error comes back, and one lane does not wait for another."""

import asyncio
import io
import threading
from functools import partial

import pytest

from services.board.web.answers import RequestRefused
from services.board.web.work_lanes import MOST_WAITING, ORDERS, QUESTIONS, THREADS, WorkLanes
from shared.errors import MusterError
from shared.system.log import Log


def lanes() -> WorkLanes:
    return WorkLanes(Log("board", io.StringIO()))


def test_results_and_errors_come_back() -> None:
    async def use() -> None:
        work = lanes()
        assert await work.run(ORDERS, lambda: 7) == 7

        def fail() -> int:
            raise MusterError("no")

        with pytest.raises(MusterError, match="no"):
            await work.run(ORDERS, fail)
        assert not work.is_busy
        work.close()

    asyncio.run(use())


def test_a_full_lane_refuses_and_the_other_goes_on() -> None:
    async def use() -> None:
        work, free = lanes(), threading.Event()
        waiting = [asyncio.create_task(work.run(QUESTIONS, free.wait)) for _ in range(MOST_WAITING[QUESTIONS])]
        await asyncio.sleep(0)
        assert work.is_busy
        with pytest.raises(RequestRefused, match="busy"):
            await work.run(QUESTIONS, lambda: True)
        assert await work.run(ORDERS, lambda: 7) == 7
        free.set()
        assert await asyncio.gather(*waiting) == [True] * MOST_WAITING[QUESTIONS]
        work.close()

    asyncio.run(use())


def test_orders_are_carried_out_one_after_the_other() -> None:
    assert THREADS[ORDERS] == 1
    done: list[int] = []

    async def use() -> None:
        work = lanes()
        await asyncio.gather(*(work.run(ORDERS, partial(done.append, number)) for number in range(20)))
        work.close()

    asyncio.run(use())
    assert done == list(range(20))
