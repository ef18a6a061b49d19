"""Starts the reconciler: as a service, or for one run."""

import sys

from registry import RegistryFile
from services.reconciler.service import Reconciler
from services.reconciler.single_run import run_dry, run_once
from shared.runtime.bootstrap import ServiceContext, parser_for, serve_fleet
from shared.system.lock import holder
from shared.system.tmux import Tmux


def build(context: ServiceContext) -> Reconciler:
    tmux = Tmux(context.fleet.declared.tmux.socket, on_change=context.nudge)
    registry, lock = RegistryFile(context.fleet.registry), context.fleet.home / "run" / "spawner.lock"
    return Reconciler(
        context.fleet_file, registry, tmux, context.journal, spawner_lives=lambda: holder(lock) is not None
    )


def main() -> int:
    parser = parser_for(Reconciler.name)
    parser.add_argument("--once", action="store_true", help="look once, tell what is new, print all that differs")
    parser.add_argument("--dry-run", action="store_true", help="look once and print it, and write nothing")
    options = parser.parse_args()
    if options.dry_run:
        return run_dry(options.fleet)
    if options.once:
        return run_once(options.fleet, build)
    return serve_fleet(options.fleet, Reconciler.name, build)


if __name__ == "__main__":
    sys.exit(main())
