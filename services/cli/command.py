"""The verbs that ask a service for something: each is one command on the bus, with the same words."""

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from services.cli import exits
from services.cli.ask import StillWaits, ask, asker
from services.cli.fleet import is_up, open_fleet, say
from services.cli.words import plain
from shared.commands import (
    Adopt,
    Approve,
    Command,
    Delete,
    Deny,
    Forget,
    Interrupt,
    Poll,
    Rebuild,
    Reply,
    Restart,
    Resume,
    Send,
    Spawn,
    SpawnAll,
    Stop,
    StopAll,
)
from shared.errors import MusterError
from shared.ids import is_id
from shared.topics import first_fault

WAIT_S = 20.0
KEEP_S = 3600.0


def arguments(parser: argparse.ArgumentParser, verb: str) -> None:
    _ARGUMENTS[verb](parser)
    parser.add_argument("--json", action="store_true", help="print each reply as JSON")
    parser.add_argument(
        "--wait", type=float, default=WAIT_S, metavar="S", help=f"how long to wait for the answer (default {WAIT_S:g})"
    )


def run(options: argparse.Namespace) -> int:
    fleet = open_fleet(options)
    for name in _names(options):
        if not is_id(name):
            raise MusterError(f"{name!r} is no agent's name: they are [a-z0-9_-], 1 to 64 long")
    try:
        commands = list(_COMMANDS[options.verb](options))
    except ValidationError as error:
        raise MusterError(f"{options.verb} can't be sent: {first_fault(error)}") from error
    if not is_up(fleet):
        say("the services are not running (start them with: muster up); the command waits for them for a minute")
    worst = 0
    for command in commands:
        try:
            reply = ask(fleet, command.model_copy(update={"by": asker()}), wait_s=options.wait)
        except StillWaits as waits:
            say(str(waits))
            worst = max(worst, exits.UNDER_WAY)
            continue
        _show(reply, as_json=options.json)
        worst = max(worst, 0 if reply.ok else exits.FAILED)
    return worst


def _names(options: argparse.Namespace) -> list[str]:
    """The agents that were named; some verbs are about none."""
    given = getattr(options, "agent", [])
    return [given] if isinstance(given, str) else given


def _show(reply: Reply, *, as_json: bool) -> None:
    print(reply.model_dump_json() if as_json else plain(reply.said))


# --- what can be said ---


