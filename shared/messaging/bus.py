"""The broker connection. Only this module imports paho.

Callbacks only put items into the inbox: an exception in one would end paho's network thread while `is_connected()`
stays true. Every connection is a new paho client. So each can use the next endpoint and a will with its own number, and
paho queues nothing that is in the journal already.
"""

import random
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode

from shared.messaging.broker import Endpoint
from shared.messaging.inbox import Connected, Disconnected, Inbox, MessageAcknowledged, MessageArrived
from shared.messaging.silence import ACKNOWLEDGES_WITHIN_S, DROPPED_AFTER_SILENCE_S, HeldMessages, SilenceWatch
from shared.system.log import Log

KEEPALIVE_S = 10
CONNECT_TIMEOUT_S = 5.0
FIRST_RETRY_S, LONGEST_RETRY_S = 0.1, 0.5
"""Seldom enough to cost little, and often enough for commands: what waits for its owner is in the broker's memory."""
THREAD_ENDS_WITHIN_S = 0.5
STABLE_AFTER_S = 10.0
"""After a connection that lasted this long, retries start again at the first endpoint and the shortest wait."""


@dataclass(frozen=True)
class ClientIdentity:
    """The MQTT client. The broker keeps no session for a `clean` one."""

    client_id: str
    username: str
    password: str
    clean: bool = False


@dataclass(frozen=True)
class Will:
    topic: str
    payload: bytes


