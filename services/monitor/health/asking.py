"""Puts questions to copies of conversations, beside the monitor's own work: few at once, the others wait in line."""

import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from services.monitor.health.forks import Answered, CannotAsk, Ended, Failed, NoAnswer, Result
from services.monitor.health.query import Query
from shared.broker import private
from shared.fleet.placeholders import fill
from shared.ids import new_id
from shared.processes import end_marked
from shared.running import run

AT_ONCE = 2
"""Each may take half a gigabyte of memory."""
MARK = "MUSTER_PEEK"
"""The variable that marks what was started here, with the directory of it: a monitor that was killed leaves some."""
CLOSES_WITHIN_S = 3.0


@dataclass
class _Question:
    query: Query
    cancelled: threading.Event = field(default_factory=threading.Event)


class Asking:
    """Used by one thread; `on_answer` is called by others, each time that there is something to take."""

    def __init__(self, directory: Path, on_answer: Callable[[], None], at_once: int = AT_ONCE) -> None:
        self._directory = directory
        self._on_answer = on_answer
        self._at_once = at_once
        self._lock = threading.Lock()
        self._line: dict[str, _Question] = {}
        """Who waits, in order."""
        self._running: dict[str, _Question] = {}
        self._threads: set[threading.Thread] = set()
        """Also of those that were cancelled, until nothing of them is left: they count as running."""
        self._answered: dict[str, Answered] = {}

    def tidy(self) -> None:
        """End and remove what an earlier monitor left, when it was killed. Before anything is asked."""
        left = list(self._directory.iterdir()) if self._directory.is_dir() else []
        if left:
            end_marked(MARK, self._directory)
        for each in left:
            shutil.rmtree(each, ignore_errors=True)

    def ask(self, key: str, query: Query, *, soon: bool = False) -> None:
        """Ask, and remember the answer under a key. `soon`: before all others that wait."""
        with self._lock:
            question = _Question(query)
            self._line = {key: question, **self._line} if soon else {**self._line, key: question}
            self._begin()

    def is_asking(self, key: str) -> bool:
        with self._lock:
            return key in self._line or key in self._running

    def take(self, key: str) -> Answered | None:
        """The answer to a question, once."""
        with self._lock:
            return self._answered.pop(key, None)

    def cancel(self, key: str) -> None:
        """Nobody wants to know any more: it is ended at once, and there will be no answer."""
        with self._lock:
            self._line.pop(key, None)
            self._answered.pop(key, None)
            question = self._running.pop(key, None)
            if question is not None:
                question.cancelled.set()

    def close(self) -> None:
        """End all of them, and leave nothing behind."""
        with self._lock:
            keys, threads = [*self._line, *self._running], list(self._threads)
        for key in keys:
            self.cancel(key)
        until = time.monotonic() + CLOSES_WITHIN_S
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))

    # --- inside ---

    def _begin(self) -> None:
        """Start who is next, while there is room. Called with the lock."""
        while self._line and len(self._threads) < self._at_once:
            key = next(iter(self._line))
            question = self._line.pop(key)
            thread = threading.Thread(target=self._work, args=(key, question), daemon=True, name=f"asks for {key}")
            thread.start()  # it can't end before the lock is free
            self._running[key] = question
            self._threads.add(thread)

    def _work(self, key: str, question: _Question) -> None:
        began = time.monotonic()
        try:
            result = self._result(question)
        except (CannotAsk, OSError, ValueError) as error:
            result = Failed(str(error))
        except Exception as error:  # noqa: BLE001 - whoever waits for it must learn that nothing comes
            result = Failed(f"{type(error).__name__}: {error}")
        with self._lock:
            self._threads.discard(threading.current_thread())
            if self._running.get(key) is question:
                del self._running[key]
                self._answered[key] = Answered(result, round(time.monotonic() - began, 2))
            self._begin()
        self._on_answer()

    def _result(self, question: _Question) -> Result:
        query, scratch = question.query, self._directory / new_id()
        private.make_directory(scratch)
        try:
            ended = self._run(question, scratch)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        said = query.fork.read(ended)
        if said is not None:
            return said
        if ended.status is None:
            return NoAnswer()
        return Failed(f"{Path(query.argv[0]).name} ended with status {ended.status} and said nothing")

    def _run(self, question: _Question, scratch: Path) -> Ended:
        query = question.query
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
        if question.cancelled.is_set():
            return Ended(None, "", "")
        workspace, hopeless = query.original.workspace, query.fork.is_hopeless
        return run(argv, env, workspace, stdin, query.timeout_s, question.cancelled, hopeless)
