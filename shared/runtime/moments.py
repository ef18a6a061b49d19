"""Which numbers in a service's records are moments of the past, and how these move when the clock is set. Pure.

`since: Moment` is when something happened: an hour later it is an hour ago, whatever the clock shows. A promise by the
clock on the wall (a limit's reset, a park) is a plain `float` and stays. A record in which that depends on something
has `with_moments`.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

Move = Callable[[float], float]


class _MomentMark:
    """Marks a number in a type."""


_MARK = _MomentMark()
Moment = Annotated[float, _MARK]
"""Epoch seconds of the past, or of a wait that follows from it; 0 stands for never."""


def mover(by: float) -> Move:
    """Moves moments by a jump of the clock."""
    return lambda moment: moment + by if moment else moment


def moved(kind: Any, value: Any, move: Move) -> Any:
    """A value of this type with its moments moved."""
    origin, of = get_origin(kind), get_args(kind)
    if is_dataclass(value) and not isinstance(value, type):
        return _moved_record(value, move)
    if origin is Annotated:
        return move(value) if _MARK in of[1:] and isinstance(value, float) else moved(of[0], value, move)
    if origin in (Union, UnionType):
        return next((after for each in of if (after := moved(each, value, move)) != value), value)
    if isinstance(value, Mapping) and len(of) == 2:
        return {key: moved(of[1], each, move) for key, each in value.items()}
    if isinstance(value, list | tuple) and of:
        return type(value)(moved(of[0], each, move) for each in value)
    return value


def _moved_record(record: Any, move: Move) -> Any:
    hints = get_type_hints(type(record), include_extras=True)
    before = {each.name: getattr(record, each.name) for each in fields(record) if each.init}
    changes = {name: after for name, value in before.items() if (after := moved(hints[name], value, move)) is not value}
    after = replace(record, **changes) if changes else record
    return after.with_moments(move) if hasattr(after, "with_moments") else after
