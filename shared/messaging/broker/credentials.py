"""The generated passwords: one per role, in `<home>/credentials`, which only its owner can read.

Short-lived programs import this module, so it imports nothing heavy.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from shared.contract.services import PEOPLE, SERVICES
from shared.errors import MusterError
from shared.system import files as private

FILE = "credentials"


class NoCredentials(MusterError):
    """There is no usable password; the message says what to do."""


def ensure_credentials(home: Path, roles: Iterable[str] = (*SERVICES, *PEOPLE)) -> dict[str, str]:
    """The passwords of all roles. Existing ones stay, missing ones are generated."""
    private.make_directory(home)
    path = home / FILE
    with _locked(home):
        known = _read(path) if path.exists() else {}
        # Hexadecimal, so that no password begins with a dash: they are arguments of mosquitto_sub.
        missing = {role: secrets.token_hex(24) for role in roles if role not in known}
        if missing:
            known |= missing
            private.write(path, json.dumps(known, indent=2) + "\n")
        path.chmod(0o600)
    return known


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    """The CLI and the broker may both be the first: neither must replace passwords of the other."""
    descriptor = os.open(home, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def credentials(home: Path, role: str) -> tuple[str, str]:
    """The user name and password of a role. Raises NoCredentials."""
    path = home / FILE
    try:
        known = _read(path)
    except FileNotFoundError:
        raise NoCredentials(f"there is no {path}: the fleet's broker was never started; run `muster up`") from None
    if role not in known:
        raise NoCredentials(f"{path} has no password for {role!r}; it knows {', '.join(sorted(known)) or 'nobody'}")
    return role, known[role]


def _read(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_text())
    except PermissionError:
        raise NoCredentials(f"{path} may only be read by the user who started the fleet") from None
    except ValueError as error:
        raise NoCredentials(f"{path} is not JSON ({error}); delete it and run `muster up` to make new ones") from error
    if not isinstance(found, dict) or not all(isinstance(secret, str) for secret in found.values()):
        raise NoCredentials(f"{path} is not an object of role and password; delete it and run `muster up`")
    return found
