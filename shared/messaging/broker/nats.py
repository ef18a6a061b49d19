"""The private NATS server speaking MQTT 3.1.1, for machines where mosquitto can't be had.

It keeps sessions, retained messages and queues in JetStream, its store on disk. Rights are about NATS subjects, to
which topics are translated: `a/b` is `a.b`, `+` is `*`, `#` is `>`. docs/brokers.md tells what differs for us.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.messaging.broker.acl import BrokerRole
from shared.messaging.broker.endpoints import LOOPBACK, SavedEndpoint
from shared.system import files as private

MAX_PAYLOAD = 4 * 1024 * 1024 + 64 * 1024
"""As mosquitto's message_size_limit, and room for the topic and headers that NATS counts in."""

MAX_ACK_PENDING = 1000
"""Sent, but not acknowledged, for each subscription. A session's subscriptions may sum up to 65,535, and one that
ends in `#` counts twice."""

ACK_WAIT = "10s"
"""What a client left unacknowledged when it vanished comes again this long after it was sent, not when the client is
back. So not the default of 30 s; and not much less, or a client that works through 1000 messages gets them twice."""

DELIVERY = "$MQTT.sub.>"
"""Where the server delivers QoS 1 to a session. Its manual asks for this right; 2.15 no longer needs it."""

CONNECTIONS = ["MQTT", "MQTT_WS"]
"""Our users may not speak NATS itself: on the client port nobody can log in."""


def write_files(
    directory: Path, kept: SavedEndpoint, roles: Sequence[BrokerRole], passwords: Mapping[str, str], name: str
) -> list[str]:
    """Write all that the server needs into the directory; returns the arguments that start it."""
    private.make_directory(directory / "jetstream")
    private.write(directory / "nats.conf", configuration(directory, kept, roles, passwords, name))
    return ["-c", str(directory / "nats.conf")]


def configuration(
    directory: Path, kept: SavedEndpoint, roles: Iterable[BrokerRole], passwords: Mapping[str, str], name: str
) -> str:
    """The server's configuration: its format takes JSON, so nothing needs quoting by hand."""
    settings: dict[str, Any] = {
        # Names the store's consumers: a new name at each start would leave the old ones behind.
        "server_name": f"muster-{name}",
        # The server insists on a port for NATS clients; -1 takes any free one. There is no monitoring port.
        "listen": f"{LOOPBACK}:-1",
        "max_payload": MAX_PAYLOAD,
        "jetstream": {
            "store_dir": str(directory / "jetstream"),
            "max_memory_store": 64 * 1024 * 1024,
            "max_file_store": 1024 * 1024 * 1024,
            # A killed server loses nothing that it wrote; this bounds what a machine that loses power does.
            "sync_interval": "5s",
        },
        "mqtt": {"listen": f"{LOOPBACK}:{kept.port}", "max_ack_pending": MAX_ACK_PENDING, "ack_wait": ACK_WAIT},
        "authorization": {"users": [_user(role, passwords[role.name]) for role in roles]},
    }
    if kept.websocket_port:
        settings["websocket"] = {"listen": f"{LOOPBACK}:{kept.websocket_port}", "no_tls": True}
    return json.dumps(settings, indent=2) + "\n"


def _user(role: BrokerRole, password: str) -> dict[str, Any]:
    writes = [subject for topic in role.writes for subject in subjects(topic)]
    reads = [subject for topic in role.reads for subject in subjects(topic)]
    return {
        "user": role.name,
        "password": password,
        "allowed_connection_types": CONNECTIONS,
        "permissions": {
            # An empty list of what is allowed would allow all.
            "publish": {"allow": writes} if writes else {"deny": [">"]},
            "subscribe": {"allow": [*reads, DELIVERY]},
        },
    }


def subjects(topic: str) -> Iterator[str]:
    """The NATS subjects that an MQTT topic filter means: two for one that ends in `#`, which includes its parent."""
    levels = [_LEVEL.get(level, level.replace(".", "//")) for level in topic.split("/")]
    if levels[-1] == ">" and len(levels) > 1:
        yield ".".join(levels[:-1])
    yield ".".join(levels)


_LEVEL = {"+": "*", "#": ">"}