def _agent(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", help="the agent's name in the fleet file")


def _agents(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", nargs="+", help="the agents' names in the fleet file")


def _agents_or_all(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", nargs="*", help="the agents' names in the fleet file")
    parser.add_argument("--all", action="store_true", help="all of them")


def _anyway(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--anyway", action="store_true", help="now, though its account's usage limit is reached")


def _for_spawn(parser: argparse.ArgumentParser) -> None:
    _agents_or_all(parser)
    prompt = parser.add_mutually_exclusive_group()
    prompt.add_argument("--prompt", metavar="TEXT", help="instead of the agent's own, this once")
    prompt.add_argument("--prompt-file", metavar="FILE", help="the same, from a file; - is standard input")
    parser.add_argument("--model", help="instead of the agent's own, this once")
    parser.add_argument("--backend", help="instead of the agent's own, this once")
    parser.add_argument("--dir", help="instead of the agent's own, this once; inside the allowed workspaces")
    _anyway(parser)


def _for_restart(parser: argparse.ArgumentParser) -> None:
    _agents(parser)
    parser.add_argument("--fresh", action="store_true", help="begin a new conversation")
    _anyway(parser)


def _for_resume(parser: argparse.ArgumentParser) -> None:
    _agent(parser)
    parser.add_argument("--conversation", metavar="ID", help="the agent's own id of it; default: its last one")
    _anyway(parser)


def _for_delete(parser: argparse.ArgumentParser) -> None:
    _agents(parser)
    parser.add_argument("--purge-conversation", action="store_true", help="remove the agent's own file of it too")


def _for_adopt(parser: argparse.ArgumentParser) -> None:
    _agent(parser)
    parser.add_argument("session", help="the name of the tmux session")
    parser.add_argument(
        "--pane", metavar="%N", help="the pane of it that the agent runs in; the others stay yours (default: all of it)"
    )
    parser.add_argument("--backend", help="what runs in it; default: the declared agent's, else by its processes")


def _for_answer(parser: argparse.ArgumentParser) -> None:
    _agents(parser)
    parser.add_argument(
        "--fingerprint", metavar="PRINT", help="answer this dialog and no other, as `approval_needed` told it"
    )


def _for_poll(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("loop", nargs="?", help="only this loop's")


def _for_send(parser: argparse.ArgumentParser) -> None:
    _agent(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("text", nargs="?", help="the text; - is standard input")
    what.add_argument("--file", metavar="FILE", help="the text, from a file")
    what.add_argument("--keys", nargs="+", metavar="KEY", help="press keys instead: Enter, Escape, Up, C-c, a …")
    parser.add_argument("--idle", action="store_true", help="not before the agent has finished what it does")
    parser.add_argument("--command", action="store_true", help="the text is an order to the agent's program: /compact")
    parser.add_argument(
        "--keep", type=float, default=KEEP_S, metavar="S", help=f"how long it may wait for an input box ({KEEP_S:g})"
    )


_ARGUMENTS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "spawn": _for_spawn,
    "stop": _agents_or_all,
    "restart": _for_restart,
    "resume": _for_resume,
    "delete": _for_delete,
    "forget": _agents,
    "adopt": _for_adopt,
    "send": _for_send,
    "interrupt": _agents,
    "approve": _for_answer,
    "deny": _for_answer,
    "poll": _for_poll,
    "rebuild": lambda _: None,
}


# --- what is asked ---


def _spawn(options: argparse.Namespace) -> Iterator[Command]:
    said = {"model": options.model, "backend": options.backend, "dir": options.dir}
    said["prompt"] = _read(options.prompt_file) if options.prompt_file else options.prompt
    given = {key: value for key, value in said.items() if value is not None}
    if options.all and (options.agent or given or options.anyway):
        raise MusterError("--all takes no names and nothing else that is to be otherwise")
    if options.all:
        yield SpawnAll()
        return
    yield from (Spawn(agent=agent, anyway=options.anyway, **given) for agent in _named(options))


def _stop(options: argparse.Namespace) -> Iterator[Command]:
    if options.all and options.agent:
        raise MusterError("--all takes no names")
    if options.all:
        yield StopAll()
        return
    yield from (Stop(agent=agent) for agent in _named(options))


def _named(options: argparse.Namespace) -> list[str]:
    if not options.agent:
        raise MusterError(f"{options.verb} needs the name of an agent, or --all")
    return list(options.agent)


def _adopt(options: argparse.Namespace) -> Iterator[Command]:
    if options.pane is not None and not re.fullmatch(r"%\d+", options.pane):
        raise MusterError(f"--pane {options.pane}: panes are called %3 and the like; tmux list-panes -a tells them")
    yield Adopt(agent=options.agent, session=options.session, pane=options.pane, backend=options.backend)


def _send(options: argparse.Namespace) -> Iterator[Command]:
    text = None if options.keys else _text(options)
    when: Literal["now", "idle"] = "idle" if options.idle else "now"
    yield Send(
        agent=options.agent, text=text, keys=options.keys, when=when, as_command=options.command, wait_s=options.keep
    )


def _text(options: argparse.Namespace) -> str:
    if options.file:
        return _read(options.file)
    if options.text == "-" or (options.text is None and not sys.stdin.isatty()):
        return _read("-")
    if options.text is None:
        raise MusterError("send needs a text, --file or --keys")
    return str(options.text)


def _read(path: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MusterError(f"{path} can't be read: {error}") from error


_COMMANDS: dict[str, Callable[[argparse.Namespace], Iterator[Command]]] = {
    "spawn": _spawn,
    "stop": _stop,
    "restart": lambda options: (
        Restart(agent=agent, fresh=options.fresh, anyway=options.anyway) for agent in options.agent
    ),
    "resume": lambda options: iter(
        [Resume(agent=options.agent, conversation=options.conversation, anyway=options.anyway)]
    ),
    "delete": lambda options: (
        Delete(agent=agent, purge_conversation=options.purge_conversation) for agent in options.agent
    ),
    "forget": lambda options: (Forget(agent=agent) for agent in options.agent),
    "adopt": _adopt,
    "send": _send,
    "interrupt": lambda options: (Interrupt(agent=agent) for agent in options.agent),
    "approve": lambda options: (Approve(agent=agent, fingerprint=options.fingerprint) for agent in options.agent),
    "deny": lambda options: (Deny(agent=agent, fingerprint=options.fingerprint) for agent in options.agent),
    "poll": lambda options: iter([Poll(loop=options.loop)]),
    "rebuild": lambda _: iter([Rebuild()]),
}
