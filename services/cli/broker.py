"""`muster broker`: how to reach the bus with any MQTT client, ready to paste."""

import argparse
import json
import shlex

from services.cli.fleet_option import open_fleet
from shared.contract.services import PEOPLE
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.messaging.broker import Endpoint, credentials, endpoint
from shared.runtime.bootstrap import endpoints_of


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print where and how to connect as JSON")
    parser.add_argument("--args", choices=PEOPLE, metavar="|".join(PEOPLE), help="print just the connection arguments")


def run(options: argparse.Namespace) -> int:
    fleet = open_fleet(options)
    if options.args:
        print(connection(fleet, options.args))
        return 0
    if options.json:
        passwords = {role: credentials(fleet.home, role)[1] for role in PEOPLE}
        print(json.dumps({"url": str(_endpoint(fleet)), "root": fleet.space.root, "passwords": passwords}))
        return 0
    root = fleet.space.root
    print(f"# watch everything\nmosquitto_sub {connection(fleet, 'viewer')} -t '{fleet.space.prefix}/#' -v\n")
    print(f"# drifts only\nmosquitto_sub {connection(fleet, 'viewer')} -t '{root}/agent/+/drift'\n")
    print(f"# see the replies\nmosquitto_sub {connection(fleet, 'operator')} -t '{root}/reply/+'\n")
    print(
        f"# what happened, card by card\nmosquitto_sub {connection(fleet, 'viewer')} -t '{root}/board/+/comment' -v\n"
    )
    agent = next(iter(fleet.declared.agents), "builder")
    payload = shlex.quote(f'{{"agent": "{agent}"}}')
    print(f"# steer\nmosquitto_pub {connection(fleet, 'operator')} -t {root}/command/restart -m {payload}")
    return 0


def connection(fleet: Fleet, role: str) -> str:
    """Arguments for mosquitto_sub and mosquitto_pub; they need no quoting."""
    at = _endpoint(fleet)
    username, password = credentials(fleet.home, role)
    secure = " --tls-use-os-certs" if at.tls else ""
    return f"-h {at.host} -p {at.port} -u {username} -P {password}{secure}"


def _endpoint(fleet: Fleet) -> Endpoint:
    declared = endpoints_of(fleet)
    found = declared[0] if declared else endpoint(fleet.home)
    if found is None:
        raise MusterError("no broker has been started for this fleet yet; run: muster up")
    return found
