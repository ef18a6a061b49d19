"""The format of tmux's control mode: targets, quoting, command lines, and the frames of answers. Pure.

`server_link` puts command lines made here to a control client, and `connection` feeds its output to a `Framer`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

NAME = re.compile(r"[A-Za-z0-9_-]+")
DIGITS = re.compile(r"[0-9]+")
SESSION, PANE = "$", "%"

SAFE = re.compile(r"[A-Za-z0-9_/@.,-]+")
ESCAPED = re.compile(rb'[^ -~]|["\\$~]')

# Notifications that say nothing about which sessions exist or what runs in them.
NO_CHANGE = frozenset(
    (
        *(b"%output", b"%extended-output", b"%pause", b"%continue", b"%message", b"%config-error"),
        *(b"%session-changed", b"%client-session-changed", b"%client-detached", b"%subscription-changed"),
        *(b"%paste-buffer-changed", b"%paste-buffer-deleted"),
    )
)


# Targets are ids. tmux reads a name also as a part of another name, as a pattern or as a number.


def name(what: str, text: str) -> str:
    """A word that is safe in a tmux command; raises ValueError for anything else."""
    if not NAME.fullmatch(text):
        raise ValueError(f"a {what} is made of letters, digits, '_' and '-', not {text!r}")
    return text


def exact(sign: str, text: str) -> str:
    """An id of tmux's own; raises ValueError for anything else."""
    if text[:1] != sign or not DIGITS.fullmatch(text[1:]):
        raise ValueError(f"a tmux id of this kind is '{sign}' and a number, not {text!r}")
    return text


def is_pane(target: str) -> bool:
    """Whether a target is the id of a pane, and not of a session; raises ValueError for anything else."""
    if target.startswith(PANE):
        exact(PANE, target)
        return True
    exact(SESSION, target)
    return False


class Garbled(Exception):
    """The output of a control client can't be split into answers."""


@dataclass(frozen=True, slots=True)
class TmuxAnswer:
    """tmux's answer to one command; `ok` is False if it refused."""

    ok: bool
    text: str

    @property
    def lines(self) -> tuple[str, ...]:
        # Not splitlines(), which splits at more characters than tmux does.
        return tuple(self.text.split("\n")) if self.text else ()


@dataclass(frozen=True, slots=True)
class Block(TmuxAnswer):
    """One framed answer; `asked` is False for commands that this client did not send, hooks for example."""

    asked: bool


class Notification(bytes):
    """One line that tmux sent unasked."""

    @property
    def is_change(self) -> bool:
        return self.split(b" ", 1)[0] not in NO_CHANGE

    @property
    def is_attachment(self) -> bool:
        """Whether it says that this client is attached to a session from now on."""
        return self.startswith(b"%session-changed ")


class CommandLine(NamedTuple):
    """One line for a control client, and how many blocks answer it; an error block is the last one."""

    text: bytes
    blocks: int
    asks: str


def line(*commands: Sequence[str], blocks: int | None = None) -> CommandLine:
    """Several commands on one line. tmux runs nothing else in between, and skips the rest after an error."""
    text = b" ; ".join(b" ".join(map(quote, command)) for command in commands)
    return CommandLine(text + b"\n", blocks or len(commands), commands[0][0])


def quote(argument: str) -> bytes:
    """One argument, quoted so that tmux's parser reads it byte for byte."""
    if SAFE.fullmatch(argument):
        return argument.encode()
    raw = argument.encode("utf-8", "surrogateescape")
    if b"\0" in raw:
        raise ValueError(f"tmux can't take an argument with a NUL byte: {argument!r}")
    return b'"' + ESCAPED.sub(lambda found: b"\\%03o" % found[0][0], raw) + b'"'


class Framer:
    """Splits the output of one control client into blocks and notifications.

    A screen may show lines that look like frames. A block ends only with the tag with which it began, and tags are
    numbered upwards. `Connection.ask` detects text that guesses both.
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
        # From the line end before the body on: it is also the line end before the closing line of an empty body.
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
