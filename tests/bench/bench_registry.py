"""One change among many sessions, on disk, against ruamel's load, change and dump; and a full load against ruamel's.

Run: python -m tests.bench.bench_registry [--sessions 1000] [--rounds 15]
"""

import argparse
import io
import os
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from ruamel.yaml import YAML

from registry import AgentRecord, RegistryFile
from shared.contract.states import Desired, Status

CHANGE_BUDGET = 200
LOAD_BUDGET_MS = 100.0
BASELINE_ROUNDS = 3
NOW = datetime(2030, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)


def record(place: int, pid: int) -> AgentRecord:
    return AgentRecord(
        status=Status.RUNNING,
        desired=Desired.RUNNING,
        since=NOW,
        reason=f"spawned for job {place}",
        role="worker",
        backend="claude",
        workspace=f"/home/ann/work/project-{place}",
        session=f"agent-{place}",
        pane=f"%{place}",
        pid=pid,
        command="claude",
        spawn=f"01j5k{place:06d}abcdefgh",
        conversation=f"{place:08x}-1234-4abc-9def-0123456789ab",
        transcript=f"/home/ann/.claude/projects/-home-ann-work-project-{place}/{place}.jsonl",
        parent="lead",
        level=2,
        job=f"job-{place}",
        started=NOW,
    )


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def change_by_ruamel(path: Path, agent: str) -> None:
    """The same change as people would write it: a whole reading, a whole dump, an atomic and durable replacement."""
    yaml = YAML(typ="rt")
    document = yaml.load(path.read_text())
    document["agents"][agent]["pid"] += 1
    text = io.StringIO()
    yaml.dump(document, text)
    fresh = path.with_suffix(".new")
    with fresh.open("w") as file:
        file.write(text.getvalue())
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def compare(directory: Path, count: int, rounds: int) -> None:
    path = directory / "registry.yaml"
    file = RegistryFile(path)
    file.write({f"agent-{place}": record(place, 1000 + place) for place in range(count)})
    agent, place = f"agent-{count // 2}", count // 2
    ours = sorted(seconds(lambda pid=pid: file.write({agent: record(place, pid)})) for pid in range(rounds))  # type: ignore[misc]
    load = median(seconds(RegistryFile(path).records) for _ in range(rounds))
    theirs_path = directory / "theirs.yaml"
    theirs_path.write_bytes(path.read_bytes())
    theirs = median(seconds(lambda: change_by_ruamel(theirs_path, agent)) for _ in range(BASELINE_ROUNDS))
    text = path.read_text()
    their_load = median(seconds(lambda: YAML(typ="rt").load(text)) for _ in range(BASELINE_ROUNDS))
    ratio = theirs / median(ours)
    verdict = "within" if ratio >= CHANGE_BUDGET else "OVER"
    print(
        f"one change in {count} sessions ({len(text) // 1024} KB), on disk: median {median(ours) * 1000:.1f} ms, "
        f"worst {ours[-1] * 1000:.1f} ms; by ruamel {theirs * 1000:.0f} ms; "
        f"ratio 1/{ratio:.0f}, {verdict} the budget of 1/{CHANGE_BUDGET}"
    )
    verdict = "within" if load * 1000 <= LOAD_BUDGET_MS else "OVER"
    print(
        f"full load of {count} sessions: {load * 1000:.1f} ms; by ruamel {their_load * 1000:.0f} ms; "
        f"ratio 1/{their_load / load:.0f}, {verdict} the budget of {LOAD_BUDGET_MS:.0f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as directory:
        compare(Path(directory), options.sessions, options.rounds)


if __name__ == "__main__":
    main()