class _Client(paho.Client):
    """paho's client, with an event for the end of its network thread."""

    def __init__(self, identity: ClientIdentity) -> None:
        super().__init__(
            CallbackAPIVersion.VERSION2,
            client_id=identity.client_id,
            clean_session=identity.clean,
            reconnect_on_failure=False,
            manual_ack=True,
        )
        self.ended = threading.Event()
        self.end_reason = ""
        self.welcome: Connected | None = None

    def loop_forever(self, *args: Any, **kwargs: Any) -> MQTTErrorCode:
        try:
            return super().loop_forever(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - whatever ended the network thread, the bus must learn of it
            self.end_reason = f"the network thread ended: {error!r}"
            return MQTTErrorCode.MQTT_ERR_UNKNOWN
        finally:
            self.ended.set()

    def hang_up(self) -> None:
        """Close the socket without a DISCONNECT; the network thread then ends."""
        sock = self.socket()
        if isinstance(sock, socket.socket):  # an SSL socket is one too
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


class Bus:
    """Keeps one connection to one of the endpoints, on a thread of its own.

    The methods are for the loop's thread. Messages, acknowledgements and changes of the connection arrive in the inbox.
    The loop confirms a new connection with `note_connected`; until then nothing can be published on it.
    """

    def __init__(
        self,
        identity: Callable[[], ClientIdentity],
        endpoints: Callable[[], Sequence[Endpoint]],
        inbox: Inbox,
        *,
        will: Callable[[int], Will] | None = None,
        next_connection: Callable[[], int],
        log: Log,
    ) -> None:
        self._identity = identity
        self._endpoints = endpoints
        self._inbox = inbox
        self._subscriptions: Sequence[str] = ()
        self._will = will
        self._next_connection = next_connection
        self._log = log
        self._client: _Client | None = None
        self._connection = 0
        self._unused = 0
        """The number of a connection that did not come about."""
        self._unanswered: dict[int, float] = {}
        self._answered_at = time.monotonic()
        """When the broker was last known to be there, on the confirmed connection."""
        self._lost_since: float | None = None
        self._silence = SilenceWatch()
        self._held = HeldMessages(self._answered_at)
        self._quit = threading.Event()
        self._thread = threading.Thread(target=self._keep_connected, name="bus", daemon=True)

    def subscribe(self, filters: Sequence[str]) -> None:
        """Set the subscriptions of every connection; call it before `start`."""
        self._subscriptions = filters

    def start(self) -> None:
        self._thread.start()

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> int | None:
        """Send with QoS 1; returns the message's number, or None while there is no connection."""
        client = self._current()
        if client is None:
            return None
        info = client.publish(topic, payload, qos=1, retain=retain)
        if info.rc is not MQTTErrorCode.MQTT_ERR_SUCCESS:
            return None  # also when 65,535 messages are unacknowledged and their numbers repeat: paho drops it then
        self._unanswered[info.mid] = time.monotonic()
        return info.mid

    def note_acknowledged(self, item: MessageAcknowledged) -> float | None:
        """Register the broker's acknowledgement; returns when the message was sent, None if not on this connection."""
        if item.connection != self._connection:
            return None
        sent = self._unanswered.pop(item.mid, None)
        if sent is not None:
            self._silence.acknowledged(sent, item.at)
            self._held.acknowledged(sent, item.at)
            self._answered_at = item.at
        return sent

    def ended_silence(self) -> float | None:
        """The monotonic time at which a silence of the broker began that has ended now, once."""
        return self._silence.ended(time.monotonic())

    def note_connected(self, item: Connected) -> bool:
        """Start using a connection; False if it has ended in the meantime."""
        self._unanswered.clear()
        self._silence.connection_lost()
        self._connection = item.connection
        self._answered_at = time.monotonic()
        self._held.connected(self._answered_at, self._lost_since)
        self._lost_since = None
        return self._current() is not None

    def note_disconnected(self, item: Disconnected) -> float:
        """Register the end of a connection; returns the monotonic time since which the broker may have lost what it
        had: it may have hung before it died, and a silence that ended may not have been made good yet."""
        began = self._silence.connection_lost()
        if self._lost_since is None:
            self._lost_since = min(item.at, self._answered_at)
        return self._lost_since if began is None else min(self._lost_since, began)

    def under_way_since(self, item: MessageArrived) -> float:
        """The earliest monotonic time at which a message may have been sent that is taken from the inbox now."""
        return self._held.under_way_since(item.at, next(iter(self._unanswered.values()), None))

    def _current(self) -> _Client | None:
        """The client of the connection that the loop has confirmed.

        There may be a newer client already. Its message numbers start at 1 again and would be taken for the old ones.
        """
        client = self._client
        if client is None or client.welcome is None or client.welcome.connection != self._connection:
            return None
        return client

    def acknowledge(self, messages: Sequence[MessageArrived]) -> None:
        """Acknowledge messages to the broker: it may forget them."""
        client = self._current()
        for message in messages:
            if client is not None and message.qos and message.connection == self._connection:
                client.ack(message.mid, message.qos)

    def ask_for_retained(self, topic_filter: str) -> None:
        """Subscribe again, so that the broker sends what is retained there."""
        client = self._current()
        if client is not None:
            client.subscribe(topic_filter, 1)

    @property
    def connected(self) -> bool:
        return self._current() is not None

    def silence_s(self) -> float:
        """How long the oldest message has waited for its acknowledgement."""
        oldest = next(iter(self._unanswered.values()), None)
        return 0.0 if oldest is None else time.monotonic() - oldest

    def falls_silent_at(self) -> float:
        """The monotonic time at which `answers` may become false, or `leave_if_silent` may act."""
        oldest = next(iter(self._unanswered.values()), None)
        if oldest is None or not self.connected:
            return float("inf")
        limit = oldest + ACKNOWLEDGES_WITHIN_S
        return limit if limit > time.monotonic() else oldest + DROPPED_AFTER_SILENCE_S

    @property
    def answers(self) -> bool:
        """Whether there is a working broker: connected, and quick to acknowledge."""
        return self.connected and self.silence_s() < ACKNOWLEDGES_WITHIN_S

    def leave_if_silent(self) -> None:
        """Close a connection whose broker hangs, so that the next endpoint is tried."""
        client = self._current()
        if client is not None and self.silence_s() > DROPPED_AFTER_SILENCE_S:
            client.end_reason = f"no acknowledgement for {self.silence_s():.0f} s"
            client.hang_up()

    def stop(self) -> None:
        """Send what was published, then disconnect; the broker does not send the will."""
        self._quit.set()
        client = self._client
        if client is not None:
            client.disconnect()
            if not client.ended.wait(ACKNOWLEDGES_WITHIN_S):
                client.hang_up()
        if self._thread.ident is not None:
            self._thread.join(THREAD_ENDS_WITHIN_S)  # it ends with the process anyway

    # --- on the connection's own thread: one client after another ---

    def _keep_connected(self) -> None:
        wait, attempt, logged = FIRST_RETRY_S, 0, ""
        while not self._quit.is_set():
            started = time.monotonic()
            try:
                reason = self._connect(attempt)
            except Exception as error:  # noqa: BLE001 - bad address, no credentials yet: all mean "not now"
                reason = str(error) or repr(error)
            attempt += 1
            if time.monotonic() - started > STABLE_AFTER_S:
                wait, attempt = FIRST_RETRY_S, 0  # back to the first endpoint, so that all services meet there
            if not self._quit.is_set() and reason != logged:
                self._log.warning("broker not reached or lost", reason=reason)
                logged = reason
            # Jitter, so that a fleet does not reconnect to a restarted broker in one instant.
            self._quit.wait(wait * random.uniform(0.5, 1.0))  # noqa: S311
            wait = min(wait * 1.6, LONGEST_RETRY_S)

    def _connect(self, attempt: int) -> str:
        """Use one endpoint, in rotation, until the connection ends; returns the reason of its end."""
        endpoints = self._endpoints()
        if not endpoints:
            return "no broker is set up yet"
        endpoint = endpoints[attempt % len(endpoints)]
        return f"{endpoint}: {self._one_connection(endpoint)}"

    def _one_connection(self, endpoint: Endpoint) -> str:
        """Connect and wait for the end of the connection; returns its reason."""
        number = self._unused or self._next_connection()  # which may write to a disk, and many tries may fail
        self._unused = number
        client = self._prepare(number, endpoint)
        client.connect_timeout = CONNECT_TIMEOUT_S
        try:
            client.connect(endpoint.host, endpoint.port, keepalive=KEEPALIVE_S)
        except OSError as error:
            return str(error) or repr(error)
        self._unused = 0
        client.loop_start()
        try:
            if not self._welcomed(client):
                return client.end_reason or f"no welcome within {CONNECT_TIMEOUT_S:.0f} s"
            client.ended.wait()
        finally:
            self._end(client, number)
        return client.end_reason or "connection lost"

    def _welcomed(self, client: _Client) -> bool:
        deadline = time.monotonic() + CONNECT_TIMEOUT_S
        while client.welcome is None and time.monotonic() < deadline and not self._quit.is_set():
            if client.ended.wait(0.005):
                break
        return client.welcome is not None

    def _end(self, client: _Client, number: int) -> None:
        self._client = None
        client.hang_up()
        if client.welcome is not None:
            self._inbox.put(Disconnected(number, client.end_reason or "connection lost"))

    def _prepare(self, number: int, endpoint: Endpoint) -> _Client:
        identity = self._identity()
        client = _Client(identity)
        client.username_pw_set(identity.username, identity.password)
        if endpoint.tls:
            client.tls_set()
        client.max_inflight_messages_set(0)  # no limit: the outbox has its own window
        if self._will is not None:
            will = self._will(number)
            client.will_set(will.topic, will.payload, qos=1, retain=True)
        inbox = self._inbox

        def on_socket_open(_c: Any, _u: Any, opened: Any) -> None:
            # With Nagle's algorithm a second small message would wait up to 40 ms for a delayed TCP acknowledgement.
            with suppress(OSError, AttributeError):
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def on_connect(_c: Any, _u: Any, flags: paho.ConnectFlags, code: Any, _p: Any) -> None:
            if code.is_failure:
                client.end_reason = f"the broker refused us: {code}"
                return
            if self._subscriptions:
                client.subscribe([(name, 1) for name in self._subscriptions])
            client.welcome = Connected(number, flags.session_present)
            self._client = client
            inbox.put(client.welcome)

        def on_message(_c: Any, _u: Any, message: paho.MQTTMessage) -> None:
            # The loop acknowledges a QoS 1 message once it is in the journal.
            inbox.put(
                MessageArrived(
                    message.topic,
                    bytes(message.payload),
                    message.retain,
                    message.dup,
                    message.mid,
                    message.qos,
                    number,
                )
            )

        def on_publish(_c: Any, _u: Any, mid: int, _code: Any, _p: Any) -> None:
            inbox.put(MessageAcknowledged(mid, number))

        def on_disconnect(_c: Any, _u: Any, _flags: Any, code: Any, _p: Any) -> None:
            client.end_reason = client.end_reason or f"disconnected: {code}"

        client.on_socket_open = on_socket_open
        client.on_connect = on_connect
        client.on_message = on_message
        client.on_publish = on_publish
        client.on_disconnect = on_disconnect
        return client
