"""Hooks in a user's own settings, for agents that people start by hand. Changed only on request.

`planned_*` computes a change and touches nothing; `carry_out` makes it.
"""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shared.agents.hooks.command import NO_TEXT, installed, installed_for, is_text
from shared.agents.hooks.formats import FORMATS
from shared.agents.hooks.settings_text import BadSettings, added, commands_in, is_blank, taken_out
from shared.errors import MusterError


class CannotInstall(MusterError):
    """The settings were not changed; the message says why."""


@dataclass(frozen=True)
class SettingsChange:
    """The text of a settings file before and after; None for no file."""

    path: Path
    before: str | None
    after: str | None

    @property
    def changes(self) -> bool:
        return self.before != self.after


def planned_install(name: str, directory: Path, env: Mapping[str, str], *, gone: bool = False) -> SettingsChange:
    """The settings with the hooks of this fleet, once. Replaces an earlier installation, with `gone` also of fleets
    that no longer exist; others stay. Raises CannotInstall.
    """
    if not is_text(directory):
        raise CannotInstall(f"{NO_TEXT}; nothing was changed")
    form, command = FORMATS[name], installed(directory)
    path = form.settings(env)
    before = _read(path)
    try:
        there = _ours_in(before, directory, gone=gone)
        if there == {event: [command] for event in form.events}:
            return SettingsChange(path, before, before)
        rest = taken_out(before, lambda each: _is_ours(each, directory, gone=gone)) if before and there else before
        return SettingsChange(path, before, added(rest, {event: form.entry(command) for event in form.events}))
    except BadSettings as fault:
        raise _cannot(path, fault) from fault


def planned_removal(name: str, directory: Path, env: Mapping[str, str], *, gone: bool = False) -> SettingsChange:
    """The settings without this fleet's hooks, and with `gone` without those of fleets that no longer exist: not by
    default, since their disk may only be unmounted. Raises CannotInstall.
    """
    path = FORMATS[name].settings(env)
    before = _read(path)
    try:
        if not before or not _ours_in(before, directory, gone=gone):
            return SettingsChange(path, before, before)
        after = taken_out(before, lambda each: _is_ours(each, directory, gone=gone))
    except BadSettings as fault:
        raise _cannot(path, fault) from fault
    return SettingsChange(path, before, "{}\n" if after is None and path.is_symlink() else after)


def installed_by(name: str, env: Mapping[str, str]) -> dict[Path, int]:
    """How many hooks the settings have, by the fleet's hooks directory. Raises CannotInstall."""
    path = FORMATS[name].settings(env)
    found: dict[Path, int] = {}
    try:
        for commands in _commands_in(_read(path)).values():
            for directory in filter(None, map(installed_for, commands)):
                found[directory] = found.get(directory, 0) + 1
    except BadSettings as fault:
        raise _cannot(path, fault) from fault
    return found


def is_gone(directory: Path) -> bool:
    """Whether the fleet of a hooks directory no longer exists; False if that can't be checked."""
    try:
        directory.parent.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def carry_out(change: SettingsChange) -> None:
    """Replace the file, through links, with its owner and mode. Raises CannotInstall, also if it has changed meanwhile.

    A new file that root makes gets the owner of its directory.
    """
    path = change.path.resolve()
    try:
        if _read(path) != change.before:
            raise CannotInstall(f"{path} was changed at this very moment; try again")
        if change.after is None:
            path.unlink(missing_ok=True)
            return
        _make_directory(path.parent)
        _replace(path, change.after)
    except OSError as error:
        raise CannotInstall(f"{path} can't be written: {error.strerror or error}") from error


def _make_directory(path: Path) -> None:
    if path.is_dir():
        return
    _make_directory(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)
    if os.geteuid() == 0:
        above = path.parent.stat()
        os.chown(path, above.st_uid, above.st_gid, follow_symlinks=False)


def _replace(path: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            _as_before(path, file.fileno())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _as_before(path: Path, descriptor: int) -> None:
    """Give a new file the owner, group and mode of the file that it replaces."""
    try:
        was = path.stat()
    except FileNotFoundError:
        if os.geteuid() == 0:
            above = path.parent.stat()
            os.fchown(descriptor, above.st_uid, above.st_gid)
        return
    try:
        os.fchown(descriptor, was.st_uid, was.st_gid)
    except OSError as error:
        raise CannotInstall(f"{path} would not keep its owner and group; nothing was changed") from error
    os.fchmod(descriptor, was.st_mode & 0o7777)


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CannotInstall(f"{path} can't be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise CannotInstall(f"{path} is not UTF-8; nothing was changed") from error


def _is_ours(command: str, directory: Path, *, gone: bool) -> bool:
    told = installed_for(command)
    return told is not None and (told == directory or (gone and is_gone(told)))


def _ours_in(text: str | None, directory: Path, *, gone: bool) -> dict[str, list[str]]:
    found = _commands_in(text)
    mine = {
        event: [each for each in commands if _is_ours(each, directory, gone=gone)] for event, commands in found.items()
    }
    return {event: commands for event, commands in mine.items() if commands}


def _commands_in(text: str | None) -> dict[str, list[str]]:
    return {} if text is None or is_blank(text) else commands_in(text)


def _cannot(path: Path, fault: BadSettings) -> CannotInstall:
    return CannotInstall(f"{path}, {fault}; nothing was changed")
