"""How a text has to be worded for an agent's input box. Pure."""

import re
import unicodedata

from shared.errors import MusterError
from shared.fleet.backend import Backend, Typing


class TakenForCommand(MusterError):
    """A text that the agent's program would carry out itself instead of showing it to its model."""


def must_be_no_command(typing: Typing, text: str) -> None:
    if typing.command and re.search(typing.command, text):
        raise TakenForCommand(
            "the agent's program would take this text as an order to itself and not show it to its model; if that is"
            " meant, send it with `as_command` (muster send --command), else begin it with another word"
        )


def needs_file(backend: Backend, text: str) -> bool:
    """Whether a paste would not bring it over as it is, or would look like the hint in an empty box."""
    typing = backend.typing
    if any(re.fullmatch(ghost, text) for ghost in backend.screen.ghost):
        return True
    if typing.composes and not unicodedata.is_normalized("NFC", text):
        return True
    return bool(typing.unpasteable and re.search(typing.unpasteable, text))


def completed(typing: Typing, text: str) -> str:
    """The text as it is pasted."""
    return f"{text} " if typing.completes and re.search(typing.completes, text) else text
