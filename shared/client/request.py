"""Puts a command into the journal, wakes its owner over the broker, and waits for the reply.

In the journal it survives the broker, which may die after it has acknowledged a message, and this process, which a
person may end at once. Only where the journal can't be written is the broker's message all there is. Both carry the
same id, so the command acts once.
"""

import time
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta

from shared.client.presence import QuietLog
from shared.client.processes import pids
from shared.contract.commands import COMMAND_EXPIRES_AFTER_S, AgentCommand, Command, Reply
from shared.contract.ids import new_id
from shared.contract.services import SERVICES
from shared.contract.topics import COMMAND, REPLY
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.messaging.inbox import Connected, Inbox, MessageArrived
from shared.messaging.intake import request_of
from shared.messaging.journal import Journal
from shared.runtime.bootstrap import connect

CONNECTS_WITHIN_S, ANSWERS_WITHIN_S, TYPES_WITHIN_S = 0.7, 2.0, 8.0
"""After this the reply is looked for in the journal. Typing takes longer: it waits for the agent's input box."""


class NoReply(MusterError):
    """The command was sent, but there is no reply yet."""

    exit_code = 75  # sysexits' EX_TEMPFAIL


class StillWaits(NoReply):
    """The command is open, and its owner has said what it waits for."""


class MayBeAccepted(NoReply):
    """The command was sent over the broker, or may be in the journal, and its replies can't be read."""


def ask(
    fleet: Fleet,
    command: Command,
    *,
    wait_s: float = 20.0,
    on_wait: Callable[[str], None] = lambda _: None,
    while_it_proceeds: bool = False,
) -> Reply:
    """Send a command and return its final reply. `on_wait` gets what it waits for. Raises NoReply or StillWaits.

    With `while_it_proceeds`, each news of what it waits for begins `wait_s` anew.
    """
    owner = command.addressee()
    if owner in SERVICES and owner not in fleet.services:
        raise MusterError(
            f"{command.verb} needs the {owner}, which {fleet.path.name} switches off: set `{owner}: {{enabled: true}}`"
            " there, then run `muster down` and `muster up`"
        )
    command_id = new_id()
    made = datetime.now(UTC)
    expires = made + timedelta(seconds=COMMAND_EXPIRES_AFTER_S)
    command = command.model_copy(update={"id": command_id, "made": made, "expires": expires})
    exchange = _Exchange(fleet, command, command_id, wait_s, on_wait, while_it_proceeds=while_it_proceeds)
    with suppress(MusterError):  # said below, if it can't be stored then either and the broker brings no reply
        exchange.store()
    reached = exchange.through_broker()
    if exchange.reply is None:
        if exchange.waits is None:
            on_wait(f"{_why(fleet, owner, reached=reached)}: the command waits in the journal")
        try:
            exchange.through_journal()
        except MusterError as fault:
            if not exchange.may_be_accepted:
                raise
            raise MayBeAccepted(
                f"{fault}; {command.verb} {command_id} was sent all the same, and is carried out if its owner can store"
                f" it by {expires:%H:%M:%S} UTC: `muster events` tells its end"
            ) from fault
    if exchange.reply is not None:
        return exchange.reply
    if exchange.waits is not None:
        raise StillWaits(
            f"{exchange.waits}; it is still under way after {wait_s:g} s, and `muster events` tells its end"
        )
    raise NoReply(
        f"no answer within {wait_s:g} s; {command.verb} {command_id} is carried out if the {owner}"
        f" takes it up by {expires:%H:%M:%S} UTC"
    )


def _why(fleet: Fleet, owner: str, *, reached: bool) -> str:
    """Why a command was not answered over the broker."""
    if not reached:
        return "the broker is down"
    if owner in fleet.services and owner not in pids(fleet):
        return f"the {owner} does not run"
    return f"the {owner} has not answered yet"


class _Exchange:
    """One command and its replies."""

    def __init__(
        self,
        fleet: Fleet,
        command: Command,
        command_id: str,
        wait_s: float,
        on_wait: Callable[[str], None],
        *,
        while_it_proceeds: bool,
    ) -> None:
        self._on_wait = on_wait
        self._fleet, self._command, self._id = fleet, command, command_id
        self._wait_s, self._while_it_proceeds = wait_s, while_it_proceeds
        self._deadline = time.monotonic() + wait_s
        self._payload = command.model_dump_json(exclude_none=True).encode()
        self._reply_topic = REPLY.name(fleet.space, command=command_id)
        self.may_be_accepted = False
        """Whether the command may be carried out: a broker was given it, or the journal may hold it."""
        self._stored = False
        self.reply: Reply | None = None
        self.waits: str | None = None

    def _take(self, payload: bytes) -> None:
        reply = Reply.model_validate_json(payload)
        if reply.final:
            self.reply = reply
        elif reply.said != self.waits:
            self.waits = reply.said
            if self._while_it_proceeds:
                self._deadline = time.monotonic() + self._wait_s
            self._on_wait(reply.said)

    def through_broker(self) -> bool:
        """Send the command over the broker and wait for replies; returns whether a broker accepted the connection."""
        inbox = Inbox()
        bus = connect(self._fleet, "operator", inbox, QuietLog("muster"))
        bus.subscribe([self._reply_topic])
        bus.start()
        deadline = time.monotonic() + CONNECTS_WITHIN_S
        reached = False
        try:
            while self.reply is None and (items := inbox.take(deadline)):
                for item in items:
                    if isinstance(item, Connected) and bus.note_connected(item):
                        reached = True
                        types = isinstance(self._command, AgentCommand) and not self._command.changes_session
                        deadline = min(
                            self._deadline, time.monotonic() + (TYPES_WITHIN_S if types else ANSWERS_WITHIN_S)
                        )
                        self.may_be_accepted = True
                        bus.publish(COMMAND.name(self._fleet.space, verb=self._command.verb), self._payload)
                    elif isinstance(item, MessageArrived) and item.topic == self._reply_topic:
                        self._take(item.payload)
                        deadline = self._deadline if self.waits else deadline
        finally:
            bus.stop()
        return reached

    def store(self) -> None:
        """Store the command in the journal, once."""
        if self._stored:
            return
        owner = self._command.addressee()
        with closing(Journal(self._fleet.journal, "cli")) as journal:
            try:
                journal.requests.accept([request_of(self._fleet.space, self._command, time.time())], owner)
            except MusterError:
                self.may_be_accepted = self.may_be_accepted or _may_be_stored(journal, self._id, owner)
                raise
        self.may_be_accepted = self._stored = True

    def through_journal(self) -> None:
        """Wait for replies in the journal, which has the command then."""
        self.store()
        owner = self._command.addressee()
        with closing(Journal(self._fleet.journal, "cli")) as journal:
            while True:
                payload = journal.requests.answer_to(self._id, owner) or journal.requests.waits_for(self._id, owner)
                if payload is not None:
                    self._take(payload)
                if self.reply is not None or time.monotonic() >= self._deadline:
                    return
                time.sleep(0.05)


def _may_be_stored(journal: Journal, command_id: str, owner: str) -> bool:
    """Whether a command whose storing failed may be in the journal all the same."""
    try:
        return journal.requests.is_stored(command_id, owner)
    except MusterError:
        return True
