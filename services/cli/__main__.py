"""The `muster` command: reads the arguments, then imports only the verb that was asked for."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from services.cli import exits
from shared.errors import MusterError
from shared.version import __version__

VERBS = {
    "demo": "show the whole idea: three agents, one of them killed, seen and restarted",
    "test": "run what the tests and checks of this project are",
    "init": "write a commented fleet.yaml here",
    "up": "start the broker and the services in the background",
    "down": "stop the services; agents go on unless --agents",
    "status": "say what runs, once or as it changes",
    "explain": "say what an agent is doing, by which evidence, and why that was believed",
    "peek": "ask a copy of an agent's conversation how the work is",
    "events": "follow what happens",
    "spawn": "start agents and keep them running",
    "stop": "end agents and keep them down",
    "restart": "end agents and start them anew; their conversations go on",
    "resume": "start an agent where its conversation ended",
    "send": "type a text into an agent's input box and submit it, or press keys",
    "interrupt": "stop what an agent is doing",
    "approve": "say yes, this once, to the permission an agent asks for",
    "deny": "say no to it",
    "logs": "show what an agent wrote to its terminal",
    "transcript": "show an agent's conversation",
    "adopt": "take over a tmux session that somebody else started",
    "forget": "forget an agent's record and leave its session to itself",
    "delete": "end an agent and forget its record; its conversation stays",
    "phase": "say how far the loops that git drives are, or move one on: show, next, set",
    "poll": "ask the git remotes of loops now",
    "reconcile": "compare the record with tmux, processes and files, and tell what differs",
    "rebuild": "write the registry anew from the journal; the old file is set aside",
    "hooks": "let agents that you start by hand tell what they do",
    "broker": "print ready-to-paste mosquitto commands",
    "doctor": "say what is missing or wrong, and how to mend it",
}


def main(arguments: Sequence[str] | None = None) -> int:
    code = _guarded(list(sys.argv[1:] if arguments is None else arguments))
    _let_go_of(sys.stdout)
    _let_go_of(sys.stderr)
    return code


def _guarded(given: list[str]) -> int:
    try:
        return _run(given)
    except MusterError as error:
        print(f"muster: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        return 0  # the reader of our output has gone: nothing to complain about
    except OSError as error:
        print(f"muster: {error}", file=sys.stderr)
        return exits.FAILED
    except KeyboardInterrupt:
        return exits.INTERRUPTED


def _let_go_of(stream: TextIO) -> None:
    """Write out what is left; where nobody reads any more, Python would complain of that as its last act."""
    try:
        stream.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(given: list[str]) -> int:
    parser = _parser(_verb_in(given))
    options, rest = parser.parse_known_args(given)
    if options.verb is None:
        parser.print_help()
        return exits.USAGE
    if rest and options.verb != "test":
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    options.rest = rest
    return int(options.run(options))


def _verb_in(given: Sequence[str]) -> str | None:
    """The verb, found before the parser is built: each verb's module costs time to import."""
    words = iter(given)
    for word in words:
        if word == "--fleet":
            next(words, None)
        elif not word.startswith("-"):
            return word if word in VERBS else None
    return None


def _parser(verb: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="muster",
        description="Keeps a fleet of AI coding agents in tmux alive.",
        allow_abbrev=False,  # the launcher reads these words too
    )
    parser.add_argument("--version", action="version", version=f"muster {__version__}")
    parser.add_argument("--fleet", metavar="FILE", help="the fleet file (else MUSTER_FLEET, else ./fleet.yaml)")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    for name, says in VERBS.items():
        below = verbs.add_parser(name, help=says, description=says.capitalize() + ".", add_help=name != "test")
        if name == verb:
            module = importlib.import_module(f"services.cli.{name if name not in ASKED else 'command'}")
            module.arguments(below, name) if name in ASKED else module.arguments(below)
            below.set_defaults(run=module.run)
    return parser


ASKED = (
    *("spawn", "stop", "restart", "resume", "send", "interrupt", "approve", "deny", "adopt", "forget", "delete"),
    *("poll", "rebuild"),
)
"""The verbs that are one command on the bus each."""


if __name__ == "__main__":
    sys.exit(main())
