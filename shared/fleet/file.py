"""Finding, reading and re-reading the fleet file."""

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from shared.fleet.check import check
from shared.fleet.faults import BadFleetFile, Faults
from shared.fleet.fleet import Fleet
from shared.fleet.model import Declaration
from shared.yaml_text import NotYaml, load

FILE_NAME = "fleet.yaml"


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
    faults = Faults(path, document)
    try:
        declared = Declaration.model_validate(document)
    except ValidationError as error:
        sentences = dict.fromkeys(faults.of(fault) for fault in error.errors(include_input=False))
        raise BadFleetFile("\n".join(sentences)) from None  # the cause would show what was written, secrets too
    fleet = Fleet(path, declared)
    check(fleet, faults)
    return fleet


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
