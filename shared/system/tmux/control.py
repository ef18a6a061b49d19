"""The words of tmux's control mode, without any I/O.

`client` writes lines made here to a control client and feeds what comes back to a `Framer`. Everything in
this module is pure, so that quoting and framing can be tested against every text a screen may show.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

SAFE = re.compile(r"[A-Za-z0-9_/@.,-]+")
ESCAPED = re.compile(rb'[^ -~]|["\\$~]')

# Of what a control client is told, these say nothing about which sessions exist or what runs in them.
NO_CHANGE = frozenset(
    (
        *(b"%output", b"%extended-output", b"%pause", b"%continue", b"%message", b"%config-error"),
        *(b"%session-changed", b"%client-session-changed", b"%client-detached", b"%subscription-changed"),
        *(b"%paste-buffer-changed", b"%paste-buffer-deleted"),
    )
)


class Garbled(Exception):
    """What came over the connection can't be told apart into answers any more."""


@dataclass(frozen=True, slots=True)
class TmuxAnswer:
    """What tmux said to one command; `ok` is False when it refused."""

    ok: bool
    text: str

    @property
    def lines(self) -> tuple[str, ...]:
        # Not splitlines(): a screen may hold characters which that takes for line ends and tmux does not.
        return tuple(self.text.split("\n")) if self.text else ()


@dataclass(frozen=True, slots=True)
class Block(TmuxAnswer):
    """One framed answer; `asked` is False for those to commands which the connection itself did not send."""

    asked: bool


class Notification(bytes):
    """One line which tmux sent unasked."""

    @property
    def is_change(self) -> bool:
        return self.split(b" ", 1)[0] not in NO_CHANGE


class CommandLine(NamedTuple):
    """One line for a control client, and the number of blocks it is answered with unless one is an error."""

    text: bytes
    blocks: int
    asks: str


def line(*commands: Sequence[str], blocks: int | None = None) -> CommandLine:
    """Write commands on one line. tmux runs them with nothing in between and leaves the rest out at an error."""
    text = b" ; ".join(b" ".join(map(quote, command)) for command in commands)
    return CommandLine(text + b"\n", blocks or len(commands), commands[0][0])


def quote(argument: str) -> bytes:
    """Write one argument so that tmux's parser reads it back byte for byte, on one line."""
    if SAFE.fullmatch(argument):
        return argument.encode()
    raw = argument.encode("utf-8", "surrogateescape")
    if b"\0" in raw:
        raise ValueError(f"tmux can't take an argument with a NUL byte: {argument!r}")
    return b'"' + ESCAPED.sub(lambda found: b"\\%03o" % found[0][0], raw) + b'"'


class Framer:
    """Cuts the bytes of one control connection into blocks and notices, however they arrive.

    A screen may show lines that look like framing. An answer ends only at the very words that close its own
    opening, and openings are numbered upwards. Text that guesses both is found out by whoever asks.
    """

    def __init__(self) -> None:
        self._data = b""
        self._at = 0
        self._open: bytes | None = None
        self._searched = 0
        self._number = -1

    def feed(self, data: bytes) -> Iterator[Block | Notification]:
        self._data = self._data[self._at :] + data
        self._searched -= self._at
        self._at = 0
        while found := self._next():
            yield found

    def _next(self) -> Block | Notification | None:
        while self._open is None:
            end = self._data.find(b"\n", self._at)
            if end < 0:
                return None
            words, start = self._data[self._at : end], self._at
            self._at = end + 1
            if words.startswith(b"%begin "):
                self._begin(words.removeprefix(b"%begin "), end)
            elif words.startswith((b"%end ", b"%error ")):
                raise Garbled(f"an answer ended that had not begun: {self._data[start:end]!r}")
            elif words.startswith(b"%"):
                return Notification(words)
        return self._body(self._open)

    def _begin(self, tag: bytes, newline: int) -> None:
        words = tag.split(b" ")
        if len(words) != 3 or not all(map(bytes.isdigit, words)) or int(words[1]) <= self._number:
            raise Garbled(f"an answer began out of order: {tag!r}")
        self._open, self._number = tag, int(words[1])
        # Kept from the line end before the body on, for an empty body is closed right there.
        self._at = self._searched = newline

    def _body(self, tag: bytes) -> Block | None:
        while (mark := self._data.find(b"\n%e", self._searched)) >= 0:
            for closing, ok in ((b"\n%end " + tag + b"\n", True), (b"\n%error " + tag + b"\n", False)):
                if self._data.startswith(closing, mark):
                    text = self._data[self._at + 1 : mark].decode("utf-8", "replace")
                    self._at, self._open = mark + len(closing), None
                    return Block(ok, text, asked=tag.endswith(b" 1"))
            if len(self._data) - mark < len(b"\n%error " + tag + b"\n"):
                self._searched = mark
                return None
            self._searched = mark + 1
        self._searched = max(self._searched, len(self._data) - 2)
        return None
