"""Finding, reading and re-reading the fleet file. A fault names file, line, key and what is allowed."""

import difflib
import hashlib
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from shared.errors import MusterError
from shared.fleet.model import Backend, Declaration
from shared.fleet.shipped import shipped
from shared.ids import as_id
from shared.topics import Space
from shared.yaml_text import NotYaml, line_of, load

FILE_NAME = "fleet.yaml"


class BadFleetFile(MusterError):
    """The fleet file can't be used as it is."""

    exit_code = 78  # sysexits' EX_CONFIG


@dataclass(frozen=True)
class Fleet:
    """A good fleet file, and what follows from where it is."""

    path: Path
    declared: Declaration

    @property
    def home(self) -> Path:
        """Where Muster keeps its own files for this fleet."""
        return self.path.parent / ".muster"

    @property
    def space(self) -> Space:
        return Space(host=self.declared.host or as_id(socket.gethostname()), prefix=self.declared.prefix)

    @property
    def journal(self) -> Path:
        return self.home / "journal.db"

    @property
    def registry(self) -> Path:
        return self.home / "registry.yaml"

    @property
    def stamp(self) -> str:
        """Marks this fleet's tmux sessions: two fleets may share one tmux server."""
        return hashlib.sha256(str(self.home).encode()).hexdigest()[:12]

    def backend(self, name: str) -> Backend | None:
        return self.declared.backends.get(name) or shipped().get(name)


def find_fleet_file(given: str | None) -> Path:
    """`--fleet`, else `MUSTER_FLEET`, else `./fleet.yaml`, else the one in the user's configuration directory."""
    named = given or os.environ.get("MUSTER_FLEET")
    if named:
        path = Path(named).expanduser()
        if not path.is_file():
            raise BadFleetFile(f"there is no fleet file {path}; make one with: muster --fleet {path} init")
        return path.resolve()
    candidates = [Path.cwd() / FILE_NAME, config_directory() / FILE_NAME]
    for path in candidates:
        if path.is_file():
            return path.resolve()
    places = " or ".join(str(path) for path in candidates)
    raise BadFleetFile(f"there is no fleet file: looked for {places}; make one here with: muster init")


def config_directory() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path(os.environ.get("HOME") or "/") / ".config")
    return Path(base) / "muster"


def load_fleet(path: Path) -> Fleet:
    """Read and check the file, or raise BadFleetFile."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadFleetFile(f"{path} can't be read: {error}") from error
    try:
        document = load(text)
    except NotYaml as fault:
        raise BadFleetFile(f"{path}, line {fault.line}: not YAML: {fault.problem}") from fault
    if document is None:
        document = {}
    if not isinstance(document, Mapping):
        raise BadFleetFile(f"{path}, line 1: the file must be a mapping with keys such as: agents, backends, broker")
    try:
        declared = Declaration.model_validate(document)
    except ValidationError as error:
        raise BadFleetFile("\n".join(_sentence(path, document, fault) for fault in error.errors())) from error
    fleet = Fleet(path, declared)
    _check_references(fleet, document)
    return fleet


def _check_references(fleet: Fleet, document: Any) -> None:
    known = sorted({*fleet.declared.backends, *shipped()})
    for name, agent in fleet.declared.agents.items():
        if agent.backend not in known:
            where = ("agents", name, "backend") if "backend" in (document["agents"][name] or {}) else ("agents", name)
            raise BadFleetFile(
                f"{_place(fleet.path, document, where)}: there is no backend {agent.backend!r};"
                f" {_allowed(agent.backend, known)}"
            )


def _sentence(path: Path, document: Any, fault: Any) -> str:
    where = fault["loc"]
    said = fault["msg"]
    if fault["type"] == "extra_forbidden":
        said = f"unknown key; {_allowed(str(where[-1]), _keys_at(where[:-1]))}"
    return f"{_place(path, document, where)}: {said}"


def _allowed(given: str, allowed: Sequence[str]) -> str:
    close = difflib.get_close_matches(given, allowed, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}allowed are: {', '.join(allowed)}"


def _keys_at(where: Sequence[Any]) -> list[str]:
    """The keys that the model has at a place, walked by the annotations."""
    model: Any = Declaration
    for step in where:
        if isinstance(model, type) and issubclass(model, BaseModel):
            model = model.model_fields[step].annotation
        else:
            model = model.__args__[-1]
    return sorted(model.model_fields) if isinstance(model, type) and issubclass(model, BaseModel) else []


def _place(path: Path, document: Any, where: Sequence[Any]) -> str:
    return f"{path}, line {line_of(document, where)}: {'.'.join(str(step) for step in where)}"


class FleetFile:
    """The file while it is being edited: the last good one stays in force."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen = self._stamp()  # before reading: an edit in between is then seen as one
        self.fleet = load_fleet(path)
        self.fault = ""

    def refresh(self) -> bool:
        """Read the file again if it changed; True when there is a new good one."""
        stamp = self._stamp()
        if stamp == self._seen:
            return False
        self._seen = stamp
        try:
            self.fleet = load_fleet(self.path)
        except BadFleetFile as fault:
            self.fault = str(fault)
            return False
        self.fault = ""
        return True

    def _stamp(self) -> tuple[int, int, int]:
        try:
            status = self.path.stat()
        except OSError:
            return (0, 0, 0)
        return (status.st_ino, status.st_mtime_ns, status.st_size)
