"""Putting what a person wrote over what it stands on: defaults below agents, shipped backends below declared ones."""

from collections.abc import Mapping
from typing import Any, TypeVar

from shared.fleet.section import Section

S = TypeVar("S", bound=Section)

EITHER_OR = (("prompt", "prompt_file"),)
"""Who says one of these has not left the other as it was."""
WHOLE = ("wake",)
"""Mappings that make sense only as they were written together."""


def overlay(below: S, above: S) -> S:
    """`above`, and where it says nothing `below`. Mappings are merged, lists and plain values replaced."""
    base, changes = below.model_dump(exclude_unset=True), above.model_dump(exclude_unset=True)
    for one, other in EITHER_OR:
        if one in changes or other in changes:
            base = {key: value for key, value in base.items() if key not in (one, other)}
    return type(above).model_validate(_merge(base, changes))


def _merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        mergeable = isinstance(value, Mapping) and isinstance(base.get(key), Mapping) and key not in WHOLE
        merged[key] = _merge(base[key], value) if mergeable else value
    return merged
