"""One run: a fleet, people, faults at random, a quiet end, and what was seen of it all."""

import contextlib
import json
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
from ruamel.yaml import YAML

from registry import BadRegistry
from tests.chaos.evidence import AgentViews, Evidence, SeenEvent, SeenReply
from tests.chaos.faults import FAULTS, ChaosFault
from tests.chaos.load import People, reply_of
from tests.chaos.stage import Stage, chances, open_read_only
from tests.chaos.witness import Witness, event_of
from tests.fixtures.broker import wait_until

SETTLES_WITHIN_S, CALM_S = 120.0, 4.0
PAUSE_S = (0.3, 4.0)
AT_ONCE = 2


class Campaign:
    def __init__(self, directory: Path, seed: int, agents: int, people: int, tell: Callable[[str], None]) -> None:
        self.stage = Stage(directory, agents, tell)
        self._tell, self._seed = tell, seed
        self._witness = Witness(self.stage, chances(seed, "witness"))
        crew = [*self.stage.cast.commanded, *self.stage.cast.edited, *self.stage.cast.asking, *self.stage.cast.limited]
        self._people = [
            People(self.stage, f"p{n}", tuple(crew[n::people]), chances(seed, f"person {n}"), pause_s=1.5)
            for n in range(people)
        ]
        self._faults: list[threading.Thread] = []
        self._failures: list[str] = []
        self._evidence = Evidence()
        self.played: Counter[str] = Counter()

    def run(self, seconds: float) -> Evidence:
        """All of it. The fleet is gone afterwards, whatever happened."""
        stage = self.stage
        try:
            stage.up()
            wait_until(self._all_run_first, "every agent runs", 60.0)
            self._witness.start()
            self._note_bases()
            for person in self._people:
                person.start()
            self._play(seconds)
            self._quieten()
            self._evidence.unsettled = self._wait_until_settled()
            self._collect()
            self._witness.end()
            self._read_witness()
            self._evidence.left_over += self._down()
            return self._evidence
        finally:
            stage.over.set()
            self._witness.end()
            stage.fleet.end()

    def _all_run_first(self) -> bool:
        with contextlib.suppress(BadRegistry):
            records = self.stage.fleet.records()
            return all(
                a in records and (records[a].status == "running" or a == "mortal") for a in self.stage.cast.agents
            )
        return False

    def _note_bases(self) -> None:
        """From here on each subscriber must see everything."""
        for subscriber in self._witness.subscribers.values():
            wait_until(lambda s=subscriber: next(s.messages(), None), "something retained")  # type: ignore[misc]
        with contextlib.closing(open_read_only(self.stage.fleet.fleet.journal)) as journal:
            (epoch,) = journal.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()
            for source, seq in journal.execute("SELECT name, seq FROM source"):
                self._evidence.bases[epoch, source] = seq
        self._evidence.began = time.time()

    # --- faults ---

    def _play(self, seconds: float) -> None:
        chance = chances(self._seed, "faults")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(min(chance.uniform(*PAUSE_S), max(0.0, end - time.monotonic())))
            self._faults = [thread for thread in self._faults if thread.is_alive()]
            fault = self._draw(chance)
            if fault is None:
                continue
            with self.stage.registry_lock:
                self.stage.touched |= fault.touches
            own = random.Random(chance.random())
            thread = threading.Thread(target=self._one, args=(fault, own), daemon=True)
            self._faults.append(thread)
            thread.start()

    def _draw(self, chance: random.Random) -> ChaosFault | None:
        """The next one; none if it can't be at the same time as what is under way."""
        kind = chance.choices(FAULTS, [each.weight for each in FAULTS])[0]
        if len(self._faults) >= AT_ONCE or kind.touches & self.stage.touched:
            return None
        return kind()

    def _one(self, fault: ChaosFault, chance: random.Random) -> None:
        try:
            self.played[fault.name] += 1
            fault.play(self.stage, chance)
        except Exception as failure:  # noqa: BLE001 - it is told in the report
            self._failures.append(f"{fault.name}: {failure!r}")
        finally:
            self.stage.touched -= fault.touches

    # --- the quiet end ---

    def _quieten(self) -> None:
        """Everything is undone, and up."""
        self._tell("faults are undone")
        self.stage.over.set()
        for thread in (*self._faults, *self._people):
            thread.join(300)
        for pid in self.stage.pids().values():
            with contextlib.suppress(psutil.NoSuchProcess):
                psutil.Process(pid).send_signal(signal.SIGCONT)
        self.stage.up()

    def _wait_until_settled(self) -> str:
        """Until all places agree and stay so; what is still different if they don't."""
        self._tell("waiting until it is settled")
        end = time.monotonic() + SETTLES_WITHIN_S
        calm_since, why = None, "nothing was compared"
        while time.monotonic() < end:
            why = self._difference()
            if why:
                calm_since = None
            elif calm_since is None:
                calm_since = time.monotonic()
            elif time.monotonic() - calm_since > CALM_S:
                return ""
            time.sleep(0.5)
        return why

    def _difference(self) -> str:
        stage = self.stage
        down = [name for name in stage.fleet.fleet.services if name not in stage.pids()]
        if down:
            return f"not running: {down}"
        with contextlib.closing(open_read_only(stage.fleet.fleet.journal)) as journal:
            behind = journal.execute("SELECT name, seq - published FROM source WHERE seq > published").fetchall()
            still = "SELECT verb, agent, id FROM request WHERE answer IS NULL AND agent IS NOT NULL"
            opened = journal.execute(still).fetchall()
        if behind or opened:
            return f"not published: {behind}; open: {opened}"
        try:
            records = stage.fleet.records()
        except BadRegistry as fault:
            return str(fault)
        there = self._in_tmux()
        wrong = []
        for agent in stage.cast.agents:
            record = records.get(agent)
            running = record is not None and record.status == "running"
            wanted = record is not None and record.desired == "running" and record.status != "gave_up"
            if record is None or running != wanted or there.get(agent) != (record.spawn if running else None):
                said = f"{record.status}, wanted {record.desired}, {record.spawn}" if record else "no record"
                wrong.append(f"{agent}: {said}, tmux {there.get(agent)}")
        return "; ".join(wrong)

    def _in_tmux(self) -> dict[str, str | None]:
        return {pane.agent: pane.spawn for pane in self.stage.fleet.tmux.look() if pane.agent and not pane.dead}

    # --- what is seen ---

    def _collect(self) -> None:
        """The places as they are at the end."""
        self._tell("comparing")
        evidence, fleet = self._evidence, self.stage.fleet
        registry = YAML(typ="safe").load(fleet.fleet.registry.read_bytes())["agents"]
        status = json.loads(fleet.cli("status", "--json", code=None).stdout)
        states = self._witness.retained("service")
        for name in fleet.fleet.services:
            if status["services"][name]["status"] != "online":
                evidence.not_online[name] = str(states.get(name, {}).get("reason"))
        retained, there = self._witness.retained("agent"), self._in_tmux()
        for agent in self.stage.cast.agents:
            evidence.agents[agent] = AgentViews(
                registry.get(agent), retained.get(agent), status["agents"].get(agent), there.get(agent)
            )
        self._read_journal()
        evidence.left_over += [f"stopped process {each}" for each in self._stopped()]
        for file in (fleet.fleet.home / "demo").glob("*.jsonl"):
            for line in file.read_text().splitlines():
                said = json.loads(line)
                if said["who"] == "user":
                    evidence.heard.append((file.stem, said["text"]))

    def _read_journal(self) -> None:
        evidence = self._evidence
        with contextlib.closing(open_read_only(self.stage.fleet.fleet.journal)) as journal:
            for topic, payload in journal.execute("SELECT topic, payload FROM event"):
                if event := event_of(topic, payload.decode()):
                    evidence.journal.append(event)
            unpublished = journal.execute("SELECT name, seq - published FROM source WHERE seq > published")
            evidence.unpublished = dict(unpublished.fetchall())
            answers: dict[str, SeenReply] = {}
            asked: list[tuple[str, str, str, float, str, bool]] = []
            for key, verb, agent, at, payload, answer in journal.execute(
                "SELECT id, verb, agent, asked, payload, answer FROM request"
            ):
                if answer:
                    answers[key] = reply_of(json.loads(answer))
                said = json.loads(payload)
                asked.append((key, verb, agent or said.get("agent", ""), at, str(said.get("text", "")), answer is None))
        for person in self._people:
            for each in person.asked:
                if not each.command and each.way == "cli":
                    each.command = next((row[0] for row in asked if _is_this(each.word, row, each)), "")
                each.is_open = any(row[0] == each.command and row[5] for row in asked)
                if each.reply is None:
                    each.reply = answers.get(each.command)
                evidence.asked.append(each)

    def _read_witness(self) -> None:
        evidence, witness, stage = self._evidence, self._witness, self.stage
        evidence.events = {name: subscriber.events() for name, subscriber in witness.subscribers.items()}
        evidence.replies = witness.replies()
        last = {reply.command: reply for reply in evidence.replies}
        for asked in evidence.asked:
            if asked.reply is None:
                asked.reply = last.get(asked.command)
        evidence.unsound += [f"the subscriber {name} ended" for name in witness.ended_early]
        evidence.absences, evidence.acts = witness.absences, stage.acts
        evidence.lost_epochs = stage.lost_epochs
        evidence.registry_reads, evidence.status_reads = witness.registry_reads, witness.status_reads
        evidence.broken_reads = [
            (at, fault) for at, fault in witness.broken_reads if not _within(at, stage.registry_away)
        ]
        evidence.memory_mb = {name: [each.pss_mb for each in taken] for name, taken in witness.samples.items()}
        evidence.bad_status = witness.bad_status
        evidence.unsound += self._failures
        evidence.unsound += [f"{person.name}: {person.failure!r}" for person in self._people if person.failure]

    # --- the end ---

    def _down(self) -> list[str]:
        """`muster down --agents`; what is left after it."""
        self._tell("down")
        fleet = self.stage.fleet
        done = fleet.cli("down", "--agents", code=None)
        left = [] if done.returncode == 0 else [f"down --agents: rc {done.returncode}: {done.stderr[-500:]}"]
        for file in (fleet.fleet.home / "logs").glob("*.log*"):
            self._evidence.logs[file.name] = file.read_text(errors="replace")
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not list(self._of_fleet()), "nothing is left", 10.0)
        return left + [f"{p.pid} {p.name()} {' '.join(p.cmdline())[:200]}" for p in self._of_fleet()]

    def _of_fleet(self) -> Iterator[psutil.Process]:
        """Processes that name this fleet in their command line or environment."""
        marks = (str(self.stage.fleet.path), self.stage.fleet.socket)
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                words = [*process.cmdline(), *process.environ().values()]
                if any(mark in word for mark in marks for word in words) and not _is_ours(process):
                    yield process

    def _stopped(self) -> list[str]:
        return [f"{p.pid} {p.name()}" for p in self._of_fleet() if p.status() == psutil.STATUS_STOPPED]


def _is_ours(process: psutil.Process) -> bool:
    return process.pid == psutil.Process().pid or psutil.Process().pid in {p.pid for p in process.parents()}


def _is_this(word: str, row: tuple[str, str, str, float, str, bool], asked: object) -> bool:
    """Whether a request in the journal is the command of which only the words are known."""
    at, until = getattr(asked, "at", 0.0), getattr(asked, "until", 0.0)
    if word:
        return word in row[4]
    return row[1] == getattr(asked, "verb", "") and row[2] == getattr(asked, "agent", "") and at <= row[3] <= until


def _within(at: float, windows: list[tuple[float, float]]) -> bool:
    return any(began <= at <= ended for began, ended in windows)


def seen_in(events: dict[str, list[SeenEvent]]) -> int:
    """How many different events were seen."""
    return len({event.number for each in events.values() for event in each})
