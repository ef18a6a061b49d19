"""A stand-in for a coding agent: works a little, waits a little, answers what is typed. Needs nothing but Python."""

import random
import select
import sys
import time

STEPS = ("reading the code", "thinking", "editing", "running the tests", "writing a commit message")


def main() -> None:
    agent, prompt = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    print(f"demo agent {agent}" + (f": {prompt}" if prompt else ""), flush=True)
    chance = random.Random(agent)  # noqa: S311 - the same agent tells the same story each time
    while True:
        print(f"* {chance.choice(STEPS)} ...", flush=True)
        deadline = time.monotonic() + chance.uniform(1.0, 4.0)
        while (left := deadline - time.monotonic()) > 0:
            if select.select([sys.stdin], [], [], left)[0]:
                line = sys.stdin.readline()
                if not line or line.strip() == "exit":
                    return
                print(f"> heard: {line.strip()}", flush=True)


if __name__ == "__main__":
    main()
