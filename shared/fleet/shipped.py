"""The backends that come with Muster, read from their data files."""

import re
from functools import cache
from pathlib import Path

from ruamel.yaml import YAML

from shared.backends import DIRECTORY
from shared.fleet.backend import Backend
from shared.fleet.section import TESTED

SAMPLES = re.compile(r"^( +)(?:yes|no):.*\n(?:\1 .*\n)*", re.MULTILINE)


@cache
def shipped() -> dict[str, Backend]:
    """Without the samples of their rules: only tests need them, and to read them takes longer than all the rest."""
    return {name: _backend(SAMPLES.sub("", text)) for name, text in _texts().items()}


@cache
def with_samples() -> dict[str, Backend]:
    return {name: _backend(text) for name, text in _texts().items()}


def _texts() -> dict[str, str]:
    files: list[Path] = sorted(DIRECTORY.glob("*.yaml"))
    return {file.stem: file.read_text(encoding="utf-8") for file in files}


def _backend(text: str) -> Backend:
    return Backend.model_validate(YAML(typ="safe", pure=True).load(text), context=TESTED)
