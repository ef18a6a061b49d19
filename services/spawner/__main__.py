"""Wiring only."""

import sys

from services.spawner.service import Spawner
from shared.process import Wiring, serve
from shared.tmux import Tmux


def build(wiring: Wiring) -> Spawner:
    tmux = Tmux(wiring.fleet.declared.tmux.socket, on_change=wiring.nudge)
    return Spawner(wiring.fleet_file, tmux, wiring.log)


def main() -> int:
    return serve(Spawner.name, build)


if __name__ == "__main__":
    sys.exit(main())
