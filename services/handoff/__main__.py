"""Starts handoff."""

import atexit
import os
import sys

from registry import RegistryFile
from services.handoff.remotes.git import Git
from services.handoff.remotes.push_hints import PushHints
from services.handoff.remotes.watcher import RemoteWatcher
from services.handoff.service import Handoff
from shared.runtime.bootstrap import ServiceContext, serve


def build(context: ServiceContext) -> Handoff:
    mirrors = context.fleet.home / "mirrors"
    watcher = RemoteWatcher(mirrors, Git(mirrors, os.environ), context.nudge, context.log)
    hints = PushHints(watcher.ask_now)
    watcher.end_leftovers()
    watcher.begin()
    hints.begin()
    atexit.register(watcher.close)
    context.fleet_file.watch(context.nudge)
    return Handoff(context.fleet_file, RegistryFile(context.fleet.registry), context.journal, watcher, hints)


def main() -> int:
    return serve(Handoff.name, build)


if __name__ == "__main__":
    sys.exit(main())
