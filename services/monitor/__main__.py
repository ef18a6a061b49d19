"""Builds the monitor and runs it."""

import atexit
import sys
from functools import partial

from registry import RegistryFile
from services.monitor.health.query_runner import QueryRunner
from services.monitor.service import Monitor
from shared.agents.hooks.spool import Spool
from shared.runtime.bootstrap import ServiceContext, serve
from shared.system.tmux import Tmux

NOT_URGENT_S = 0.1
"""A notification of tmux waits so long: the reconciler, which publishes it, goes first, and a burst is one look."""
HOOKS_GATHER_S = 0.05
"""Agents at work call hooks all the time: the calls of this long are taken in one turn."""


def build(context: ServiceContext) -> Monitor:
    tmux = Tmux(context.fleet.declared.tmux.socket, on_change=partial(context.nudge, NOT_URGENT_S))
    spool = Spool(
        context.fleet.home / "hooks", lambda said: context.log.warning("a hook could not be heard", reason=said)
    )
    spool.listen(lambda: context.nudge(HOOKS_GATHER_S))
    queries = QueryRunner(context.fleet.home / "peeks", context.nudge, context.log)
    queries.tidy()
    atexit.register(queries.close)
    registry = RegistryFile(context.fleet.registry)
    return Monitor(context.fleet_file, registry, tmux, context.journal, spool, queries)


def main() -> int:
    return serve(Monitor.name, build)


if __name__ == "__main__":
    sys.exit(main())
