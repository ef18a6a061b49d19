"""Wiring only."""

import sys

from registry import RegistryFile
from services.reconciler.once import look_dryly, look_once
from services.reconciler.service import Reconciler
from shared.runtime.bootstrap import ServiceContext, parser_for, serve_fleet
from shared.system.tmux import Tmux


def build(wiring: ServiceContext) -> Reconciler:
    tmux = Tmux(wiring.fleet.declared.tmux.socket, on_change=wiring.nudge)
    return Reconciler(wiring.fleet_file, RegistryFile(wiring.fleet.registry), tmux, wiring.journal)


def main() -> int:
    parser = parser_for(Reconciler.name)
    parser.add_argument("--once", action="store_true", help="look once, tell what is new, print all that differs")
    parser.add_argument("--dry-run", action="store_true", help="look once and print it, and write nothing")
    options = parser.parse_args()
    if options.dry_run:
        return look_dryly(options.fleet)
    if options.once:
        return look_once(options.fleet, build)
    return serve_fleet(options.fleet, Reconciler.name, build)


if __name__ == "__main__":
    sys.exit(main())
