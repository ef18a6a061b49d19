"""What opencode tells on its bus, kept as the hooks of the others are.

Its plugins could do it, but with one it looks for packages before it starts, and on loopback it never finds any. Its
server tells the same to whoever listens: `--port` has it listen on a port that is known.
"""

import json
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

WITHIN_S = 60.0
TOO_MANY = ("message.part", "server.heartbeat", "sync", "plugin.", "catalog.", "integration.", "reference.")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def listening(port: int, file: Path) -> Iterator[threading.Event]:
    """Append every event to the file, from when the event that is given is set until the block ends.

    The program is to be ready before (who comes too early is never told anything), and to be gone in the end.
    """
    ready, over = threading.Event(), threading.Event()
    thread = threading.Thread(target=_listen, args=(port, file, ready, over))
    thread.start()
    try:
        yield ready
    finally:
        over.set()
        ready.set()
        thread.join()


def _listen(port: int, file: Path, ready: threading.Event, over: threading.Event) -> None:
    ready.wait()
    while not over.wait(0.1):
        with (
            suppress(OSError),
            urllib.request.urlopen(f"http://127.0.0.1:{port}/global/event", timeout=WITHIN_S) as events,
        ):
            for line in events:
                if line.startswith(b"data: "):
                    _keep(json.loads(line[6:])["payload"], file)


def _keep(event: dict[str, object], file: Path) -> None:
    if not str(event["type"]).startswith(TOO_MANY):
        with file.open("a", encoding="utf-8") as told:
            told.write(json.dumps({"at": time.time(), "payload": event}) + "\n")
