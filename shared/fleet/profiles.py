"""The backends that come with Muster, read from their data files.

Parsing YAML takes longer than everything else that a process does before it can work. So
`python -m shared.agents --write` keeps the same data as JSON, which is used while it matches the YAML files.
"""

import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from shared.agents.parts import FOLDER, PROFILE, programs_with
from shared.fleet.backend import Backend
from shared.fleet.section import TESTED

READ = FOLDER / "profiles.json"
SAMPLES = re.compile(r"^( +)(?:yes|no):.*\n(?:\1 .*\n)*", re.MULTILINE)


@cache
def shipped() -> dict[str, Backend]:
    """Without the samples of their rules, which only tests need."""
    texts = _texts()
    profiles = kept(READ, texts) or _without_samples(texts)
    return {name: _backend(profile) for name, profile in profiles.items()}


@cache
def with_samples() -> dict[str, Backend]:
    return {name: _backend(_parsed(text)) for name, text in _texts().items()}


def _without_samples(texts: dict[str, str]) -> dict[str, Any]:
    return {name: _parsed(SAMPLES.sub("", text)) for name, text in texts.items()}


def _texts() -> dict[str, str]:
    return {name: (FOLDER / name / PROFILE).read_text(encoding="utf-8") for name in programs_with(PROFILE)}


def _digest(texts: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()


def kept(file: Path, texts: dict[str, str]) -> dict[str, Any] | None:
    """What was kept; None where somebody has changed a data file since, or there is nothing that can be read."""
    try:
        found = json.loads(file.read_bytes())
        return dict(found["profiles"]) if found["made_from"] == _digest(texts) else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _parsed(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def _backend(profile: Any) -> Backend:
    return Backend.model_validate(profile, context=TESTED)


def render() -> str:
    texts = _texts()
    found = {"made_from": _digest(texts), "profiles": _without_samples(texts)}
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"
