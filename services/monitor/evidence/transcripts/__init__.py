"""What an agent's own transcript says that it is doing: read as it grows, in the words of each format."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from services.monitor.evidence.evidence import Evidence
from services.monitor.evidence.transcripts.claude import ClaudeReading
from services.monitor.evidence.transcripts.codex import CodexReading
from services.monitor.evidence.transcripts.demo import DemoReading
from services.monitor.evidence.transcripts.gemini import GeminiReading
from services.monitor.evidence.transcripts.opencode_database import OpencodeReader
from services.monitor.evidence.transcripts.reading import Reading
from services.monitor.evidence.transcripts.tail import Tail

READINGS: Mapping[str, Callable[[], Reading]] = {
    "claude": ClaudeReading,
    "codex": CodexReading,
    "gemini": GeminiReading,
    "demo": DemoReading,
}
"""The formats that are files of lines, by the kind of the backend."""


class TranscriptReader(Protocol):
    def read(self) -> Evidence | None:
        """What the transcript says now; None where it says nothing, or is not there. Never raises."""


class LinesReader:
    """A transcript that is a file of lines."""

    def __init__(self, path: Path, reading: Callable[[], Reading]) -> None:
        self._tail = Tail(path)
        self._new = reading
        self._reading = reading()
        self._claim: Evidence | None = None

    def read(self) -> Evidence | None:
        news = self._tail.read()
        if news is None or news.anew:
            self._reading = self._new()
        for document in news.documents if news is not None else ():
            self._reading.take(document)
        if not self._tail.is_behind:  # what is read of a long piece says what was, not what is
            self._claim = self._reading.claim()
        return self._claim


class SinceReader:
    """What is said of a program that runs since a moment: before, another one wrote the conversation."""

    def __init__(self, reader: TranscriptReader, since: float) -> None:
        self._reader = reader
        self._since = since

    def read(self) -> Evidence | None:
        said = self._reader.read()
        return said if said is not None and said.at >= self._since else None


def reader_for(
    backend_kind: str, path: Path, conversation: str | None, *, since: float | None = None
) -> TranscriptReader | None:
    """A reader of one conversation; None for a kind of agent whose transcripts say nothing of the kind.

    `since` is when the agent's program started: a conversation that is resumed may end in the middle of a turn.
    """
    reader: TranscriptReader | None = None
    if backend_kind == "opencode":
        reader = OpencodeReader(path, conversation) if conversation is not None else None
    elif (reading := READINGS.get(backend_kind)) is not None:
        reader = LinesReader(path, reading)
    return SinceReader(reader, since) if reader is not None and since is not None else reader


__all__ = ["READINGS", "LinesReader", "TranscriptReader", "reader_for"]
