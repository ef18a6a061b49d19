"""The words and colours of a terminal: events, times, hints."""

import difflib
import shutil
import sys
from collections.abc import Collection
from datetime import datetime
from typing import Any, TextIO

from shared.contract.commands import Reply
from shared.contract.envelope import Envelope, Event, Tone
from shared.contract.states import TONES
from shared.contract.topics import Topic

WORD_TONES: dict[str, Tone] = {
    **{kind.name(): kind.tone for kind in Event.kinds()},
    **{state.value: tone for state, tone in TONES.items()},
    **{"up": Tone.GOOD, "ok": Tone.GOOD, "down": Tone.BAD, "error": Tone.BAD},
}
KIND_COLUMNS = max(len(kind.name()) for kind in Event.kinds())


class Paint:
    """Colours a text if the output is a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._on = stream.isatty()

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._on else text

    def good(self, text: str) -> str:
        return self._wrap("32", text)

    def bad(self, text: str) -> str:
        return self._wrap("31", text)

    def dim(self, text: str) -> str:
        return self._wrap("2", text)

    def bold(self, text: str) -> str:
        return self._wrap("1", text)

    def status(self, text: str) -> str:
        match WORD_TONES.get(text):
            case Tone.GOOD:
                return self.good(text)
            case Tone.BAD:
                return self.bad(text)
        return text


def ago(seconds: float) -> str:
    """A length of time in one unit: the largest of which there are two."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f}{unit}"
    return f"{max(0.0, seconds):.0f}s"


def since(when: str, now: datetime) -> str:
    """How long ago a time in ISO format was."""
    return ago((now - datetime.fromisoformat(when)).total_seconds())


def did_you_mean(given: str, known: Collection[str]) -> str:
    """A question with a space behind it, or nothing if nothing known looks like what was given."""
    close = difflib.get_close_matches(given, known, n=1)
    return f"did you mean {close[0]!r}? " if close else ""


def terminal_columns() -> int | None:
    """How wide the terminal is; None if the output is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def event_line(host: str, row: Topic, document: Envelope[Any] | Reply, paint: Paint) -> str:
    """One event, state or reply as one line."""
    if isinstance(document, Reply):
        what = "ok" if document.ok else "error" if document.final else "waiting"
        subject, family, more = document.verb, "reply", document.said
    else:
        data = document.data
        subject, family = document.subject, row.pattern.rpartition("/")[2]
        what, more = data.word(), data.sentence()
    clock = document.time.astimezone().strftime("%H:%M:%S.%f")[:-3]
    padded = paint.status(plain(what)) + " " * max(0, KIND_COLUMNS - len(what))
    name = paint.bold(f"{plain(subject):<12}")
    return f"{paint.dim(clock)} {paint.dim(plain(host))} {name} {family:<9} {padded} {plain(more)}"


def plain(text: str) -> str:
    """A text from elsewhere; control characters in it are made visible, and can't reach the terminal."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
