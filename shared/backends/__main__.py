"""`python -m shared.backends`: what the data files here say, as JSON; `--write` keeps it beside them."""

import sys

from shared.fleet.shipped import READ, render
from shared.generated import publish

if __name__ == "__main__":
    said = "Print what the data files of the backends say, without their samples, as JSON."
    sys.exit(publish(READ, render(), prog="python -m shared.backends", description=said))
