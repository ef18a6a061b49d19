"""Asks copies of conversations in worker threads: few at once, the others wait in a queue."""

import shutil
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from services.monitor.health.query import Query
from shared.agents.fork import CannotAsk, ForkFailed, ForkSilent, Result, TimedResult
from shared.contract.ids import new_id
from shared.fleet.launch_needs import fill
from shared.runtime.workers import Workers
from shared.system import files as private
from shared.system.child_process import ProgramResult, run
from shared.system.log import Log
from shared.system.processes import end_marked

AT_ONCE = 2
"""How many run at once: each may take half a gigabyte of memory."""
LANE = "queries"
MARK = "MUSTER_PEEK"
"""The variable that marks the processes started here, with their directory: a killed monitor leaves some behind."""
CLOSES_WITHIN_S = 3.0


class QueryRunner:
    """Used by one thread. Worker threads call `on_answer` when there is an answer to take."""

    def __init__(self, directory: Path, on_answer: Callable[[], None], log: Log, at_once: int = AT_ONCE) -> None:
        self._directory = directory
        self._on_answer = on_answer
        self._workers = Workers({LANE: at_once}, log)
        self._lock = threading.Lock()
        self._answered: dict[str, TimedResult] = {}

    def tidy(self) -> None:
        """End and remove what a killed monitor left. To be called before anything is asked."""
        left = list(self._directory.iterdir()) if self._directory.is_dir() else []
        if left:
            end_marked(MARK, self._directory)
        for each in left:
            shutil.rmtree(each, ignore_errors=True)

    def ask(self, key: str, query: Query, *, soon: bool = False) -> None:
        """Ask, and keep the answer under a key. `soon`: before all others in the queue."""
        self._workers.submit(LANE, key, partial(self._work, key, query), first=soon)

    def is_asking(self, key: str) -> bool:
        return self._workers.is_under_way(key)

    def take(self, key: str) -> TimedResult | None:
        """The answer to a question; given once."""
        with self._lock:
            return self._answered.pop(key, None)

    def cancel(self, key: str) -> None:
        """End a question at once; there will be no answer."""
        self._workers.cancel(key)
        with self._lock:
            self._answered.pop(key, None)

    def close(self) -> None:
        """End all questions, and leave nothing behind."""
        self._workers.close(CLOSES_WITHIN_S)

    # --- in a worker's thread ---

    def _work(self, key: str, query: Query, cancelled: threading.Event) -> None:
        began = time.monotonic()
        try:
            result = self._result(query, cancelled)
        except (CannotAsk, OSError, ValueError) as error:
            result = ForkFailed(str(error))
        except Exception as error:  # noqa: BLE001 - the question must end, whatever went wrong
            result = ForkFailed(f"{type(error).__name__}: {error}")
        with self._lock:
            if not cancelled.is_set():
                self._answered[key] = TimedResult(result, round(time.monotonic() - began, 2))
        self._on_answer()

    def _result(self, query: Query, cancelled: threading.Event) -> Result:
        scratch = self._directory / new_id()
        private.make_directory(scratch)
        try:
            ended = self._run(query, cancelled, scratch)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        said = query.fork.read(ended)
        if said is not None:
            return said
        if ended.status is None:
            return ForkSilent()
        return ForkFailed(f"{Path(query.argv[0]).name} ended with status {ended.status} and said nothing")

    def _run(self, query: Query, cancelled: threading.Event, scratch: Path) -> ProgramResult:
        prepared = query.fork.prepare(query.original, scratch)
        transcript = prepared.transcript or query.original.transcript
        places = {"scratch": str(scratch), "transcript": str(transcript or "")}
        values = {**places, "question": query.question}
        over = {**{name: fill(value, places) for name, value in query.env.items()}, **prepared.env, MARK: str(scratch)}
        known = {**query.original.env, **over}
        env = {name: value for name, value in known.items() if value is not None}
        stdin = None
        if not query.is_argument:
            stdin = scratch / "question.txt"
            private.write(stdin, query.question)
        argv = [fill(word, values) for word in query.argv]
        if cancelled.is_set():
            return ProgramResult(None, "", "")
        workspace, hopeless = query.original.workspace, query.fork.is_hopeless
        return run(argv, env, workspace, stdin, query.timeout_s, cancelled, hopeless)
