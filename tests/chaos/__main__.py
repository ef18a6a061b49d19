"""Random faults on a real fleet:

    python -m tests.chaos --seconds 600 --seed 1

Prints what was done and what came of it. Ends with 1, and keeps the directory, if a promise was broken.
"""

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

from tests.chaos.campaign import Campaign
from tests.chaos.promises import broken
from tests.chaos.report import report


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Random faults on a real fleet.")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long faults are played (default 600)")
    parser.add_argument("--seed", type=int, help="the same seed draws the same faults (default: a new one)")
    parser.add_argument("--agents", type=int, default=22, help="how many agents, at least 12 (default 22)")
    parser.add_argument("--people", type=int, default=3, help="how many people act at once (default 3)")
    parser.add_argument("--keep", action="store_true", help="keep the directory also if all went well")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(1_000_000)
    directory = Path(tempfile.mkdtemp(prefix="muster-chaos-"))
    print(f"seed {seed}, in {directory}", flush=True)
    with (directory / "timeline").open("w", buffering=1) as timeline:
        campaign = Campaign(
            directory, seed, options.agents, options.people, lambda line: print(line, file=timeline, flush=True)
        )
        evidence = campaign.run(options.seconds)
    findings = broken(evidence)
    said = report(evidence, findings, campaign.played)
    (directory / "report").write_text(said)
    print(said)
    if findings:
        print(f"seed {seed}; all of it is in {directory}")
    elif not options.keep:
        shutil.rmtree(directory)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
