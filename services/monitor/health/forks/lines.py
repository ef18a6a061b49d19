"""Output that is one JSON object a line. Pure."""

import json
from collections.abc import Iterator
from typing import Any


def objects(text: str) -> Iterator[dict[str, Any]]:
    """Each line that is an object; what is none, a warning say, is passed over."""
    for line in text.splitlines():
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def text_at(found: Any, *path: str) -> str:
    """The text at a path of keys; empty where there is none."""
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""
