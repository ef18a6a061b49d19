"""Wiring only."""

import sys

from registry import RegistryFile
from services.reconciler.service import Reconciler
from shared.process import Wiring, serve
from shared.tmux import Tmux


def build(wiring: Wiring) -> Reconciler:
    tmux = Tmux(wiring.fleet.declared.tmux.socket, on_change=wiring.nudge)
    return Reconciler(wiring.fleet_file, RegistryFile(wiring.fleet.registry), tmux, wiring.journal)


def main() -> int:
    return serve(Reconciler.name, build)


if __name__ == "__main__":
    sys.exit(main())
