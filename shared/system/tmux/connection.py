"""One running control client of tmux, and the thread that reads from it: commands in, answers and notifications out.

`server_link` starts the client and decides what an ended connection means.
"""

import logging
import queue
import secrets
import select
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from shared.system.tmux.control import Block, CommandLine, Framer, Garbled, Notification, TmuxAnswer, line

log = logging.getLogger(__name__)

LEAVE_S = 1.0
"""How long a client may take to end after its input was closed; then it is killed."""


class Connection:
    """A connection from its start to its end. `client` must run on the other end of `ours`, with stderr piped."""

    def __init__(self, client: subprocess.Popen[bytes], ours: socket.socket, on_change: Callable[[], None]) -> None:
        self.ended = threading.Event()
        self._attached = threading.Event()
        self._end_reason = ""
        self._client = client
        self._socket = ours
        self._on_change = on_change
        self._closing = False
        self._answers: queue.SimpleQueue[list[Block] | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name="tmux-control", daemon=True)
        self._reader.start()

    def ask(self, lines: Sequence[CommandLine], deadline: float, *, closely: bool = True) -> list[TmuxAnswer]:
        """Put commands in one batch. Raises TimeoutError, ConnectionError or Garbled; then it must be closed.

        A screen may show forged frames, which would pass for the answer to the next command. So a random word is asked
        for after every command, and must come back alone. Without `closely` it is asked for once, at the end, which
        takes half the time; then a forged answer shows a `%end` or `%error` line in its text.
        """
        word = secrets.token_hex(8)
        ask_for_word = line(("display-message", "-p", word)).text
        marked = [closely or place == len(lines) for place in range(1, len(lines) + 1)]
        text = b"".join(one.text + ask_for_word * mark for one, mark in zip(lines, marked, strict=True))
        self._send(text, deadline)
        blocks: list[Block] = []
        answers = []
        for one, mark in zip(lines, marked, strict=True):
            for _ in range(one.blocks):
                block = self._take(blocks, deadline)
                if not block.ok:
                    break
            answers.append(TmuxAnswer(block.ok, block.text))
            if mark and self._take(blocks, deadline).text != word:
                raise Garbled("answers out of step with the questions")
        return answers

    def wait_until_attached(self, deadline: float) -> None:
        """Wait until tmux pushes changes to this client. Raises TimeoutError or ConnectionError.

        tmux answers commands before that: a change in between would not be pushed.
        """
        if not self._attached.wait(_left(deadline)):
            raise TimeoutError
        if self.ended.is_set():
            raise ConnectionError(self._end_reason)

    def close(self, patience_s: float = LEAVE_S) -> None:
        """End it, without calling `on_change`."""
        self._closing = True
        self._shut(socket.SHUT_WR)
        self._reader.join(patience_s)
        if self._reader.is_alive():
            self._client.kill()
            self._shut(socket.SHUT_RDWR)
            self._reader.join()

    def _shut(self, how: int) -> None:
        with suppress(OSError):
            self._socket.shutdown(how)

    def _send(self, text: bytes, deadline: float) -> None:
        while text:
            try:
                text = text[self._socket.send(text, socket.MSG_DONTWAIT) :]
            except BlockingIOError:
                select.select([], [self._socket], [], _left(deadline))
            except OSError as error:
                raise ConnectionError from error

    def _take(self, blocks: list[Block], deadline: float) -> Block:
        while not blocks:
            try:
                arrived = self._answers.get(timeout=_left(deadline))
            except queue.Empty:
                raise TimeoutError from None
            if arrived is None:
                raise ConnectionError(self._end_reason)
            blocks.extend(reversed(arrived))
        return blocks.pop()

    def _read(self) -> None:
        framer = Framer()
        try:
            while data := self._socket.recv(1 << 17):
                self._sort(list(framer.feed(data)))
        except Garbled as error:
            self._end_reason = str(error)
            self._client.kill()
        except OSError:
            pass  # a client that ends without having read everything resets the connection
        self._end()

    def _sort(self, arrived: Sequence[Block | Notification]) -> None:
        if answers := [one for one in arrived if isinstance(one, Block) and one.asked]:
            self._answers.put(answers)
        notifications = [one for one in arrived if isinstance(one, Notification)]
        if any(one.is_attachment for one in notifications):
            self._attached.set()
        if any(one.is_change for one in notifications):
            self._notify()

    def _end(self) -> None:
        try:
            _, errors = self._client.communicate(timeout=LEAVE_S)
        except subprocess.TimeoutExpired:
            self._client.kill()
            _, errors = self._client.communicate()
        self._end_reason = self._end_reason or errors.decode("utf-8", "replace").strip()
        self._socket.close()
        self.ended.set()
        self._attached.set()
        self._answers.put(None)
        self._notify()

    def _notify(self) -> None:
        if self._closing:
            return
        try:
            self._on_change()
        except Exception:
            # The reader must survive a failing callback: without it the connection would look alive.
            log.exception("on_change failed")


def _left(deadline: float) -> float:
    if (left := deadline - time.monotonic()) <= 0:
        raise TimeoutError
    return left
