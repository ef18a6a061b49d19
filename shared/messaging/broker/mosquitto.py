"""The files of a private mosquitto, from the committed template, and the arguments that start it."""

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from shared.errors import MusterError
from shared.messaging.broker import acl
from shared.messaging.broker.endpoints import LOOPBACK, SavedEndpoint
from shared.system import files as private

ITERATIONS = 101
"""As mosquitto_passwd 2.0. The passwords are random, so more iterations would only slow down each connect."""

SALT_BYTES = 12


def write_files(
    directory: Path, saved: SavedEndpoint, roles: Sequence[acl.BrokerRole], passwords: Mapping[str, str], name: str
) -> list[str]:
    """Write mosquitto's files into the directory; returns the arguments that start it."""
    del name  # only a NATS server has one
    private.make_directory(directory / "data")
    private.write(directory / "passwords", password_file({role.name: passwords[role.name] for role in roles}))
    private.write(directory / "acl", acl.render(roles))
    private.write(directory / "mosquitto.conf", configuration(directory, saved))
    return ["-c", str(directory / "mosquitto.conf")]


def configuration(directory: Path, saved: SavedEndpoint, address: str = LOOPBACK) -> str:
    """The committed template, filled in; without the websockets listener when its port is 0."""
    text = template().read_text()
    if not saved.websocket_port:
        text = text.partition("\n# For pages in a browser.")[0]
    filled = {
        "DIRECTORY": str(directory),
        "ADDRESS": address,
        "PORT": str(saved.port),
        "WEBSOCKET_PORT": str(saved.websocket_port),
    }
    for name, value in filled.items():
        text = text.replace(f"@{name}@", value)
    return text


def template() -> Path:
    """The configuration template: at the top of a checkout, inside `shared` when installed."""
    shared = Path(__file__).parents[2]
    for place in (shared / "mosquitto", shared.parent / "mosquitto"):
        if (place / "mosquitto.conf").is_file():
            return place / "mosquitto.conf"
    raise MusterError(f"mosquitto.conf is missing beside {shared}; install Muster again")


def password_file(passwords: Mapping[str, str]) -> str:
    return "".join(f"{user}:{hashed(secret, os.urandom(SALT_BYTES))}\n" for user, secret in passwords.items())


def hashed(secret: str, salt: bytes) -> str:
    """A hash in the format of `mosquitto_passwd` 2.0: `$7$`, PBKDF2 with SHA-512."""
    digest = hashlib.pbkdf2_hmac("sha512", secret.encode(), salt, ITERATIONS)
    return f"$7${ITERATIONS}${base64.b64encode(salt).decode()}${base64.b64encode(digest).decode()}"
