"""Putting what a person wrote over what it stands on: defaults below agents, shipped backends below declared ones."""

from collections.abc import Mapping
from typing import Any, TypeVar

from shared.fleet.section import Section

S = TypeVar("S", bound=Section)

EITHER_OR = (("prompt", "prompt_file"),)
"""Who says one of these has not left the other as it was."""
WHOLE = ("wake",)
"""Mappings that make sense only as they were written together."""
DIALOGS = "dialogs"
"""The list whose members have names, and are merged by them."""


def overlay(below: S, above: S) -> S:
    """`above`, and where it says nothing `below`. Mappings and dialogs are merged, lists and plain values replaced."""
    base, changes = below.model_dump(exclude_unset=True), above.model_dump(exclude_unset=True)
    for one, other in EITHER_OR:
        if one in changes or other in changes:
            base = {key: value for key, value in base.items() if key not in (one, other)}
    return type(above).model_validate(_merge(base, changes))


def _merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        if key == DIALOGS and base.get(key):
            merged[key] = _merge_dialogs(base[key], value)
            continue
        mergeable = isinstance(value, Mapping) and isinstance(base.get(key), Mapping) and key not in WHOLE
        merged[key] = _merge(base[key], value) if mergeable else value
    return merged


def _merge_dialogs(base: list[dict[str, Any]], changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """By id: new ones first, for the first that matches counts. One with a `match` takes the other's place whole, so
    that keys are pressed in no other dialog than they were meant for.
    """
    changed = {each["id"]: each for each in changes}
    there = {each["id"] for each in base}
    merged = [each for name, each in changed.items() if name not in there]
    for each in base:
        change = changed.get(each["id"], {})
        merged.append(change if "match" in change else {**each, **change})
    return [each for each in merged if each.get("match", "") is not None]
