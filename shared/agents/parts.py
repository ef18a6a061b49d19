"""The index of the agents' folders: one folder per program, one module per part, imported on first use."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

FOLDER = Path(__file__).parent
PROFILE = "profile.yaml"

T = TypeVar("T")


@cache
def programs_with(file: str = PROFILE) -> tuple[str, ...]:
    """The programs whose folder has this file."""
    return tuple(sorted(found.parent.name for found in FOLDER.glob(f"*/{file}")))


class Parts(Mapping[str, T], Generic[T]):
    """One part of every program that has it, by program: `name` in `shared/agents/<program>/<module>.py`."""

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def __getitem__(self, program: str) -> T:
        if program not in programs_with(f"{self._module}.py"):
            raise KeyError(program)
        found: Any = getattr(import_module(f"shared.agents.{program}.{self._module}"), self._name)
        return found  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[str]:
        return iter(programs_with(f"{self._module}.py"))

    def __len__(self) -> int:
        return len(programs_with(f"{self._module}.py"))
