"""The verbs that are one command each: options, help and the command itself follow from the command's class."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from services.cli import exit_codes
from services.cli.fleet_option import is_up, open_fleet, say
from services.cli.request import add_wait, ask, check_name
from services.cli.words import plain
from shared.client.request import StillWaits
from shared.contract.commands import VERBS, CliOption, Command
from shared.contract.topics import first_fault
from shared.errors import MusterError


def verbs() -> dict[str, str]:
    """The verbs of the CLI that are one command each, and what each does."""
    return {verb: command.help for verb, command in VERBS.items() if command.help}


def arguments(parser: argparse.ArgumentParser, verb: str) -> None:
    command = VERBS[verb]
    named = {option.group for _, _, option in _options(command) if option.group}
    groups = {name: parser.add_mutually_exclusive_group() for name in named}
    for name, field, option in _options(command):
        _add(groups.get(option.group, parser), name, field, option, needed=not command.all_verb)
    if command.all_verb:
        parser.add_argument("--all", action="store_true", help="all of them")
    parser.add_argument("--json", action="store_true", help="print each reply as JSON")
    add_wait(parser)


def run(options: argparse.Namespace) -> int:
    fleet = open_fleet(options)
    commands = list(commands_of(options))
    if not is_up(fleet):
        say("the services are not running (start them with: muster up); the command waits for them for a minute")
    worst = 0
    for command in commands:
        try:
            reply = ask(fleet, command, wait_s=options.wait)
        except StillWaits as waits:
            say(str(waits))
            worst = max(worst, exit_codes.UNDER_WAY)
            continue
        print(reply.model_dump_json() if options.json else plain(reply.said))
        worst = max(worst, 0 if reply.ok else exit_codes.FAILED)
    return worst


# --- from a command's class to options ---


def _options(command: type[Command]) -> Iterator[tuple[str, FieldInfo, CliOption]]:
    for name, field in command.model_fields.items():
        for option in field.metadata:
            if isinstance(option, CliOption):
                yield name, field, option


def _add(parser: Any, name: str, field: FieldInfo, option: CliOption, *, needed: bool) -> None:
    said = _help(option.says or field.description or "")
    if option.positional:
        several = ("+" if needed else "*") if option.many else None if field.is_required() else "?"
        parser.add_argument(name, nargs=several, help=said)
    else:
        flag = option.flag or f"--{name.replace('_', '-')}"
        parser.add_argument(flag, dest=name, help=said, **_takes(field, option))
    if option.file_flag:
        help_ = f"{name}, from a file; - is standard input"
        parser.add_argument(option.file_flag, dest=f"{name}_file", metavar="FILE", help=help_)


def _takes(field: FieldInfo, option: CliOption) -> dict[str, Any]:
    """What an option takes, by the type of its field."""
    kind = next((each for each in get_args(field.annotation) if each is not NoneType), field.annotation)
    if kind is bool:
        return {"action": "store_true"}
    if option.stores is not None:
        return {"action": "store_const", "const": option.stores}
    if get_origin(kind) is list or kind is list:
        return {"nargs": "+", "metavar": option.metavar}
    return {"type": kind if kind in (int, float) else str, "metavar": option.metavar}


def _help(said: str) -> str:
    return said[:1].lower() + said[1:].rstrip(".").replace("%", "%%")


# --- from what was typed to commands ---


def commands_of(options: argparse.Namespace) -> Iterator[Command]:
    """The commands that were typed: one, or one for each agent that was named."""
    command = VERBS[options.verb]
    given = _given(command, options)
    many = [name for name, _, option in _options(command) if option.many]
    if command.all_verb and options.all:
        if any(given.values()):
            raise MusterError("--all takes no names and nothing else that is to be otherwise")
        yield VERBS[command.all_verb]()
        return
    if command.all_verb and not given.get("agent"):
        raise MusterError(f"{options.verb} needs the name of an agent, or --all")
    for agent in _agents(given):
        check_name(agent)
    for each in given[many[0]] if many else (None,):
        yield _made(command, {**given, many[0]: each} if many else given)


def _agents(given: dict[str, Any]) -> list[str]:
    named = given.get("agent", [])
    return [named] if isinstance(named, str) else list(named)


def _given(command: type[Command], options: argparse.Namespace) -> dict[str, Any]:
    """The fields that were given. The command's class has defaults for the others."""
    given = {}
    for name, _, option in _options(command):
        value = getattr(options, name)
        if option.file_flag and (path := getattr(options, f"{name}_file")):
            value = _read(path)
        elif option.stdin and _is_on_stdin(command, options, name):
            value = _read("-")
        if value is not None and value is not False:
            given[name] = value
    return given


def _is_on_stdin(command: type[Command], options: argparse.Namespace, name: str) -> bool:
    """Whether a text comes by standard input: `-` was given, or no text at all and standard input is no terminal."""
    if getattr(options, name) is not None:
        return bool(getattr(options, name) == "-")
    group = next(option.group for field, _, option in _options(command) if field == name)
    others = [getattr(options, field) for field, _, option in _options(command) if option.group == group]
    return not any(others) and not sys.stdin.isatty()


def _made(command: type[Command], given: dict[str, Any]) -> Command:
    try:
        return command(**given)
    except ValidationError as error:
        at = error.errors()[0]["loc"]
        said = command.model_fields[str(at[0])].description if at else None
        raise MusterError(
            f"{command.verb} can't be sent: {first_fault(error)}" + (f"; {said}" if said else "")
        ) from error


def _read(path: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MusterError(f"{path} can't be read: {error}") from error
