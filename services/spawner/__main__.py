"""Wiring only."""

import sys
from functools import partial

from registry import RegistryFile
from services.spawner.commands.sessions import SessionCommands
from services.spawner.service import Spawner
from services.spawner.sessions.conversations import ConversationRecords
from services.spawner.sessions.keeper import SessionKeeper
from services.spawner.sessions.output_logs import LogKeeper
from services.spawner.typing.keys import KeyPresses
from services.spawner.typing.queue import TypingQueue
from services.spawner.typing.texts import TextDelivery
from shared.runtime.bootstrap import ServiceContext, serve
from shared.system.tmux import Tmux

NOT_URGENT_S = 0.03
"""A notification of tmux waits so long: the reconciler, which publishes it, goes first, and a burst is one look."""


def build(context: ServiceContext) -> Spawner:
    fleet = context.fleet
    tmux = Tmux(fleet.declared.tmux.socket, on_change=partial(context.nudge, within_s=NOT_URGENT_S))
    context.fleet_file.watch(context.nudge)
    settings = fleet.declared.logs
    logs = LogKeeper(tmux, fleet.logs, max_bytes=int(settings.max_mb * 1_000_000), keep=settings.keep)
    records = ConversationRecords()
    keeper = SessionKeeper(tmux, logs.pipe_for, records, log=context.log)
    commands = SessionCommands(tmux, keeper, records.purge, records.is_silent)
    typing_queue = TypingQueue(TextDelivery(tmux, records), KeyPresses(tmux))
    registry = RegistryFile(fleet.registry)
    return Spawner(context.fleet_file, tmux, keeper, commands, typing_queue, logs, registry, context.log)


def main() -> int:
    return serve(Spawner.name, build)


if __name__ == "__main__":
    sys.exit(main())
