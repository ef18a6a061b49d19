"""Who looks on: `mosquitto_sub` in three ways, and readers of the registry, of `muster status` and of memory."""

import contextlib
import json
import random
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from services.cli.broker import connection
from tests.chaos.evidence import EVENT_TOPICS, Absence, Number, SeenEvent, SeenReply
from tests.chaos.load import reply_of
from tests.chaos.promises import RETURNS_WITH_SESSION
from tests.chaos.stage import Stage, documents

READ_EVERY_S, STATUS_EVERY_S, SAMPLE_EVERY_S = 0.02, 6.0, 3.0
STAYS_S = 1.0
AWAY_S, THERE_S = (0.5, 6.0), (3.0, 15.0)


class Subscriber:
    """`mosquitto_sub` into a file; with a session the broker keeps messages while it is away."""

    def __init__(self, stage: Stage, name: str, topic: str, *, session: bool, role: str = "viewer") -> None:
        self._stage, self._role = stage, role
        self._argv = ["-q", "1", "-t", topic, "-F", "%j", *(["-i", f"chaos-{name}", "-c"] if session else [])]
        self.file = stage.directory / f"{name}.jsonl"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        argv = ["mosquitto_sub", *connection(self._stage.fleet.fleet, self._role).split(), *self._argv]
        with self.file.open("ab") as out:
            self._process = subprocess.Popen(argv, stdout=out, stderr=subprocess.DEVNULL)

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def end(self) -> None:
        """As Ctrl-C does: what it was sent is in the file."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)

    def messages(self) -> Iterator[dict[str, Any]]:
        if self.file.exists():
            yield from documents(self.file.read_text(errors="replace"))

    def events(self) -> list[SeenEvent]:
        """The numbered documents; one that came again with other content is kept beside the first."""
        found: dict[tuple[Number, str], SeenEvent] = {}
        for message in self.messages():
            event = event_of(message["topic"], message.get("payload") or "")
            if event is not None:
                found.setdefault((event.number, json.dumps(event.data, sort_keys=True)), event)
        return list(found.values())


def event_of(topic: str, payload: str) -> SeenEvent | None:
    """The numbered event in a message; none if it is something else."""
    if topic.rpartition("/")[2] not in EVENT_TOPICS or not payload:
        return None
    document = json.loads(payload)
    return SeenEvent(
        document["epoch"],
        document["source"].rpartition("/")[2],
        document["seq"],
        timestamp(document["time"]),
        topic,
        document["data"],
        document.get("cause"),
    )


def timestamp(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


class Witness:
    """All who look on, from `start` to `end`."""

    def __init__(self, stage: Stage, chance: random.Random) -> None:
        self._stage, self._chance = stage, chance
        self.subscribers = {
            "connected": Subscriber(stage, "connected", "muster/#", session=False),
            "with session": Subscriber(stage, "with-session", "muster/#", session=True),
            RETURNS_WITH_SESSION: Subscriber(stage, "returning", "muster/#", session=True),
        }
        self._replies = Subscriber(stage, "replies", "muster/box/reply/+", session=True, role="operator")
        self.absences: list[Absence] = []
        self.registry_reads = 0
        self.broken_reads: list[tuple[float, str]] = []
        self.status_reads = 0
        self.bad_status: list[str] = []
        self.ended_early: list[str] = []
        """Subscribers that did not run to the end: what they lack says nothing."""
        self.samples: dict[str, list[ProcessSample]] = {}
        self._ended = threading.Event()
        looks = (self._come_and_go, self._read_registry, self._read_status, self._sample)
        self._threads = [threading.Thread(target=each, daemon=True) for each in looks]

    def start(self) -> None:
        for subscriber in (*self.subscribers.values(), self._replies):
            subscriber.start()
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        if self._ended.is_set():
            return
        self._ended.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(60)
        self.ended_early += [name for name, each in self.subscribers.items() if not each.is_running()]
        for subscriber in (*self.subscribers.values(), self._replies):
            subscriber.end()

    def replies(self) -> list[SeenReply]:
        """The final ones."""
        found = [json.loads(message["payload"]) for message in self._replies.messages() if message.get("payload")]
        return [reply_of(document) for document in found if document.get("final")]

    def retained(self, of: str) -> dict[str, Mapping[str, Any]]:
        """The states of agents or services as a new subscriber gets them."""
        argv = ["mosquitto_sub", *connection(self._stage.fleet.fleet, "viewer").split(), "-W", "2", "-F", "%j"]
        done = subprocess.run([*argv, "-t", f"muster/box/{of}/+/state"], capture_output=True, text=True, check=False)
        found = {}
        for message in documents(done.stdout):
            if message.get("payload"):
                found[message["topic"].split("/")[3]] = json.loads(message["payload"])["data"]
        return found

    # --- threads ---

    def _come_and_go(self) -> None:
        subscriber = self.subscribers[RETURNS_WITH_SESSION]
        while not self._stage.over.wait(self._chance.uniform(*THERE_S)):
            subscriber.end()
            began = time.time()
            self._stage.over.wait(self._chance.uniform(*AWAY_S))
            subscriber.start()
            # `mosquitto_sub` ends if no broker answers its first connection; a person starts it again.
            while not self._ended.wait(STAYS_S) and not subscriber.is_running():
                subscriber.start()
            self.absences.append(Absence(began, time.time()))

    def _read_registry(self) -> None:
        file, before = self._stage.fleet.fleet.registry, b""
        while not self._ended.wait(READ_EVERY_S):
            at = time.time()
            try:
                content = file.read_bytes()
            except FileNotFoundError:
                self._judge(at, "there is no file", b"")
                continue
            self.registry_reads += 1
            if content != before:
                before = content
                if fault := fault_of_registry(content):
                    self._judge(at, fault, content)

    def _judge(self, at: float, fault: str, content: bytes) -> None:
        if content not in self._stage.written:
            self.broken_reads.append((at, fault))

    def _read_status(self) -> None:
        while not self._ended.wait(STATUS_EVERY_S):
            done = self._stage.fleet.cli("status", "--json", code=None)
            self.status_reads += 1
            if (
                done.returncode not in (0, 1, 3)
                or "Traceback" in done.stderr
                or (done.returncode != 1 and not done.stdout)
            ):
                self.bad_status.append(f"rc {done.returncode}: {done.stderr[-600:]}")

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_EVERY_S):
            for name, pid in self._stage.pids().items():
                if sample := sample_of(pid):
                    self.samples.setdefault(name, []).append(sample)


def fault_of_registry(content: bytes) -> str:
    """What makes a file no whole registry; nothing if it is one."""
    try:
        document = YAML(typ="safe").load(content)
    except YAMLError as fault:
        return f"no YAML: {fault}"
    if not isinstance(document, dict) or not isinstance(document.get("agents"), dict):
        return f"no registry: {content[:200]!r}"
    bad = [name for name, record in document["agents"].items() if not (record or {}).get("status")]
    return f"no status: {bad}" if bad else ""


class ProcessSample:
    """Memory, file handles and threads of a process at one time."""

    def __init__(self, at: float, pss_mb: float, handles: int, threads: int) -> None:
        self.at, self.pss_mb, self.handles, self.threads = at, pss_mb, handles, threads


def sample_of(pid: int) -> ProcessSample | None:
    """None if it is gone."""
    at = Path(f"/proc/{pid}")
    with contextlib.suppress(OSError, StopIteration):
        rows = (at / "smaps_rollup").read_text().splitlines()
        pss_kb = int(next(row for row in rows if row.startswith("Pss:")).split()[1])
        return ProcessSample(
            time.time(), pss_kb / 1024, len(list((at / "fd").iterdir())), len(list((at / "task").iterdir()))
        )
    return None
