"""Ids: short names that are safe in a topic, a tmux session name and a file name alike."""

import os
import re
import time
from typing import Annotated, NewType

from pydantic import StringConstraints

ID_PATTERN = r"^[a-z0-9_-]{1,64}$"
"""No dots and no spaces: they break brokers and tmux."""

_ID = re.compile(ID_PATTERN)
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"

Epoch = NewType("Epoch", str)

Id = Annotated[str, StringConstraints(pattern=ID_PATTERN)]
"""An id in a document or a fleet file; pydantic checks it."""

CONVERSATION_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"
"""The agent's own id of a conversation. No leading dash: it becomes an argument of a program."""
ConversationId = Annotated[str, StringConstraints(pattern=CONVERSATION_PATTERN)]


def is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def is_conversation(text: str) -> bool:
    return re.fullmatch(CONVERSATION_PATTERN, text) is not None


def as_id(text: str) -> str:
    """An id that resembles the text, a host name for example."""
    cleaned = re.sub(r"[^a-z0-9_-]+", "-", text.lower()).strip("-")
    return cleaned[:64] or "host"


def new_id() -> str:
    """A unique id; ids sort by the millisecond in which they were made."""
    number = (time.time_ns() // 1_000_000 << 50) | int.from_bytes(os.urandom(7)) >> 6
    digits = []
    for _ in range(19):
        number, digit = divmod(number, 32)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))
