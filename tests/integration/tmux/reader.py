"""A program that keeps every byte it is sent, for tests that type."""

import secrets
import sys

from tests.integration.tmux.server import Server, eventually

READ = """
import os, sys, tty
tty.setraw(0)
kept = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(1, sys.argv[2].encode() + b"ready")
while data := os.read(0, 1 << 16):
    os.write(kept, data)
"""
ASK_FOR_MARKS = "\x1b[?2004h"


class Reader:
    """Runs in raw mode in a session of its own. `marks`: it has asked to be told where a paste begins and ends."""

    def __init__(self, server: Server, session: str = "one", *, marks: bool = False) -> None:
        self._server = server
        self._kept = server.home / f"{session}.kept"
        self._at = 0
        self.marks = marks
        argv = [sys.executable, "-c", READ, str(self._kept), ASK_FOR_MARKS if marks else ""]
        self.pane = server.start(session, argv)
        self.pane_id, self.spawn = self.pane.pane_id, f"{session}-1"
        eventually(lambda: server.tmux.screens([self.pane_id])[self.pane_id] == "ready")

    def read(self) -> bytes:
        """Give all that came since the last time: what was typed before this is in, for a word is typed after it."""
        word = secrets.token_hex(8)
        self._server.run("send-keys", "-t", self.pane_id, "-l", word)
        eventually(lambda: self._new().endswith(word.encode()))
        new = self._new()
        self._at += len(new)
        return new.removesuffix(word.encode())

    def pasted(self, text: str) -> bytes:
        """What a paste of this text is to this program."""
        raw = text.encode("utf-8", "surrogateescape")
        return b"\x1b[200~" + raw + b"\x1b[201~" if self.marks else raw

    def _new(self) -> bytes:
        with self._kept.open("rb") as kept:
            kept.seek(self._at)
            return kept.read()
