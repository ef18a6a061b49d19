"""How a registry of an older version becomes one of ours, by edits in place."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from registry.document import Document
from registry.planning import Edit, Put, Renumber

VERSION = 2


def from_1_to_2(document: Document) -> Iterator[Edit]:
    """Sessions tell when they began, and ended ones when they ended: as far as it is known, when they last changed."""
    for name, entry in document.agents.items():
        fields = entry.fields
        missing = "started" if fields.get("status") == "running" else "ended"
        if fields.get("since") is not None and fields.get(missing) is None:
            yield Put("agents", name, {missing: _as_text(fields["since"])})


MIGRATIONS: Mapping[int, Callable[[Document], Iterator[Edit]]] = {1: from_1_to_2}


def migrated(document: Document, version: int) -> Document:
    """The document as the present version has it; the one given, if it is of that version."""
    while version < VERSION:
        edits = list(MIGRATIONS[version](document))
        version += 1
        document = document.edit([*edits, Renumber(version)])
    return document


def _as_text(moment: Any) -> str:
    """A time that a person wrote without quotes was read as one."""
    return str(moment.isoformat()) if hasattr(moment, "isoformat") else str(moment)
