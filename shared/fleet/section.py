"""The base class and the field types of the fleet file's models."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, StringConstraints, ValidationInfo

from shared.system.tmux.requests import KEY


class Section(BaseModel):
    """A part of the file. Unknown keys are refused: a typo must not pass for a setting.

    The text below a key describes it in the JSON Schema.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


TESTED = {"tested": True}
"""Validation context for the shipped profiles: tests check their regular expressions, so they are not compiled here."""


def _is_regex(pattern: str, info: ValidationInfo) -> str:
    if info.context is TESTED:
        return pattern
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"not a regular expression: {error}") from error
    return pattern


LONGEST_S = 1e9
"""Thirty years: more would overflow dates."""
Seconds = Annotated[float, Field(ge=0, le=LONGEST_S, allow_inf_nan=False)]
PositiveSeconds = Annotated[float, Field(gt=0, le=LONGEST_S, allow_inf_nan=False)]
Regex = Annotated[str, AfterValidator(_is_regex)]
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
VARIABLES = r"^[A-Za-z_*][A-Za-z0-9_*]*$"
NO_CONTROL_CHARACTERS = r"^[^\x00-\x1f\x7f]+$"
VariableName = Annotated[str, StringConstraints(pattern=VARIABLE)]
VariablePattern = Annotated[str, StringConstraints(pattern=VARIABLES)]
"""The name of an environment variable; `*` stands for any part of it."""
Variables = dict[VariableName, SecretStr]
"""Values may be secrets: they are never printed, logged or published."""


def listed(given: Any) -> Any:
    """Accept one text where a list of texts is expected."""
    return [given] if isinstance(given, str) else given


KEY_NAME = f"^(?:{KEY.pattern})$"
KeyName = Annotated[str, StringConstraints(pattern=KEY_NAME)]
"""A key by tmux's name for it."""
