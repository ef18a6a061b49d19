"""What a hook costs an agent's tool call, against a bare Python: `python -m tests.bench.bench_hook`.

All are timed in turn in the same run, so that a busy machine slows all alike; the figures are medians. The budget is
for the program; the shell around it is the agent's, and is shown as well.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from shared.agents.hooks.command import PROGRAM, interpreter, spawned
from shared.agents.hooks.spool import Spool

ROUNDS = 150
ALLOWED = 2.0
PAYLOAD = json.dumps(
    {
        "session_id": "0b63f6a2-5a0c-4c47-9f70-0d6a1c1f6c55",
        "hook_event_name": "PostToolUse",
        "tool_name": "Write",
        "tool_input": {"file_path": "src/thing.py", "content": "x = 1\n" * 500},
    }
).encode()


def took_ms(command: Sequence[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, input=PAYLOAD, capture_output=True, check=True)
    return (time.perf_counter() - began) * 1000


def main() -> int:
    python = interpreter()
    with tempfile.TemporaryDirectory() as room:
        spool = Spool(Path(room) / "hooks")
        spool.prepare()
        directory = str(spool.directory)
        commands = {
            "python -I -S -c pass": [python, "-I", "-S", "-c", "pass"],
            "hook": [python, "-I", "-S", str(PROGRAM), directory],
            "hook through sh": ["/bin/sh", "-c", spawned(spool.directory)],
            "sh -c :": ["/bin/sh", "-c", ":"],
        }
        end = spool.listen(lambda: None)
        try:
            rounds = [{name: took_ms(command) for name, command in commands.items()} for _ in range(ROUNDS)]
        finally:
            end()
        laid = len(spool.read(at_most=10 * ROUNDS))
    median = {name: statistics.median(each[name] for each in rounds) for name in commands}
    for name, ms in median.items():
        print(f"{name:22} {ms:6.2f} ms")
    ratio = median["hook"] / median["python -I -S -c pass"]
    print(f"ratio {ratio:.2f} (allowed {ALLOWED:g}); {laid} of {2 * ROUNDS} payloads arrived")
    return 0 if ratio <= ALLOWED and laid == 2 * ROUNDS else 1


if __name__ == "__main__":
    sys.exit(main())
