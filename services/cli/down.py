"""`muster down`: stop the services and leave nothing behind; agents go on unless --agents."""

import argparse

from registry import RegistryFile
from services.cli import supervision
from services.cli.ask import ask
from services.cli.fleet import is_up, open_fleet, say
from services.cli.up import bring_up
from shared.commands import Stop
from shared.fleet import Fleet
from shared.states import Status


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--agents", action="store_true", help="end the agents' sessions too; `up` starts them again")


def run(options: argparse.Namespace) -> int:
    fleet = open_fleet(options)
    bring_down(fleet, agents=options.agents)
    return 0


def bring_down(fleet: Fleet, *, agents: bool) -> None:
    running = [
        name for name, record in RegistryFile(fleet.registry).records().items() if record.status is Status.RUNNING
    ]
    if agents and running:
        if not is_up(fleet):
            say("starting the services, for only the spawner ends sessions")
            bring_up(fleet)
        for name in running:
            reply = ask(fleet, Stop(agent=name, for_now=True, by="muster down"))
            say(reply.said)
    ended = supervision.stop(fleet)
    say(f"down: {', '.join(ended)}" if ended else "nothing was running")
    left = [] if agents else running
    if left:
        say(f"agents go on in tmux: {', '.join(left)} (end them with: muster down --agents)")
