"""The files of a private NATS server that speaks MQTT 3.1.1, for machines without mosquitto.

It keeps sessions, retained messages and queues in JetStream, its store on disk. Rights are for NATS subjects, to which
topics are translated: `a/b` is `a.b`, `+` is `*`, `#` is `>`. docs/brokers.md says what differs from mosquitto.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.messaging.broker.acl import BrokerRole
from shared.messaging.broker.endpoints import LOOPBACK, SavedEndpoint
from shared.system import files as private

MAX_PAYLOAD = 4 * 1024 * 1024 + 64 * 1024
"""mosquitto's message_size_limit, plus the topic and headers, which NATS counts too."""

MAX_ACK_PENDING = 1000
"""Unacknowledged messages per subscription. A session's subscriptions may sum up to 65,535, and one that ends in `#`
counts twice."""

ACK_WAIT = "10s"
"""When a client vanishes, its unacknowledged messages come again this long after they were sent, not when it is back:
so less than the default of 30 s. With much less, a client that works through 1000 messages would get them twice."""

DELIVERY = "$MQTT.sub.>"
"""The subjects of QoS 1 deliveries to a session. The manual asks for this right; 2.15 does not need it."""

CONNECTIONS = ["MQTT", "MQTT_WS"]
"""Users may not speak the NATS protocol, so nobody can log in on the client port."""


def write_files(
    directory: Path, saved: SavedEndpoint, roles: Sequence[BrokerRole], passwords: Mapping[str, str], name: str
) -> list[str]:
    """Write the server's files into the directory; returns the arguments that start it."""
    private.make_directory(directory / "jetstream")
    private.write(directory / "nats.conf", configuration(directory, saved, roles, passwords, name))
    return ["-c", str(directory / "nats.conf")]


def configuration(
    directory: Path, saved: SavedEndpoint, roles: Iterable[BrokerRole], passwords: Mapping[str, str], name: str
) -> str:
    """The server's configuration. Its format accepts JSON, which needs no quoting by hand."""
    settings: dict[str, Any] = {
        # The name is part of the store's consumers: another name would leave the old ones behind.
        "server_name": f"muster-{name}",
        # The server insists on a port for NATS clients; -1 takes any free one. There is no monitoring port.
        "listen": f"{LOOPBACK}:-1",
        "max_payload": MAX_PAYLOAD,
        "jetstream": {
            "store_dir": str(directory / "jetstream"),
            "max_memory_store": 64 * 1024 * 1024,
            "max_file_store": 1024 * 1024 * 1024,
            # A killed server loses nothing that it wrote; this limits the loss of a power cut.
            "sync_interval": "5s",
        },
        "mqtt": {"listen": f"{LOOPBACK}:{saved.port}", "max_ack_pending": MAX_ACK_PENDING, "ack_wait": ACK_WAIT},
        "authorization": {"users": [_user(role, passwords[role.name]) for role in roles]},
    }
    if saved.websocket_port:
        settings["websocket"] = {"listen": f"{LOOPBACK}:{saved.websocket_port}", "no_tls": True}
    return json.dumps(settings, indent=2) + "\n"


def _user(role: BrokerRole, password: str) -> dict[str, Any]:
    writes = [subject for topic in role.writes for subject in subjects(topic)]
    reads = [subject for topic in role.reads for subject in subjects(topic)]
    return {
        "user": role.name,
        "password": password,
        "allowed_connection_types": CONNECTIONS,
        "permissions": {
            # An empty `allow` would allow everything.
            "publish": {"allow": writes} if writes else {"deny": [">"]},
            "subscribe": {"allow": [*reads, DELIVERY]},
        },
    }


def subjects(topic: str) -> Iterator[str]:
    """The NATS subjects of an MQTT topic filter: two for one that ends in `#`, which includes its parent."""
    levels = [_LEVEL.get(level, level.replace(".", "//")) for level in topic.split("/")]
    if levels[-1] == ">" and len(levels) > 1:
        yield ".".join(levels[:-1])
    yield ".".join(levels)


_LEVEL = {"+": "*", "#": ">"}
