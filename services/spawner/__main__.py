"""Wiring only."""

import sys
from functools import partial
from typing import TypeVar

from registry import RegistryFile
from services.spawner.commands.sessions import SessionCommands
from services.spawner.service import Spawner
from services.spawner.sessions.conversations import ConversationRecords
from services.spawner.sessions.keeper import SessionKeeper
from services.spawner.sessions.output_logs import LogKeeper
from services.spawner.single_run import EndingSpawner, end_sessions_alone
from services.spawner.typing.keys import KeyPresses
from services.spawner.typing.queue import TypingQueue
from services.spawner.typing.texts import TextDelivery
from shared.runtime.bootstrap import ServiceContext, parser_for, serve_fleet
from shared.system.tmux import Tmux

Kind = TypeVar("Kind", bound=Spawner)
NOT_URGENT_S = 0.03
"""A notification of tmux waits so long: the reconciler, which publishes it, goes first, and a burst is one look."""


def build(context: ServiceContext, kind: type[Kind]) -> Kind:
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
    return kind(context.fleet_file, tmux, keeper, commands, typing_queue, logs, registry, context.log)


def main() -> int:
    parser = parser_for(Spawner.name)
    parser.add_argument("--end-sessions", action="store_true", help="end all sessions for `muster down`, then end")
    options = parser.parse_args()
    if options.end_sessions:
        return end_sessions_alone(options.fleet, partial(build, kind=EndingSpawner))
    return serve_fleet(options.fleet, Spawner.name, partial(build, kind=Spawner))


if __name__ == "__main__":
    sys.exit(main())
