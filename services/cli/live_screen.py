"""The terminal's alternate screen: drawn without flicker, and left again however the program ends."""

import contextlib
import os
import select
import signal
import sys
import termios
import threading
import tty
from collections.abc import Sequence
from typing import Any

from services.cli.tables import width
from shared.messaging.inbox import Inbox, LookRequest, QuitSignal

ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
"""The alternate screen, without a cursor; and back."""
HOME, END_OF_LINE, END_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"
WRAP_OFF, WRAP_ON = "\x1b[?7l", "\x1b[?7h"
"""A letter that is wider than expected must not push the rest down."""
SUSPEND = "suspend"
QUIT_KEYS = b"qQ\x04"
QUIT_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class LiveScreen:
    """Signals and keys go into the inbox: QuitSignal, a LookRequest for another size, and one `suspend` for Ctrl-Z."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._out = sys.stdout.fileno()
        self._drawn: tuple[Sequence[str], os.terminal_size] | None = None
        self._keys: _KeyReader | None = None
        self._modes: list[Any] | None = None
        self._old_handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "LiveScreen":
        sys.stdout.flush()
        try:
            for number in QUIT_SIGNALS:
                self._handle(number, QuitSignal(number))
            self._handle(signal.SIGWINCH, LookRequest("another size"))
            self._handle(signal.SIGTSTP, LookRequest(SUSPEND))
            if _is_foreground():
                self._keys = _KeyReader(self._inbox)
            self._enter()
        except BaseException:  # Ctrl-C may come at once
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()
        if self._keys is not None:
            self._keys.close()
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)

    def draw(self, lines: Sequence[str]) -> None:
        """Show these lines and nothing else, in one write; the same lines are not written again."""
        wanted = (list(lines), self.size())
        if wanted != self._drawn:
            self._drawn = wanted
            self._write(picture(*wanted))

    def size(self) -> os.terminal_size:
        """Columns and rows."""
        with contextlib.suppress(OSError):
            size = os.get_terminal_size(self._out)
            if size.columns > 0 and size.lines > 0:
                return size
        return os.terminal_size((80, 24))

    def suspend(self) -> None:
        """Give the terminal back and stop, as after Ctrl-Z; returns when the shell continues the program."""
        self._leave()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._enter()

    def _handle(self, number: signal.Signals, item: QuitSignal | LookRequest) -> None:
        self._old_handlers[number] = signal.signal(number, lambda *_: self._inbox.put(item))

    def _enter(self) -> None:
        if _is_foreground():
            with contextlib.suppress(termios.error):
                self._modes = termios.tcgetattr(sys.stdin)
                tty.setcbreak(sys.stdin, termios.TCSANOW)
        self._drawn = None
        self._write(ENTER + WRAP_OFF)

    def _leave(self) -> None:
        # The terminal may be gone: then there is nothing to restore.
        with contextlib.suppress(OSError):
            self._write(WRAP_ON + LEAVE)
        if self._modes is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(sys.stdin, termios.TCSANOW, self._modes)
            self._modes = None

    def _write(self, text: str) -> None:
        left = text.encode("utf-8", "replace")
        while left:
            left = left[os.write(self._out, left) :]


def picture(lines: Sequence[str], size: os.terminal_size) -> str:
    """The text that draws these lines over what is there. Nothing is blanked in between, so nothing flickers."""
    # After the last column the cursor stays on it: erasing from there would remove the last letter.
    drawn = [line if width(line) >= size.columns else line + END_OF_LINE for line in lines]
    rest = "\r\n" + END_OF_SCREEN if len(lines) < size.lines else ""
    return HOME + "\r\n".join(drawn) + rest


def _is_foreground() -> bool:
    """Whether keys can be read: a background job that tries to is stopped."""
    with contextlib.suppress(OSError, ValueError):
        return sys.stdin.isatty() and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    return False


class _KeyReader:
    """Reads keys on a thread of its own. What is typed after `close` is left for the shell."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._typed = sys.stdin.fileno()
        self._ended, self._end = os.pipe()
        self._thread = threading.Thread(target=self._read, name="keys", daemon=True)
        self._thread.start()

    def close(self) -> None:
        os.close(self._end)
        self._thread.join()
        os.close(self._ended)

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while self._ended not in select.select([self._typed, self._ended], [], [])[0]:
                key = os.read(self._typed, 1)
                if not key or key in QUIT_KEYS:
                    self._inbox.put(QuitSignal(0))
                    return
