"""`python -m shared.agents`: what the profiles say, as JSON; `--write` keeps it beside them."""

import sys

from shared.fleet.profiles import READ, render
from shared.generated import publish

if __name__ == "__main__":
    said = "Print what the profiles of the agent programs say, without their samples, as JSON."
    sys.exit(publish(READ, render(), prog="python -m shared.agents", description=said))
