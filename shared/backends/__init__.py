"""The backends that ship with Muster, as data files beside this one. A fleet file may override any of them."""

from functools import cache
from pathlib import Path

from ruamel.yaml import YAML

from shared.fleet.model import Backend

DIRECTORY = Path(__file__).parent


@cache
def shipped() -> dict[str, Backend]:
    return {
        path.stem: Backend.model_validate(YAML(typ="safe", pure=True).load(path))
        for path in sorted(DIRECTORY.glob("*.yaml"))
    }
