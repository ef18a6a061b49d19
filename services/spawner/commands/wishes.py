"""Of two wishes about an agent the later one counts, by when each was made and not by when it arrived.

A broker that hangs may bring a command after a later one that came through the journal and was carried out.
"""

import time

from pydantic import ValidationError

from services.spawner.view import SpawnerView
from shared.contract.commands import (
    VERBS,
    Adopt,
    AgentCommand,
    Command,
    Delete,
    Forget,
    Reply,
    Restart,
    Resume,
    Spawn,
    SpawnAll,
    Stop,
    StopAll,
)
from shared.messaging.intake import CommandFault, read_command
from shared.messaging.journal import AnsweredRequest
from shared.runtime.turn import PendingCommand

OUTDATED = "outdated"
"""The reply's code for a wish after which a later one was carried out."""


def is_wish(command: Command) -> bool:
    """Whether it says what is wanted of an agent from now on. Not what is meant for one session only, or found."""
    match command:
        case Stop(spawn=None, for_now=False) | StopAll(for_now=False) | Restart(spawn=None, counts=False):
            return True
        case Forget(spawn=None) | Adopt(found=False):
            return True
        case Spawn() | SpawnAll() | Resume() | Delete():
            return True
    return False


def outdated(view: SpawnerView, pending: PendingCommand) -> str:
    """Why a wish is not carried out: a later one was; empty if it is the latest."""
    if not is_wish(pending.command):
        return ""
    subject = pending.request.agent or "*"
    for later in view.turn.answered_after(subject, pending.request.asked):
        command = _carried_out(later)
        if command is not None and is_wish(command):
            of = f" of {command.agent}" if subject == "*" and isinstance(command, AgentCommand) else ""
            at = time.strftime("%H:%M:%S", time.localtime(later.asked))
            return f"a later `{later.verb}`{of} ({at}) stands: say it again if it is still wanted"
    return ""


def _carried_out(answered: AnsweredRequest) -> Command | None:
    """The command of a request; None if it was refused, or is of a version that had other commands."""
    try:
        reply = Reply.model_validate_json(answered.answer)
        return read_command(VERBS[answered.verb], answered.payload) if reply.ok else None
    except (ValidationError, CommandFault, KeyError):
        return None
