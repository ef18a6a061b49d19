"""Wiring only."""

import atexit
import os
import sys

from registry import RegistryFile
from services.handoff.looking.git import Git
from services.handoff.looking.hints import Hints
from services.handoff.looking.looker import Looker
from services.handoff.service import Handoff
from shared.process import Wiring, serve


def build(wiring: Wiring) -> Handoff:
    mirrors = wiring.fleet.home / "mirrors"
    looker = Looker(mirrors, Git(mirrors, os.environ), wiring.nudge)
    hints = Hints(looker.look_now)
    looker.tidy()
    looker.begin()
    hints.begin()
    atexit.register(looker.close)
    wiring.fleet_file.watch(wiring.nudge)
    return Handoff(wiring.fleet_file, RegistryFile(wiring.fleet.registry), wiring.journal, looker, hints, wiring.log)


if __name__ == "__main__":
    sys.exit(serve(Handoff.name, build))
