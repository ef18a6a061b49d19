"""A broker's address: parsed from a URL, or saved in `<home>/broker/endpoint.json` for the private broker.

Short-lived programs import this module, so it imports nothing heavy.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from shared.errors import MusterError
from shared.system import files as private

LOOPBACK = "127.0.0.1"
PORTS = {"mqtt": 1883, "mqtts": 8883}


class BadEndpoint(MusterError):
    """A URL that is no broker's address."""

    def __init__(self, url: str, fault: str) -> None:
        super().__init__(f"broker {url!r}: {fault}; write it like mqtt://127.0.0.1:1883 or mqtts://broker.example")


@dataclass(frozen=True)
class Endpoint:
    """A host and port that speaks MQTT, with or without TLS."""

    host: str
    port: int
    tls: bool = False

    @classmethod
    def parse(cls, url: str) -> Self:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise BadEndpoint(url, str(error).lower()) from error
        if "@" in parts.netloc:
            raise BadEndpoint(parts._replace(netloc="…@" + (host or "")).geturl(), _NO_SECRETS)
        if parts.scheme not in PORTS:
            raise BadEndpoint(url, f"the scheme is {parts.scheme or 'missing'}, not mqtt or mqtts")
        if not host:
            raise BadEndpoint(url, "the host is missing")
        if parts.path.strip("/") or parts.query or parts.fragment:
            raise BadEndpoint(url, "nothing may follow the port")
        if port == 0:
            raise BadEndpoint(url, "port 0 can't be connected to")
        return cls(host, port or PORTS[parts.scheme], tls=parts.scheme == "mqtts")

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'mqtts' if self.tls else 'mqtt'}://{host}:{self.port}"


_NO_SECRETS = "a user name or password in an address ends up in logs and process lists; keep it in the credentials file"


@dataclass(frozen=True)
class SavedEndpoint:
    """The ports of the private broker. They are chosen once, so that people's bookmarks and clients keep working."""

    kind: str
    port: int
    websocket_port: int

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(LOOPBACK, self.port)


def saved_endpoint_file(home: Path) -> Path:
    return home / "broker" / "endpoint.json"


def save_endpoint(home: Path, saved: SavedEndpoint) -> None:
    private.write(saved_endpoint_file(home), json.dumps(asdict(saved)) + "\n")


def saved_endpoint(home: Path) -> SavedEndpoint | None:
    """The saved endpoint; None if there is no readable one, and the next start chooses another."""
    try:
        found = json.loads(saved_endpoint_file(home).read_text())
        return SavedEndpoint(str(found["kind"]), int(found["port"]), int(found["websocket_port"]))
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None


def endpoint(home: Path) -> Endpoint | None:
    """The address of the private broker, also while it is down; None if it was never started.

    It may change while the broker is down, if another program takes its port: ask again before every connection.
    """
    found = saved_endpoint(home)
    return found.endpoint if found else None
