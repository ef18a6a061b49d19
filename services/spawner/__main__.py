"""Wiring only."""

import sys
from functools import partial

from services.spawner.carrying_out import SessionCommands
from services.spawner.keeping import Keeper
from services.spawner.logs import LogKeeper
from services.spawner.presses import Presses
from services.spawner.records import Records
from services.spawner.service import Spawner
from services.spawner.texts import Texts
from services.spawner.typist import Typist
from shared.process import Wiring, serve
from shared.tmux import Tmux

NOT_URGENT_S = 0.03
"""What tmux tells is seldom for the spawner: who tells people of it goes first, and a burst of it is one look."""


def build(wiring: Wiring) -> Spawner:
    fleet = wiring.fleet
    tmux = Tmux(fleet.declared.tmux.socket, on_change=partial(wiring.nudge, within_s=NOT_URGENT_S))
    wiring.fleet_file.watch(wiring.nudge)
    settings = fleet.declared.logs
    logs = LogKeeper(tmux, fleet.logs, max_bytes=int(settings.max_mb * 1_000_000), keep=settings.keep)
    records = Records()
    keeper = Keeper(tmux, logs.path_for, records.conversation, log=wiring.log)
    commands = SessionCommands(tmux, keeper, records.purge)
    typist = Typist(Texts(tmux, records), Presses(tmux))
    return Spawner(wiring.fleet_file, tmux, keeper, commands, typist, logs, wiring.log)


def main() -> int:
    return serve(Spawner.name, build)


if __name__ == "__main__":
    sys.exit(main())
