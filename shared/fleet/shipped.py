"""The backends that come with Muster, read from their data files."""

from functools import cache

from ruamel.yaml import YAML

from shared.backends import DIRECTORY
from shared.fleet.backend import Backend


@cache
def shipped() -> dict[str, Backend]:
    files = sorted(DIRECTORY.glob("*.yaml"))
    return {file.stem: Backend.model_validate(YAML(typ="safe", pure=True).load(file)) for file in files}
