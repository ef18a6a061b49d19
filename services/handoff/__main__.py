"""Wiring only."""

import atexit
import os
import sys

from registry import RegistryFile
from services.handoff.remotes.git import Git
from services.handoff.remotes.push_hints import PushHints
from services.handoff.remotes.watcher import RemoteWatcher
from services.handoff.service import Handoff
from shared.runtime.bootstrap import ServiceContext, serve


def build(wiring: ServiceContext) -> Handoff:
    mirrors = wiring.fleet.home / "mirrors"
    looker = RemoteWatcher(mirrors, Git(mirrors, os.environ), wiring.nudge, wiring.log)
    hints = PushHints(looker.look_now)
    looker.tidy()
    looker.begin()
    hints.begin()
    atexit.register(looker.close)
    wiring.fleet_file.watch(wiring.nudge)
    return Handoff(wiring.fleet_file, RegistryFile(wiring.fleet.registry), wiring.journal, looker, hints, wiring.log)


def main() -> int:
    return serve(Handoff.name, build)


if __name__ == "__main__":
    sys.exit(main())
