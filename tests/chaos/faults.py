"""What goes wrong: each fault is done, lasts, and is undone. `touches` are the parts that two faults can't share."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable

from shared.system.tmux.change_lock import ChangeLock, directory_of
from tests.chaos.stage import Stage

SERVICES = ("spawner", "reconciler", "registrar", "monitor", "handoff", "board")
LONG_FREEZE_S = (1.0, 10.0)
HOG = "import time\nend = time.monotonic() + {}\nwhile time.monotonic() < end: pass"


class ChaosFault(ABC):
    name: str
    weight: int = 1
    touches: frozenset[str] = frozenset()

    @abstractmethod
    def play(self, stage: Stage, chance: random.Random) -> None:
        """Do it, let it last, undo it."""


class ServiceKilled(ChaosFault):
    name, weight = "service killed", 8
    touches = frozenset({"services"})

    def play(self, stage: Stage, chance: random.Random) -> None:
        for service in chance.sample(SERVICES, chance.choice((1, 1, 1, 2, 6))):
            if stage.signal(service, signal.SIGKILL):
                stage.log(self.name, service)


class ServiceFrozen(ChaosFault):
    name, weight = "service frozen", 5
    touches = frozenset({"services"})

    def play(self, stage: Stage, chance: random.Random) -> None:
        service = chance.choice(SERVICES)
        frozen(stage, f"{self.name}: {service}", service, chance.uniform(*LONG_FREEZE_S))


class BrokerKilled(ChaosFault):
    name, weight = "broker killed", 4
    touches = frozenset({"broker"})

    def play(self, stage: Stage, chance: random.Random) -> None:
        if stage.signal("broker", signal.SIGKILL):
            stage.log(self.name)


class BrokerStopped(ChaosFault):
    name, weight = "broker stopped", 2
    touches = frozenset({"broker"})

    def play(self, stage: Stage, chance: random.Random) -> None:
        if stage.signal("broker", signal.SIGTERM):
            stage.log(self.name)


class BrokerFrozen(ChaosFault):
    name, weight = "broker frozen", 3
    touches = frozenset({"broker"})

    def play(self, stage: Stage, chance: random.Random) -> None:
        frozen(stage, self.name, "broker", chance.uniform(*LONG_FREEZE_S))


class BrokerFrozenAsItReturns(ChaosFault):
    name, weight = "broker killed, then frozen", 3
    touches = frozenset({"broker"})

    def play(self, stage: Stage, chance: random.Random) -> None:
        if stage.signal("broker", signal.SIGKILL):
            stage.log("broker killed")
            stage.last(chance.uniform(0.5, 4.0))
            frozen(stage, self.name, "broker", chance.uniform(3.0, 8.0))


class BrokerWiped(ChaosFault):
    """Killed and its disk lost, while nobody starts it again."""

    name, weight = "broker wiped", 2
    touches = frozenset({"broker", "supervisor"})

    def play(self, stage: Stage, chance: random.Random) -> None:
        supervisor = stage.signal("supervisor", signal.SIGSTOP)
        if supervisor is None:
            return
        with stage.lasting(self.name):
            try:
                stage.signal("broker", signal.SIGKILL)
                stage.last(chance.uniform(0.2, 6.0))
                for file in (stage.fleet.fleet.home / "broker" / "data").glob("*"):
                    file.unlink(missing_ok=True)
            finally:
                resumed([supervisor])


class TmuxKilled(ChaosFault):
    name, weight = "tmux server killed", 2
    touches = frozenset({"tmux"})

    def play(self, stage: Stage, chance: random.Random) -> None:
        pid = stage.tmux_pid()
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            stage.log(self.name)


class TmuxFrozen(ChaosFault):
    name, weight = "tmux frozen", 2
    touches = frozenset({"tmux"})

    def play(self, stage: Stage, chance: random.Random) -> None:
        pid = stage.tmux_pid()
        if pid is None:
            return
        with stage.lasting(self.name):
            with ChangeLock(directory_of(stage.fleet.socket)).connecting():
                os.kill(pid, signal.SIGSTOP)
            try:
                stage.last(chance.uniform(1.0, 6.0))
            finally:
                resumed([pid])


class SessionKilled(ChaosFault):
    name, weight = "session killed by hand", 8
    touches = frozenset({"tmux"})

    def play(self, stage: Stage, chance: random.Random) -> None:
        there = [agent for agent in stage.sessions() if agent in stage.cast.killed]
        for agent in chance.sample(sorted(there), min(len(there), chance.choice((1, 1, 2, 5)))):
            stage.log(self.name, agent)
            stage.tmux("kill-session", "-t", f"={agent}")


class AgentKilled(ChaosFault):
    name, weight = "agent killed", 8
    touches = frozenset({"tmux"})

    def play(self, stage: Stage, chance: random.Random) -> None:
        there = {agent: pid for agent, pid in stage.sessions().items() if agent in stage.cast.killed}
        for agent in chance.sample(sorted(there), min(len(there), chance.choice((1, 1, 2, 5)))):
            stage.log(self.name, agent)
            with contextlib.suppress(ProcessLookupError):
                os.kill(there[agent], signal.SIGKILL)


class SupervisorKilled(ChaosFault):
    name, weight = "supervisor killed", 1
    touches = frozenset({"supervisor", "services", "broker"})

    def play(self, stage: Stage, chance: random.Random) -> None:
        if stage.signal("supervisor", signal.SIGKILL):
            with stage.lasting(self.name):
                stage.last(chance.uniform(0.0, 5.0))
                stage.up()


class FleetDown(ChaosFault):
    name, weight = "fleet down", 1
    touches = frozenset({"supervisor", "services", "broker"})

    def play(self, stage: Stage, chance: random.Random) -> None:
        with stage.lasting(self.name):
            stage.fleet.cli("down", code=None)
            stage.last(chance.uniform(0.0, 4.0))
            stage.up()


class FleetUpAndDown(ChaosFault):
    name, weight = "fleet up and down at once", 1
    touches = frozenset({"supervisor", "services", "broker"})

    def play(self, stage: Stage, chance: random.Random) -> None:
        words = [sys.executable, "-P", "-m", "services.cli", "--fleet", str(stage.fleet.path)]
        environment = {k: v for k, v in os.environ.items() if k != "TMUX"}
        with stage.lasting(self.name):
            both = []
            for verb in chance.sample(("down", "up"), 2):
                both.append(
                    subprocess.Popen(
                        [*words, verb],
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        env=environment,
                    )
                )
                stage.last(chance.uniform(0.0, 0.5))
            for process in both:
                process.wait(120)
            stage.up()


class JournalRemoved(ChaosFault):
    name, weight = "journal removed", 1
    touches = frozenset({"journal", "registry", "services"})

    def play(self, stage: Stage, chance: random.Random) -> None:
        stage.note_lost_journal()
        for path in stage.fleet.fleet.home.glob("journal.db*"):
            path.unlink(missing_ok=True)
        stage.log(self.name)
        stage.last(15.0)  # the registry is the only copy until it is told again


class JournalMoved(ChaosFault):
    """Only the file, as a person does: its side files stay."""

    name, weight = "journal moved", 1
    touches = frozenset({"journal", "registry", "services"})

    def play(self, stage: Stage, chance: random.Random) -> None:
        stage.note_lost_journal()
        with contextlib.suppress(FileNotFoundError):
            stage.fleet.fleet.journal.rename(stage.directory / f"moved-{time.time():.0f}")
        stage.log(self.name)
        stage.last(15.0)


class JournalDamaged(ChaosFault):
    """Found damaged at a start."""

    name, weight = "journal damaged", 1
    touches = frozenset({"journal", "registry", "services", "supervisor", "broker"})

    def play(self, stage: Stage, chance: random.Random) -> None:
        began = time.time()
        stage.fleet.cli("down", code=None)
        stage.log("fleet down", since=began)
        stage.note_lost_journal()
        with contextlib.suppress(FileNotFoundError), stage.fleet.fleet.journal.open("r+b") as file:
            file.write(chance.randbytes(8192))
        stage.log(self.name)
        stage.up()
        stage.last(15.0)


class RegistryRemoved(ChaosFault):
    name, weight = "registry removed", 2
    touches = frozenset({"registry"})

    def play(self, stage: Stage, chance: random.Random) -> None:
        began = time.time()
        stage.fleet.fleet.registry.unlink(missing_ok=True)
        stage.log(self.name)
        while not stage.fleet.fleet.registry.exists() and time.time() < began + 60:
            time.sleep(0.05)
        stage.registry_away.append((began, time.time()))


class RegistryBroken(ChaosFault):
    name, weight = "registry broken, then mended", 2
    touches = frozenset({"registry"})

    def play(self, stage: Stage, chance: random.Random) -> None:
        file = stage.fleet.fleet.registry
        with contextlib.suppress(FileNotFoundError), stage.lasting(self.name):
            good = file.read_bytes()
            broken = good.replace(b"\nagents:", b"\nagents: {a: [", 1)
            stage.written.add(broken)
            file.write_bytes(broken)
            began = time.time()
            stage.last(chance.uniform(0.5, 6.0))
            file.write_bytes(good)
            stage.registry_away.append((began - 0.5, time.time() + 0.5))


class FleetFileBroken(ChaosFault):
    name, weight = "fleet file broken, then mended", 2
    touches = frozenset({"fleet file", "supervisor"})

    def play(self, stage: Stage, chance: random.Random) -> None:
        good = stage.fleet.path.read_text()
        with stage.lasting(self.name):
            try:
                stage.fleet.path.write_text(chance.choice((good[: len(good) // 2], "agents: [", "agnets: {}\n" + good)))
                stage.last(chance.uniform(0.5, 6.0))
            finally:
                stage.fleet.path.write_text(good)


class ProcessorHog(ChaosFault):
    name, weight = "processor hog", 1

    def play(self, stage: Stage, chance: random.Random) -> None:
        with stage.lasting(self.name):
            process = subprocess.Popen([sys.executable, "-c", HOG.format(chance.uniform(2.0, 8.0))])
            process.wait(120)


FAULTS: tuple[type[ChaosFault], ...] = (
    ServiceKilled,
    ServiceFrozen,
    BrokerKilled,
    BrokerStopped,
    BrokerFrozen,
    BrokerFrozenAsItReturns,
    BrokerWiped,
    TmuxKilled,
    TmuxFrozen,
    SessionKilled,
    AgentKilled,
    SupervisorKilled,
    FleetDown,
    FleetUpAndDown,
    JournalRemoved,
    JournalMoved,
    JournalDamaged,
    RegistryRemoved,
    RegistryBroken,
    FleetFileBroken,
    ProcessorHog,
)
"""A fault of another kind, a jump of the clock say, is one more class here."""


def frozen(stage: Stage, fault: str, program: str, seconds: float) -> None:
    pid = stage.signal(program, signal.SIGSTOP)
    if pid is None:
        return
    with stage.lasting(fault):
        try:
            stage.last(seconds)
        finally:
            resumed([pid])


def resumed(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
