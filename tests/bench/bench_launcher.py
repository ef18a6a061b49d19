"""What `./muster` costs beyond the Python that it starts: `python -m tests.bench.bench_launcher`.

Both are timed in turn in the same run, so that a busy machine slows both; the figures are medians.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 20
ALLOWED_MS = 100.0


def took_ms(command: Sequence[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - began) * 1000


def main() -> int:
    launcher = [str(ROOT / "muster"), "--version"]
    took_ms(launcher)  # sets up what is missing
    environment = (ROOT / ".venv" / "bin" / "python").as_posix()
    direct = [environment, "-P", "-m", "services.cli", "--version"]
    took_ms(direct)
    rounds = [(took_ms(launcher), took_ms(direct)) for _ in range(ROUNDS)]
    with_launcher = statistics.median(first for first, _ in rounds)
    without = statistics.median(second for _, second in rounds)
    overhead = with_launcher - without
    print(f"./muster --version        {with_launcher:7.1f} ms")
    print(f"python -m services.cli    {without:7.1f} ms")
    print(f"ratio {with_launcher / without:.3f}, overhead {overhead:.1f} ms (allowed {ALLOWED_MS:.0f} ms)")
    return 0 if overhead < ALLOWED_MS else 1


if __name__ == "__main__":
    sys.exit(main())
