"""Sending a command and waiting for its answer: by the broker, or by the journal when no broker answers.

Both ways carry the same id, so a command that went both ways acts once.
"""

import argparse
import getpass
import os
import time
from datetime import UTC, datetime, timedelta

from services.cli.fleet import is_up, open_fleet, say
from services.cli.look import Quiet
from services.cli.words import plain
from shared.commands import VERBS, WAITS_AT_MOST_S, AgentCommand, Command, Reply
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.ids import is_id, new_id
from shared.inbox import Arrived, Connected, Inbox
from shared.journal import Journal, Request
from shared.process import connect
from shared.topics import COMMAND, REPLY

CONNECTS_WITHIN_S, ANSWERS_WITHIN_S = 0.7, 2.0
"""After this the command goes into the journal as well."""


class NoAnswer(MusterError):
    """The command is on its way, but nobody answered."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", help="the agent's name in the fleet file")
    parser.add_argument("--json", action="store_true", help="print the reply as JSON")
    parser.add_argument("--wait", type=float, default=20.0, metavar="S", help="how long to wait for the answer")


def run(options: argparse.Namespace) -> int:
    fleet = open_fleet(options)
    kind = VERBS[options.verb]
    if not issubclass(kind, AgentCommand):
        raise MusterError(f"{options.verb} is not about an agent")
    if not is_up(fleet):
        say("the services are not running (start them with: muster up); the command waits for them for a minute")
    if not is_id(options.agent):
        raise MusterError(f"{options.agent!r} is no agent's name: they are [a-z0-9_-], 1 to 64 long")
    reply = ask(fleet, kind(agent=options.agent, by=f"{_who()} (cli)"), wait_s=options.wait)
    print(reply.model_dump_json() if options.json else plain(reply.said))
    return 0 if reply.ok else 1


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user that the system has no name for, as in containers
        return f"uid {os.getuid()}"


def ask(fleet: Fleet, command: Command, *, wait_s: float = 20.0) -> Reply:
    """Have a command carried out, and give the answer."""
    command_id = new_id()
    expires = datetime.now(UTC) + timedelta(seconds=WAITS_AT_MOST_S)
    command = command.model_copy(update={"id": command_id, "expires": expires})
    deadline = time.monotonic() + wait_s
    answer, reached = _through_broker(fleet, command, command_id)
    if answer is None:
        state = "gives no answer" if reached else "is down"
        say(f"the broker {state}: the command goes through the journal")
        answer = _through_journal(fleet, command, command_id, deadline)
    if answer is None:
        raise NoAnswer(
            f"no answer within {wait_s:g} s; {command.verb} {command_id} is carried out if its owner"
            f" returns by {expires:%H:%M:%S} UTC"
        )
    return Reply.model_validate_json(answer)


def _payload(command: Command) -> bytes:
    return command.model_dump_json(exclude_none=True).encode()


def _through_broker(fleet: Fleet, command: Command, command_id: str) -> tuple[bytes | None, bool]:
    """The answer, if one came, and whether there was a broker at all."""
    inbox = Inbox()
    bus = connect(fleet, "operator", inbox, Quiet("muster"))
    reply_topic = REPLY.name(fleet.space, command=command_id)
    bus.subscribe([reply_topic])
    bus.start()
    deadline = time.monotonic() + CONNECTS_WITHIN_S
    reached = False
    try:
        while items := inbox.take(deadline):
            for item in items:
                if isinstance(item, Connected) and bus.note_connected(item):
                    reached = True
                    deadline = time.monotonic() + ANSWERS_WITHIN_S
                    bus.publish(COMMAND.name(fleet.space, verb=command.verb), _payload(command))
                elif isinstance(item, Arrived) and item.topic == reply_topic:
                    return item.payload, True
    finally:
        bus.stop()
    return None, reached


def _through_journal(fleet: Fleet, command: Command, command_id: str, deadline: float) -> bytes | None:
    journal = Journal(fleet.journal, "cli")
    owner = command.addressee()
    request = Request(
        id=command_id,
        verb=command.verb,
        payload=_payload(command),
        reply_to=REPLY.name(fleet.space, command=command_id),
        asked=time.time(),
        expires=command.expires.timestamp() if command.expires else time.time() + WAITS_AT_MOST_S,
        agent=command.concerns(),
    )
    try:
        journal.requests.accept([request], owner)
        while True:
            answer = journal.requests.answer_to(command_id, owner)
            if answer is not None or time.monotonic() >= deadline:
                return answer
            time.sleep(0.05)
    finally:
        journal.close()
