"""`send` published → submitted and confirmed, idle demo agent, against paste and Enter by bare tmux, the two in turn.

The bare way types into an agent of the same kind and is done when the text is seen on its screen.
Run: python -m tests.bench.bench_send [--times 30] [--hog]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from tests.fixtures.broker import Client, wait_until
from tests.fixtures.fleet import RunningFleet

BUDGET = 5.0
WITHIN_S = 30.0


def send(operator: Client, text: str) -> float:
    """Seconds from the command to its final reply."""
    began = time.perf_counter()
    operator.publish("muster/box/command/send", json.dumps({"agent": "ours", "text": text}).encode())
    while True:
        replies = [json.loads(message.payload) for message in operator.received if "/reply/" in message.topic]
        if final := [reply for reply in replies if reply.get("final", True)]:
            break
        if time.perf_counter() - began > WITHIN_S:
            raise TimeoutError(f"no final reply within {WITHIN_S:g} s; the last one was {replies[-1:]}")
        time.sleep(0.0002)
    took = time.perf_counter() - began
    assert final[0]["ok"], final[0]
    operator.received.clear()
    return took


def bare(socket: str, text: str) -> float:
    def tmux(*words: str) -> str:
        return subprocess.run(["tmux", "-L", socket, *words], check=True, capture_output=True, text=True).stdout

    began = time.perf_counter()
    tmux("set-buffer", "-b", "bench", "--", text)
    tmux("paste-buffer", "-p", "-d", "-b", "bench", "-t", "=theirs:")
    while f"› {text}" not in tmux("capture-pane", "-p", "-t", "=theirs:"):
        pass
    tmux("send-keys", "-t", "=theirs:", "Enter")
    while f"> heard: {text}" not in tmux("capture-pane", "-p", "-t", "=theirs:"):
        pass
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--hog", action="store_true", help="keep one core busy beside it")
    options = parser.parse_args()
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        fleet = RunningFleet(Path(directory), {"ours": {}, "theirs": {}})
        stack.callback(fleet.end)
        fleet.up()
        if options.hog:
            hog = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(hog.wait)
            stack.callback(hog.kill)
        operator = fleet.client("operator")
        operator.subscribe("muster/box/reply/+")
        for number in range(options.times):
            wait_until(lambda: {each.activity for each in fleet.records().values()} == {"waiting"}, "both are idle")
            ours.append(send(operator, f"echo number {number}"))
            theirs.append(bare(fleet.socket, f"echo number {number}"))
    ratio = median(ours) / median(theirs)
    verdict = "within" if ratio <= BUDGET else "OVER"
    print(
        f"send to its confirmed reply, median of {options.times}: {median(ours) * 1000:.0f} ms;"
        f" bare tmux {median(theirs) * 1000:.0f} ms; ratio {ratio:.1f}, {verdict} the budget of {BUDGET:g}"
    )


if __name__ == "__main__":
    main()
