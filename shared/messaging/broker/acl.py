"""The rights of every broker role, derived from the topic table, and mosquitto's ACL file.

`python -m shared.messaging.broker.acl` prints the committed `mosquitto/acl`, `--write` writes it; with `--host box`,
it prints one for that host.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from shared.contract.commands import VERBS, Replay
from shared.contract.services import PEOPLE, SERVICES
from shared.contract.topics import COMMAND, DEFAULT_OWNER, EVERY_SERVICE, TOPICS, Space
from shared.generated import write

FILE = Path(__file__).parents[3] / "mosquitto" / "acl"
ANY_HOST = "+"
USUAL_PREFIX = "muster"


@dataclass(frozen=True)
class BrokerRole:
    """A user of the broker, and the topic filters it may write to and read from."""

    name: str
    writes: tuple[str, ...]
    reads: tuple[str, ...]


def roles(space: Space) -> tuple[BrokerRole, ...]:
    """Every role: it writes what the topic table says, and reads everything below the prefix."""
    return tuple(BrokerRole(name, tuple(_writes(name, space)), (space.everything,)) for name in (*SERVICES, *PEOPLE))


def _writes(name: str, space: Space) -> Iterator[str]:
    for row in TOPICS:
        if name in row.writers:
            yield row.filter(space)
        elif name in SERVICES and EVERY_SERVICE in row.writers:
            yield row.filter(space, service=name)
    if name in SERVICES:
        # A gap in another host's events is closed by a replay from there.
        yield COMMAND.filter(Space(ANY_HOST, space.prefix), verb=Replay.verb)
    for verb, command in VERBS.items():
        if name in command.askers:
            yield COMMAND.filter(space, verb=verb)
    if name == DEFAULT_OWNER:
        yield COMMAND.filter(space)  # it clears retained commands


HEADER = """\
# Who may write and read what on an MQTT broker, in mosquitto's format (`acl_file`).
# Made from the topic table by `./muster test --write`; a test says that it is current.
# "+" stands for any host: a broker that serves several hosts trusts each host's services with all of them.
# For one host alone: `.venv/bin/python -m shared.messaging.broker.acl --host box`.
# What is not allowed here is dropped in silence: MQTT 3.1.1 has no way to say so.
"""


def render(given: Iterable[BrokerRole]) -> str:
    """The roles as the text of a mosquitto ACL file, without the header."""
    return "\n".join(_section(role) for role in given)


def _section(role: BrokerRole) -> str:
    lines = [f"user {role.name}"]
    lines += [f"topic read {topic}" for topic in role.reads]
    lines += [f"topic write {topic}" for topic in role.writes]
    return "\n".join(lines) + "\n"


def committed(space: Space) -> str:
    """The ACL file for people with a broker of their own."""
    return f"{HEADER}\n{render(roles(space))}"


def main() -> int:
    options = argparse.ArgumentParser(
        prog="python -m shared.messaging.broker.acl", description="Print mosquitto's ACL file."
    )
    options.add_argument("--prefix", default=USUAL_PREFIX)
    options.add_argument("--host", default=ANY_HOST)
    options.add_argument("--write", action="store_true", help="write mosquitto/acl instead of printing")
    chosen = options.parse_args()
    text = committed(Space(chosen.host, chosen.prefix))
    if chosen.write:
        if (chosen.host, chosen.prefix) != (ANY_HOST, USUAL_PREFIX):
            options.error("--write is for the committed file, which is for every host and the usual prefix")
        return write(FILE, text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
