"""A file of lines as agents treat it, in any order of events: no line is lost, none comes twice."""

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from shared.agents.transcript_activity import JsonLinesTail


def append(path: Path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)


class Followed(RuleBasedStateMachine):
    """A file as agents treat it, in any order; what is read must be a gapless run of one file's lines."""

    @initialize(first_look=st.integers(1, 300), at_once=st.integers(1, 200))
    def begin(self, first_look: int, at_once: int) -> None:
        self.room = TemporaryDirectory()
        self.path = Path(self.room.name) / "a.jsonl"
        self.follower = JsonLinesTail(self.path, first_look=first_look, at_once=at_once)
        self.next = self.changes = 0
        self.half = b""
        self.complete: list[int] = []
        """The complete lines of the file as it is now."""
        self.read: list[int] = []
        """What was read of it."""

    def teardown(self) -> None:
        if hasattr(self, "room"):
            self.room.cleanup()

    def _line(self, size: int) -> bytes:
        self.next += 1
        return json.dumps({"n": self.next, "text": f"{self.next} " * (size // 4)}).encode() + b"\n"

    def _changed(self) -> None:
        self.read, self.complete, self.half = [], [], b""

    @rule(sizes=st.lists(st.integers(0, 400), max_size=6), cut=st.floats(0, 1))
    def write(self, sizes: list[int], cut: float) -> None:
        """Whole lines, and a part of one more."""
        text = self.half
        if self.half:
            self.complete.append(self.next)
        for size in sizes:
            text += self._line(size)
            self.complete.append(self.next)
        last = self._line(10)
        place = round(cut * (len(last) - 1))
        append(self.path, text + last[:place])
        self.half = last[place:]

    @rule(sizes=st.lists(st.integers(0, 400), max_size=6))
    def replace(self, sizes: list[int]) -> None:
        self._changed()
        other = self.path.with_name("other")
        other.write_bytes(b"")
        other.replace(self.path)
        self._fill(sizes)

    @rule(sizes=st.lists(st.integers(0, 400), max_size=6))
    def write_anew_in_place(self, sizes: list[int]) -> None:
        self._changed()
        self.path.write_bytes(b"")
        self._fill(sizes)

    @rule()
    def delete(self) -> None:
        self._changed()
        self.path.unlink(missing_ok=True)
        assert self.follower.read() is None

    def _fill(self, sizes: list[int]) -> None:
        for size in sizes:
            append(self.path, self._line(size))
            self.complete.append(self.next)
        # A test is quicker than some file systems' clocks, and the size may be the same.
        self.changes += 1
        os.utime(self.path, ns=(0, self.changes * 10**9))

    @rule(times=st.integers(1, 5))
    def look(self, times: int) -> None:
        for _ in range(times):
            news = self.follower.read()
            if news is None:
                return
            if news.anew:
                self.read = []
            self.read += [document["n"] for document in news.documents]

    @rule()
    def look_at_all(self) -> None:
        self.look(1)
        while self.follower.is_behind:
            self.look(1)
        if self.path.exists() and self.complete:
            assert self.read[-1:] == self.complete[-1:]

    @invariant()
    def what_was_read_is_a_run_of_its_lines(self) -> None:
        if getattr(self, "read", []):
            place = self.complete.index(self.read[0])
            assert self.read == self.complete[place : place + len(self.read)]


TestFollowed = Followed.TestCase
TestFollowed.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)
