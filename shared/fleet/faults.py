"""Faults of a fleet file as sentences: file, line, key and what is allowed. Values are never repeated."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from shared.contract.ids import ID_PATTERN, as_id
from shared.errors import MusterError
from shared.fleet.declaration import Declaration
from shared.fleet.loops import PATH_IN_REPOSITORY
from shared.fleet.policies import CRON
from shared.fleet.section import KEY_NAME, NO_CONTROL_CHARACTERS, VARIABLE, VARIABLES
from shared.system.yaml_text import line_of

UNWRITABLE = re.compile("[\x00\ud800-\udfff]")
MOST_SENTENCES = 20
LONGEST_KEY = 60

SAID = {
    "string_type": "a text is expected; put quotes around it",
    "string_unicode": "a text is expected",
    "path_type": "a path is expected",
    "int_type": "a whole number is expected",
    "int_parsing": "a whole number is expected",
    "int_parsing_size": "a whole number is expected",
    "int_from_float": "a whole number is expected",
    "float_type": "a number is expected",
    "float_parsing": "a number is expected",
    "finite_number": "a number is expected",
    "bool_type": "true or false is expected",
    "bool_parsing": "true or false is expected",
    "list_type": "a list is expected, such as [a, b]",
    "dict_type": "a mapping is expected: a name, a colon and what it stands for, line by line",
    "greater_than": "it must be more than {gt:g}",
    "greater_than_equal": "it must be {ge:g} or more",
    "less_than_equal": "it must be {le:g} or less",
    "too_short": "it needs {min_length} of them at least",
    "string_too_short": "it must not be empty",
    "string_too_long": "it must not be longer than {max_length} characters",
    "invalid_key": "a key must be a text; put quotes around it",
    "recursion_loop": "it contains itself",
}
"""By pydantic's type of the fault."""

PATTERNS = {
    ID_PATTERN: "it may hold small letters, digits, `_` and `-`, at most 64 of them",
    VARIABLE: "the name of an environment variable is expected: letters, digits and `_`",
    VARIABLES: "the name of an environment variable is expected: letters, digits and `_`, and `*` for any part of it",
    KEY_NAME: "a key is expected by tmux's name for it, such as Enter, Escape, Up, C-c, F1 or a",
    CRON: "five fields are expected, as in crontab",
    PATH_IN_REPOSITORY: "a path inside the repository is expected, without a slash before it",
    NO_CONTROL_CHARACTERS: "it must not be empty, nor hold control characters",
}


class BadFleetFile(MusterError):
    """The fleet file can't be used as it is."""

    exit_code = 78  # sysexits' EX_CONFIG


class Faults:
    """Writes the sentences about one file."""

    def __init__(self, path: Path, document: Any) -> None:
        self._path = path
        self._document = document

    def sentence(self, where: Sequence[Any], said: str) -> str:
        return f"{self._path}, line {line_of(self._document, where)}: {_key(where)}: {said}"

    def of(self, fault: Any) -> str:
        """A sentence about a fault that pydantic found."""
        where: tuple[Any, ...] = fault["loc"]
        if where and where[-1] == "[key]":
            return self.sentence(where[:-1], f"not a name that can stand here: {self._name(fault, where[-2])}")
        if fault["type"] == "invalid_key" and "(" in str(where[-1]):
            return self.sentence((*where[:-1], "…"), _said(fault))  # a list or mapping as key may hold anything
        empty = "it is empty; " if self._given(where) is None and fault["type"] != "missing" else ""
        match fault["type"]:
            case "extra_forbidden":
                said = f"unknown key; {allowed(str(where[-1]), keys_at(where[:-1]))}"
            case "missing":
                said = f"it is needed; the keys here are: {', '.join(keys_at(where[:-1]))}"
            case "enum" | "literal_error":
                said = allowed(str(self._given(where)), _expected(fault))
            case "model_type" | "model_attributes_type":
                said = f"{empty}a mapping is expected, with keys such as: {', '.join(keys_at(where))}"
            case _:
                said = empty + _said(fault)
        return self.sentence(where, said)

    def of_characters(self) -> list[str]:
        """Sentences about texts that can't be passed to a program."""
        said = "it holds a NUL or half of a surrogate pair, which no program can be given"
        return [self.sentence(where, said) for where, text in _texts(self._document) if UNWRITABLE.search(text)]

    def _name(self, fault: Mapping[str, Any], given: Any) -> str:
        is_id = fault.get("ctx", {}).get("pattern") == ID_PATTERN
        hint = f"did you mean {as_id(given)!r}? " if is_id and isinstance(given, str) else ""
        return hint + _said(fault)

    def _given(self, where: Sequence[Any]) -> Any:
        node = self._document
        for step in where:
            try:
                node = node[step]
            except (KeyError, IndexError, TypeError):
                return ""
        return node


def _texts(node: Any, where: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Every text of a document with its place. The depth limit is above that of any setting, and ends circles."""
    if isinstance(node, str):
        yield where, node
    elif len(where) < 12:
        inner = node.items() if isinstance(node, Mapping) else enumerate(node) if isinstance(node, list) else ()
        for step, below in inner:
            yield from _texts(below, (*where, step))


def bad(sentences: Iterable[str]) -> BadFleetFile:
    """One error with all sentences, each once, up to a limit."""
    told = list(dict.fromkeys(sentences))
    more = [f"and {len(told) - MOST_SENTENCES} more"] if len(told) > MOST_SENTENCES else []
    return BadFleetFile("\n".join([*told[:MOST_SENTENCES], *more]))


def allowed(given: str, choices: Sequence[str]) -> str:
    """The allowed values, after a guess at what was meant."""
    close = difflib.get_close_matches(given[:LONGEST_KEY], choices, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}allowed are: {', '.join(choices) or 'none'}"


def keys_at(where: Sequence[Any]) -> list[str]:
    """The keys that are allowed at a place, by the models' annotations."""
    model: Any = Declaration
    for step in where:
        model = _within(model, step)
    return sorted(model.model_fields) if _is_model(model) else []


def _key(where: Sequence[Any]) -> str:
    steps = [shown(str(step)) for step in where]
    for place, step in enumerate(steps[1:], start=1):
        if steps[place - 1] == "env" and re.match(VARIABLE, step) is None:
            steps[place] = "…"  # somebody wrote NAME=secret where NAME: secret was meant
    return ".".join(steps)


def shown(text: str) -> str:
    """A text of the file, cut and escaped for a part of one line."""
    cut = text if len(text) <= LONGEST_KEY else f"{text[: LONGEST_KEY - 1]}…"
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in cut)


def _said(fault: Mapping[str, Any]) -> str:
    details = fault.get("ctx", {})
    if fault["type"] == "string_pattern_mismatch":
        return PATTERNS.get(details["pattern"], f"it must match {details['pattern']}")
    if (words := SAID.get(fault["type"])) is not None:
        return words.format(**details)
    return str(fault["msg"]).removeprefix("Value error, ")


def _within(model: Any, step: Any) -> Any:
    if _is_model(model):
        field = model.model_fields.get(step)
        return _plain(field.annotation) if field else None
    if get_origin(model) in (dict, list):
        return _plain(get_args(model)[-1])
    return None


def _plain(annotation: Any) -> Any:
    """X for `X | None` and `Annotated[X, …]`."""
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
