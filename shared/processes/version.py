"""Which version of an agent a process runs, by the package that its program lies in."""

import json
import re
from pathlib import Path

from shared.processes.details import arguments_of
from shared.processes.process import Process

VERSION = re.compile(r"\d+\.\d+\.\d+")
UP_AT_MOST = 6
"""A program lies at most so deep in its package."""
GENERAL = frozenset({"node", "bun", "deno", "npm"})
AT_MOST_BYTES = 1 << 20


def version_of(process: Process) -> str | None:
    """The version of the npm package whose program or script it runs; None where that can't be told."""
    try:
        program = Path(f"/proc/{process.pid}/exe").readlink()
    except OSError:
        program = Path()
    scripts = [Path(word) for word in arguments_of(process)[:3] if word.startswith("/")]
    found = (_version_in(path) for path in (program, *scripts))
    return next((version for version in found if version is not None), None)


def _version_in(path: Path) -> str | None:
    try:
        path = path.resolve()
    except OSError:
        return None
    if VERSION.fullmatch(path.name):  # as Claude's own installer lays it out: `versions/2.1.197`
        return path.name
    for folder in list(path.parents)[:UP_AT_MOST]:
        try:
            with (folder / "package.json").open("rb") as file:
                about = json.loads(file.read(AT_MOST_BYTES))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(about, dict) and isinstance(about.get("version"), str) and about.get("name") not in GENERAL:
            return str(about["version"])
    return None
