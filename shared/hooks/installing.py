"""Hooks in a user's own settings, for agents that people start by hand: only ever changed when somebody asks for it.

`planned_*` says what would change and touches nothing; `carry_out` does it.
"""

import contextlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shared.errors import MusterError
from shared.hooks.command import installed, installed_for
from shared.hooks.formats import FORMATS
from shared.hooks.settings_text import BadSettings, added, commands_in, taken_out


class CannotInstall(MusterError):
    """The settings stay as they are; the message says why."""


@dataclass(frozen=True)
class Change:
    """What a settings file is, and what it is to be; None: no file."""

    path: Path
    before: str | None
    after: str | None

    @property
    def changes(self) -> bool:
        return self.before != self.after


def planned_install(name: str, directory: Path, env: Mapping[str, str]) -> Change:
    """The hooks of this fleet in the settings, once. What an earlier install left, of this fleet or of one that is
    gone, is replaced; that of others stays. Raises CannotInstall.
    """
    form, command = FORMATS[name], installed(directory)
    path = form.settings(env)
    before = _read(path)
    try:
        there = _ours_in(before, directory)
        if there == {event: [command] for event in form.events}:
            return Change(path, before, before)
        rest = taken_out(before, lambda each: _is_ours(each, directory)) if before and there else before
        return Change(path, before, added(rest or "", {event: form.entry(command) for event in form.events}))
    except BadSettings as fault:
        raise _cannot(path, fault) from fault


def planned_removal(name: str, directory: Path, env: Mapping[str, str]) -> Change:
    """The settings without this fleet's hooks, and without those of fleets that are gone. Raises CannotInstall."""
    path = FORMATS[name].settings(env)
    before = _read(path)
    try:
        if not before or not _ours_in(before, directory):
            return Change(path, before, before)
        after = taken_out(before, lambda each: _is_ours(each, directory))
    except BadSettings as fault:
        raise _cannot(path, fault) from fault
    return Change(path, before, "{}\n" if after is None and path.is_symlink() else after)


def installed_by(name: str, env: Mapping[str, str]) -> dict[Path, int]:
    """For which fleets' hooks directories the settings hold hooks, and how many. Raises CannotInstall."""
    path = FORMATS[name].settings(env)
    found: dict[Path, int] = {}
    try:
        for commands in commands_in(_read(path) or "{}").values():
            for directory in filter(None, map(installed_for, commands)):
                found[directory] = found.get(directory, 0) + 1
    except BadSettings as fault:
        raise _cannot(path, fault) from fault
    return found


def carry_out(change: Change) -> None:
    """Write the file as a whole, through links and with its mode, unless somebody has changed it since it was read."""
    path = change.path.resolve()
    try:
        if _read(path) != change.before:
            raise CannotInstall(f"{path} was changed at this very moment; try again")
        if change.after is None:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(path, change.after)
    except OSError as error:
        raise CannotInstall(f"{path} can't be written: {error.strerror or error}") from error


def _replace(path: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            with contextlib.suppress(FileNotFoundError):
                os.fchmod(file.fileno(), path.stat().st_mode & 0o7777)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CannotInstall(f"{path} can't be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise CannotInstall(f"{path} is not UTF-8; nothing was changed") from error


def _is_ours(command: str, directory: Path) -> bool:
    told = installed_for(command)
    return told is not None and (told == directory or not told.parent.exists())


def _ours_in(text: str | None, directory: Path) -> dict[str, list[str]]:
    found = commands_in(text) if text and text.strip("\ufeff \t\r\n") else {}
    mine = {event: [each for each in commands if _is_ours(each, directory)] for event, commands in found.items()}
    return {event: commands for event, commands in mine.items() if commands}


def _cannot(path: Path, fault: BadSettings) -> CannotInstall:
    return CannotInstall(f"{path}, {fault}; nothing was changed")
