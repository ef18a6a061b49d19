"""Commands that `mosquitto_pub` was told are accepted, by a broker that is killed again and again: how many are lost.

`python -m tests.bench.bench_accepted [--commands 600] [--seed 1]`. Each command is published with QoS 1 by a
`mosquitto_pub` of its own, and counts as accepted when that ends with 0, which is after the PUBACK. It arrived if its
owner, a service in the real loop, has it in its journal. The baseline is what a `mosquitto_sub -c -q 1`, which tries to
reconnect once a second, misses of the same commands. Budget: at most half of that.

`--saving 'autosave_interval 1\nautosave_on_changes true'` measures other lines of mosquitto.conf too.
"""

import argparse
import json
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from shared.fleet import Fleet, load_fleet
from shared.messaging.broker import BrokerKind, credentials
from shared.messaging.broker.preparation import prepare
from shared.messaging.broker.program import find_program
from tests.fixtures.broker import wait_until
from tests.fixtures.talk_process import process

BUDGET = 0.5
LIVES_S, DOWN_S = (0.1, 1.5), (0.0, 0.4)
PAUSE_S = 0.05


@dataclass(frozen=True)
class Outcome:
    accepted: int
    lost: int
    missed: int
    """By the baseline's reader."""
    kills: int

    def __str__(self) -> str:
        return (
            f"{self.kills} kills: of {self.accepted} accepted commands {self.lost} were lost"
            f" ({self.lost / self.accepted:.1%}); mosquitto_sub missed {self.missed}"
        )


class KilledBroker:
    """mosquitto with our configuration, or with other lines about saving."""

    def __init__(self, home: Path, port: int, argv: list[str]) -> None:
        self._home, self.port, self._argv = home, port, argv
        self._running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._running = subprocess.Popen(self._argv, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        if self._running is not None:
            self._running.kill()
            self._running.wait()

    def is_saved(self) -> bool:
        """Whether the sessions are in the file: before that a restarted broker knows nobody."""
        saved = self._home / "broker" / "data" / "mosquitto.db"
        return saved.exists() and all(each in saved.read_bytes() for each in (b"command/+", b"command/unpark"))


@contextmanager
def killed_broker(directory: Path, saving: str | None) -> Iterator[tuple[Fleet, KilledBroker]]:
    directory.mkdir()
    path = directory / "fleet.yaml"
    path.write_text("host: box\n")
    fleet = load_fleet(path)
    prepared = prepare(fleet.home, fleet.space, websocket_port=0, program=find_program({"MUSTER_BROKER": "mosquitto"}))
    assert prepared.kind is BrokerKind.MOSQUITTO
    if saving is not None:
        conf = fleet.home / "broker" / "mosquitto.conf"
        lines = conf.read_text().splitlines(keepends=True)
        conf.write_text("".join(line for line in lines if not line.startswith("autosave_")) + saving)
    path.write_text(f"host: box\nbroker: {{endpoints: ['{prepared.endpoint}']}}\n")
    broker = KilledBroker(fleet.home, prepared.endpoint.port, prepared.argv)
    broker.start()
    try:
        yield load_fleet(path), broker
    finally:
        broker.kill()


def publish(fleet: Fleet, port: int, command_id: str) -> bool:
    """Whether mosquitto_pub was told that the command is accepted."""
    user, password = credentials(fleet.home, "operator")
    argv = ["mosquitto_pub", "-p", str(port), "-u", user, "-P", password, "-q", "1", "-t", "muster/box/command/unpark"]
    payload = json.dumps({"account": "acme", "id": command_id})
    try:
        return subprocess.run([*argv, "-m", payload], capture_output=True, timeout=10, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def stored(fleet: Fleet) -> set[str]:
    with closing(sqlite3.connect(fleet.journal)) as connection:
        return {name for (name,) in connection.execute("SELECT id FROM request")}


@contextmanager
def subscribed(fleet: Fleet, port: int, output: Path) -> Iterator[None]:
    user, password = credentials(fleet.home, "viewer")
    argv = ["mosquitto_sub", "-p", str(port), "-u", user, "-P", password, "-i", "baseline", "-c", "-q", "1"]
    with output.open("wb") as out:
        running = subprocess.Popen([*argv, "-t", "muster/box/command/unpark"], stdout=out, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        running.kill()
        running.wait()


def heard(output: Path) -> set[str]:
    return {str(json.loads(line)["id"]) for line in output.read_text().splitlines() if line.endswith("}")}


def measure(directory: Path, saving: str | None, commands: int, seed: int) -> Outcome:
    chance, kills, sent = random.Random(seed), 0, dict[str, Future[bool]]()
    with (
        killed_broker(directory, saving) as (fleet, broker),
        process(fleet, "talker", TELL="0", PER_TURN="1"),
        subscribed(fleet, broker.port, directory / "heard"),
        ThreadPoolExecutor(8) as pool,
    ):
        wait_until(broker.is_saved, "both sessions are saved")
        dies_at = time.monotonic() + chance.uniform(*LIVES_S)
        while len(sent) < commands or sum(each.done() and each.result() for each in sent.values()) < commands:
            name = f"c{len(sent)}"
            sent[name] = pool.submit(publish, fleet, broker.port, name)
            time.sleep(PAUSE_S)
            if time.monotonic() >= dies_at:
                broker.kill()
                kills += 1
                time.sleep(chance.uniform(*DOWN_S))
                broker.start()
                dies_at = time.monotonic() + chance.uniform(*LIVES_S)
        accepted = {name for name, each in sent.items() if each.result()}
        probe = "at-the-end"
        wait_until(lambda: publish(fleet, broker.port, probe), "the broker takes one more")
        wait_until(lambda: probe in stored(fleet), "the owner has what was sent last")
        wait_until(lambda: probe in heard(directory / "heard"), "mosquitto_sub has it too")
        lost, missed = accepted - stored(fleet), accepted - heard(directory / "heard")
        return Outcome(len(accepted), len(lost), len(missed), kills)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--commands", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--saving", help="lines of mosquitto.conf to measure too; \\n between them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        ours = measure(Path(directory) / "ours", None, options.commands, options.seed)
        print(f"as shipped, {ours}")
        if options.saving:
            lines = options.saving.replace("\\n", "\n") + "\n"
            print(f"{options.saving}, {measure(Path(directory) / 'other', lines, options.commands, options.seed)}")
    if not ours.missed:
        print("the baseline missed nothing: ask for more commands")
        return 1
    ratio = ours.lost / ours.missed
    print(f"lost by the owner / missed by mosquitto_sub: {ratio:.2f} (budget <= {BUDGET:g})")
    return 0 if ratio <= BUDGET else 1


if __name__ == "__main__":
    sys.exit(main())
