"""The `muster` command: reads the arguments, then imports only the verb that was asked for."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from services.cli import exit_codes
from shared.errors import MusterError
from shared.version import __version__

VERBS = {
    "demo": "show the whole idea with scripted agents: approvals, a limit, a killed agent, work handed on",
    "test": "run what the tests and checks of this project are",
    "init": "write a commented fleet.yaml here",
    "up": "start the broker and the services in the background",
    "down": "stop the services; agents go on unless --agents",
    "status": "say what runs, once or as it changes",
    "board": "open the page that shows the fleet, or put a comment on a card",
    "explain": "say what an agent is doing, by which evidence, and why that was believed",
    "peek": "ask a copy of an agent's conversation how the work is",
    "events": "follow what happens",
    "logs": "show what an agent wrote to its terminal",
    "transcript": "show an agent's conversation",
    "phase": "say how far the loops that git drives are, or move one on: show, next, set",
    "reconcile": "compare the record with tmux, processes and files, and tell what differs",
    "hooks": "let agents that you start by hand tell what they do",
    "broker": "print ready-to-paste mosquitto commands",
    "doctor": "say what is missing or wrong, and how to mend it",
}
"""The verbs that have a module here. Those that are one command on the bus each are in `commands`."""


def main(arguments: Sequence[str] | None = None) -> int:
    code = _guarded(list(sys.argv[1:] if arguments is None else arguments))
    _flush(sys.stdout)
    _flush(sys.stderr)
    return code


def _guarded(given: list[str]) -> int:
    try:
        return _run(given)
    except MusterError as error:
        print(f"muster: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        return 0  # the reader of our output has gone: that is no failure
    except OSError as error:
        print(f"muster: {error}", file=sys.stderr)
        return exit_codes.FAILED
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED


def _flush(stream: TextIO) -> None:
    """Write out what is left; drop it if its reader has gone, of which Python would complain at its exit."""
    try:
        stream.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(given: list[str]) -> int:
    parser = _parser(_verb_in(given))
    options, rest = parser.parse_known_args(given)
    if options.verb is None:
        parser.print_help()
        return exit_codes.USAGE
    if rest and options.verb != "test":
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    options.rest = rest
    return int(options.run(options))


def _verb_in(given: Sequence[str]) -> str | None:
    """The verb, found before the parser is built: each verb's module takes time to import."""
    words = iter(given)
    for word in words:
        if word == "--fleet":
            next(words, None)
        elif not word.startswith("-"):
            return word
    return None


def _parser(verb: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="muster",
        description="Keeps a fleet of AI coding agents in tmux alive.",
        allow_abbrev=False,  # the launcher reads these words too
    )
    parser.add_argument("--version", action="version", version=f"muster {__version__}")
    parser.add_argument("--fleet", metavar="FILE", help="the fleet file (else MUSTER_FLEET, else ./fleet.yaml)")
    below = parser.add_subparsers(dest="verb", metavar="VERB")
    commands = None if verb in VERBS else importlib.import_module("services.cli.commands")
    for name, says in {**VERBS, **(commands.verbs() if commands else {})}.items():
        own = below.add_parser(name, help=says, description=says.capitalize() + ".")
        if name == verb:
            module = commands or importlib.import_module(f"services.cli.{name}")
            module.arguments(own, name) if commands else module.arguments(own)
            own.set_defaults(run=module.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
