"""The backends that come with Muster, read from their profiles.

Parsing YAML would be most of a process's start. So `./muster test --write` stores the same data as JSON,
which is used while it matches the YAML files.
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

STORED = FOLDER / "profiles.json"
SAMPLES = re.compile(r"^( +)(?:yes|no):.*\n(?:\1 .*\n)*", re.MULTILINE)


@cache
def shipped() -> dict[str, Backend]:
    """The shipped backends, without the samples of their rules."""
    texts = _texts()
    profiles = stored_profiles(STORED, texts) or _without_samples(texts)
    return {name: _backend(profile) for name, profile in profiles.items()}


@cache
def with_samples() -> dict[str, Backend]:
    """The same with samples, for tests."""
    return {name: _backend(_parsed(text)) for name, text in _texts().items()}


def _without_samples(texts: dict[str, str]) -> dict[str, Any]:
    return {name: _parsed(SAMPLES.sub("", text)) for name, text in texts.items()}


def _texts() -> dict[str, str]:
    return {name: (FOLDER / name / PROFILE).read_text(encoding="utf-8") for name in programs_with(PROFILE)}


def _digest(texts: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()


def stored_profiles(file: Path, texts: dict[str, str]) -> dict[str, Any] | None:
    """The stored profiles; None if a YAML file has changed since, or the file can't be read."""
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
