"""`python -m shared.agents` prints the profiles as JSON; `--write` stores it beside them."""

import sys

from shared.fleet.profiles import STORED, render
from shared.generated import publish

if __name__ == "__main__":
    description = "Print what the profiles of the agent programs say, without their samples, as JSON."
    sys.exit(publish(STORED, render(), prog="python -m shared.agents", description=description))
