"""What is wrong with a fleet file, in words: file, line, key and what is allowed. Values are never repeated."""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from shared.errors import MusterError
from shared.fleet.model import Declaration
from shared.yaml_text import line_of


class BadFleetFile(MusterError):
    """The fleet file can't be used as it is."""

    exit_code = 78  # sysexits' EX_CONFIG


class Faults:
    """Writes sentences about one file."""

    def __init__(self, path: Path, document: Any) -> None:
        self._path = path
        self._document = document

    def at(self, where: Sequence[Any], said: str) -> BadFleetFile:
        return BadFleetFile(self.sentence(where, said))

    def sentence(self, where: Sequence[Any], said: str) -> str:
        line = line_of(self._document, where)
        return f"{self._path}, line {line}: {'.'.join(str(step) for step in where)}: {said}"

    def of(self, fault: Any) -> str:
        """A sentence about what the validation found."""
        where: tuple[Any, ...] = fault["loc"]
        if where and where[-1] == "[key]":
            return self.sentence(where[:-1], f"not a name that can stand here: {fault['msg']}")
        match fault["type"]:
            case "extra_forbidden":
                said = f"unknown key; {allowed(str(where[-1]), keys_at(where[:-1]))}"
            case "missing":
                said = f"it is needed; the keys here are: {', '.join(keys_at(where[:-1]))}"
            case "enum" | "literal_error":
                said = allowed(str(self._given(where)), _expected(fault))
            case "model_type" | "model_attributes_type":
                said = f"a mapping is expected here, with keys such as: {', '.join(keys_at(where))}"
            case _:
                said = str(fault["msg"]).removeprefix("Value error, ")
        return self.sentence(where, said)

    def _given(self, where: Sequence[Any]) -> Any:
        node = self._document
        for step in where:
            try:
                node = node[step]
            except (KeyError, IndexError, TypeError):
                return ""
        return node


def allowed(given: str, choices: Sequence[str]) -> str:
    close = difflib.get_close_matches(given, choices, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}allowed are: {', '.join(choices) or 'none'}"


def keys_at(where: Sequence[Any]) -> list[str]:
    """The keys that can stand at a place, found by the models' annotations."""
    model: Any = Declaration
    for step in where:
        model = _within(model, step)
    return sorted(model.model_fields) if _is_model(model) else []


def _within(model: Any, step: Any) -> Any:
    if _is_model(model):
        field = model.model_fields.get(step)
        return _plain(field.annotation) if field else None
    if get_origin(model) in (dict, list):
        return _plain(get_args(model)[-1])
    return None


def _plain(annotation: Any) -> Any:
    """Without what only narrows it: `X | None` and `Annotated[X, …]` are X."""
    if get_origin(annotation) is Annotated:
        return _plain(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return _plain(next(each for each in get_args(annotation) if each is not type(None)))
    return annotation


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _expected(fault: Mapping[str, Any]) -> list[str]:
    said = str(fault.get("ctx", {}).get("expected", ""))
    return [word.strip().strip("'") for word in said.replace(" or ", ", ").split(",") if word.strip()]
