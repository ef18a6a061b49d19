"""One run for `muster down`, when no other spawner can do it: it ends all sessions, starts nothing, and ends itself."""

import os
from collections.abc import Callable
from contextlib import suppress

from services.spawner.service import Spawner
from shared.contract.commands import Reply, StopAll
from shared.contract.ids import new_id
from shared.messaging.intake import request_of
from shared.runtime.bootstrap import ServiceContext, serve_fleet
from shared.runtime.turn import PendingCommand, Turn

NOT_ENDED = 1


class EndingSpawner(Spawner):
    """Carries out a `stop_all` of its parent process, and nothing else."""

    answer: Reply | None = None
    _request_id = ""

    def step(self, turn: Turn) -> None:
        self._request_id = self._request_id or new_id()
        command = StopAll(id=self._request_id, for_now=True, down=os.getppid(), by="muster down")
        view = self._look(turn)
        request = request_of(view.fleet.space, command, turn.now.timestamp())  # not stored: it is for this run only
        self._commands.carry_out(view, PendingCommand(request, command))
        for _, reply, _ in turn.deferred.values():
            _tell(reply.said)
        for _, reply in turn.replies.values():
            _tell(reply.said)
            self.answer = reply


def _tell(said: str) -> None:
    with suppress(BrokenPipeError):  # its parent was killed: the next turn is refused, and is the last
        print(said, flush=True)


def end_sessions_alone(fleet: str | None, build: Callable[[ServiceContext], EndingSpawner]) -> int:
    """Returns 0 if all sessions have ended. Prints how far it is, line by line."""
    made: list[EndingSpawner] = []

    def build_and_note(context: ServiceContext) -> EndingSpawner:
        made.append(build(context))
        return made[0]

    code = serve_fleet(fleet, Spawner.name, build_and_note, lambda: made[0].answer is not None)
    ended = bool(made and made[0].answer and made[0].answer.ok)
    return code or (0 if ended else NOT_ENDED)
