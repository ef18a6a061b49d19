"""Sorting what the broker brings: commands into the journal, events to the reader, echoes of our own states aside."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from shared.bus import Bus
from shared.desk import Desk, Refused
from shared.inbox import Arrived
from shared.journal import Journal, Request
from shared.log import Log
from shared.presence import OwnState
from shared.states import Presence
from shared.topics import COMMAND, SERVICE_STATE, Space, Topic, locate

REDELIVERY_S = 3600.0


class Reception:
    def __init__(
        self,
        journal: Journal,
        bus: Bus,
        space: Space,
        own: OwnState,
        owns: Sequence[Topic],
        state_topics: Callable[[], set[str]],
        log: Log,
    ) -> None:
        self._journal = journal
        self._bus = bus
        self._space = space
        self._own = own
        self._owns = owns
        self._state_topics = state_topics
        self._log = log
        self._desk = Desk(space, journal.service)
        self._away_s: float | None = None
        self._unfiled: list[Request] = []
        self._taken: dict[int, Request | Refused | None] = {}
        """What the desk made of each message in hand: one that must be sorted again keeps the id it was given."""
        self.contradicted = False
        self.rival = ""
        """Who else says to be this service of this host, if anybody does."""

    @property
    def subscriptions(self) -> list[str]:
        return [*self._desk.subscriptions, self._own.topic, *(row.filter(self._space) for row in self._owns)]

    def connected(self, *, kept: bool, away_s: float) -> None:
        """With a kept session, what comes before the echo of our greeting may have waited as long as we were away."""
        self._away_s = away_s if kept else None

    def sort(self, messages: Sequence[Arrived]) -> tuple[list[Arrived], bool]:
        """The events among the messages, and whether there are new requests. Requests are durable when this returns."""
        events: list[Arrived] = []
        ours: list[str] = []
        commanded = False
        self._unfiled.clear()  # what could not be filed is sorted again
        for message in messages:
            located = locate(message.topic, self._space.prefix)
            if located is None:
                continue
            host, row, ids = located
            if row is COMMAND and host == self._space.host:
                self._command(message, ids["verb"])
                commanded = commanded or not message.retained
            elif row is SERVICE_STATE and message.topic == self._own.topic:
                self._hear_of_ourselves(message)
            elif row in self._owns and host == self._space.host:
                if message.retained and message.payload:
                    ours.append(message.topic)
            else:
                events.append(message)
        self._clear_what_is_gone(ours)
        if commanded:
            # MQTT 3.1.1 hides on live delivery that a message is retained: asked for again, it shows, and is refused.
            for topic_filter in self._desk.subscriptions:
                self._bus.ask_for_retained(topic_filter)
        return events, self._file()

    def _command(self, message: Arrived, verb: str) -> None:
        known = id(message) in self._taken
        if not known:
            waited_s = self._away_s or 0.0
            self._taken[id(message)] = self._desk.take(message, verb, now=datetime.now(UTC), waited_s=waited_s)
        taken = self._taken[id(message)]
        if isinstance(taken, Refused):
            if known:
                return
            self._log.warning("refused a command", verb=taken.reply.verb, reason=taken.reply.said)
            self._bus.publish(taken.topic, taken.reply.model_dump_json().encode())
            if taken.clear is not None:
                self._bus.publish(taken.clear, b"", retain=True)
        elif taken is not None and not self._came_before(message, taken):
            self._unfiled.append(taken)

    def _came_before(self, message: Arrived, request: Request) -> bool:
        if request.delivery is None or not message.repeated:
            return False
        if any(request.delivery == other.delivery for other in self._unfiled):
            return True
        return self._journal.requests.redelivered(request.delivery, request.asked - REDELIVERY_S)

    def _file(self) -> bool:
        """Write the new requests down; those that were answered before are answered again."""
        if not self._unfiled:
            self._taken.clear()
            return False
        self._journal.requests.accept(self._unfiled)
        for request in self._unfiled:
            answer = self._journal.requests.answer_to(request.id) or self._journal.requests.waits_for(request.id)
            if answer is not None:
                self._bus.publish(request.reply_to, answer)
        self._taken.clear()
        return True

    def _hear_of_ourselves(self, message: Arrived) -> None:
        state = self._own.read(message)
        if state is not None and not message.retained and self._own.is_another(message, state):
            self.rival = f"another fleet with this host id speaks as {state.service} (pid {state.pid} there)"
        if state is None:
            self.contradicted = True
        elif state.connection == self._own.connection and state.status is not Presence.OFFLINE:
            self._away_s = None
        elif state.status is Presence.OFFLINE and state.connection < self._own.connection:
            self.contradicted = True

    def _clear_what_is_gone(self, retained: Sequence[str]) -> None:
        """The broker remembers states of ours; those that are true no more are withdrawn."""
        for topic in set(retained) - self._state_topics() if retained else ():
            self._bus.publish(topic, b"", retain=True)
