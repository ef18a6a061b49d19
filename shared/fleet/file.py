"""Finds, reads and re-reads the fleet file."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.reader import ReaderError

from shared.fleet.check import check
from shared.fleet.declaration import Declaration
from shared.fleet.faults import BadFleetFile, Faults, bad, shown
from shared.fleet.fleet import Fleet
from shared.system.files import signature_of, watch
from shared.system.yaml_text import NotYaml, load

FILE_NAME = "fleet.yaml"
LARGEST_BYTES = 1024 * 1024
"""Reading a larger file would take seconds, and hold up the spawner."""

PROBLEMS = {
    "found duplicate key": "a key is there twice",
    "found undefined alias": "an alias (*) names nothing; put quotes around a text that begins with *",
    "found undefined tag": "a tag (!) is not known; put quotes around a text that begins with !",
    "failed to construct": "a value can't be what it looks like; put quotes around it",
    "but found another document": "there must be one document in the file",
    "maximum recursion depth": "it is nested too deeply",
}
"""Our words where the parser's repeat what was written, or say little."""


def find_fleet_file(given: str | None) -> Path:
    """The given file, else `MUSTER_FLEET`, else `./fleet.yaml`, else the one in the user's configuration directory."""
    named = given or os.environ.get("MUSTER_FLEET")
    if named:
        path = as_path(named)
        if not path.is_file():
            raise BadFleetFile(f"there is no fleet file {path}; make one with: muster --fleet {path} init")
        return path.resolve()
    candidates = [Path.cwd() / FILE_NAME, config_directory() / FILE_NAME]
    for path in candidates:
        if path.is_file():
            return path.resolve()
    places = " or ".join(str(path) for path in candidates)
    raise BadFleetFile(f"there is no fleet file: looked for {places}; make one here with: muster init")


def as_path(written: str) -> Path:
    """A path with `~` expanded; that of an unknown user stays."""
    return Path(os.path.expanduser(written))  # noqa: PTH111 - Path's own would raise


def config_directory() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path(os.environ.get("HOME") or "/") / ".config")
    return Path(base) / "muster"


def load_fleet(path: Path) -> Fleet:
    """Read and check the file. Raises BadFleetFile with every fault and its line."""
    document = _document(path, _text(path))
    faults = Faults(path, document)
    fleet = Fleet(path, _declared(document, faults))
    check(fleet, faults)
    return fleet


# The functions below raise outside of their `except` blocks: the original errors show the text of the file, which may
# hold secrets, and would be part of a trace.


def _text(path: Path) -> str:
    try:
        written = path.read_bytes()
        if len(written) > LARGEST_BYTES:
            said = f"{path} is larger than a fleet file can be: {len(written)} bytes, at most {LARGEST_BYTES} are read"
        else:
            return written.decode("utf-8")
    except OSError as error:
        said = f"{path} can't be read: {error.strerror or error}"
    except UnicodeDecodeError as error:
        line = written.count(b"\n", 0, error.start) + 1
        said = f"{path}, line {line}: it can't be read: this is no text in UTF-8"
    raise BadFleetFile(said)


def _document(path: Path, text: str) -> Any:
    try:
        document = load(text)
    except NotYaml as fault:
        said = f"{path}, line {fault.line}: not YAML: {_problem(fault)}"
    except (LookupError, ArithmeticError, AssertionError, NotImplementedError):
        said = f"{path}, line 1: not YAML: a tag (!) does not fit what follows it"
    else:
        if document is None or isinstance(document, Mapping):
            return {} if document is None else document
        said = f"{path}, line 1: the file must be a mapping with keys such as: agents, backends, broker"
    raise BadFleetFile(said)


def _problem(fault: NotYaml) -> str:
    """The problem with the YAML, without the text of the file."""
    problem = fault.problem
    if found := re.match(r'found duplicate key "([\w.-]{1,64})" with value ', problem):
        return f"the key {shown(found[1])!r} is there twice"
    for begins, said in PROBLEMS.items():
        if problem.startswith(begins):
            return said
    if isinstance(fault.__cause__, MarkedYAMLError | ReaderError):
        return re.sub(r"'([^']*)'", _without_what_was_written, problem)
    return "a value can't be what it looks like; put quotes around it"


def _without_what_was_written(quoted: re.Match[str]) -> str:
    """Drop quoted text, but not single characters and the parser's own words (`<scalar>`)."""
    return quoted[0] if len(quoted[1]) < 3 or quoted[1].startswith("<") else "'…'"


def _declared(document: Any, faults: Faults) -> Declaration:
    sentences = faults.of_characters()
    try:
        declared = Declaration.model_validate(document)
    except ValidationError as error:
        sentences += [faults.of(fault) for fault in error.errors(include_input=False)]
    if sentences:
        raise bad(sentences)
    return declared


class FleetFile:
    """The fleet file of a running service: `fleet` is its last valid version, `fault` says what is wrong since."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen = signature_of(self.path)  # before reading, so that an edit in between is noticed
        self.fleet = load_fleet(path)
        self.fault = ""

    def refresh(self) -> bool:
        """Read the file again if it changed; True if `fleet` is a new one."""
        stamp = signature_of(self.path)
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

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed` from another thread after each change of the file."""
        watch(self.path, changed, self._seen)
