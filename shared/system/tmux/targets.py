"""Exact targets. tmux takes a name for a part of another, for a pattern or for a number; an id it never does."""

import re

NAME = re.compile(r"[A-Za-z0-9_-]+")
DIGITS = re.compile(r"[0-9]+")
SESSION, PANE = "$", "%"


def name(what: str, text: str) -> str:
    """A word that is safe in a tmux command; anything else is a ValueError."""
    if not NAME.fullmatch(text):
        raise ValueError(f"a {what} is made of letters, digits, '_' and '-', not {text!r}")
    return text


def exact(sign: str, text: str) -> str:
    """An id of tmux's own; anything else is a ValueError."""
    if text[:1] != sign or not DIGITS.fullmatch(text[1:]):
        raise ValueError(f"a tmux id of this kind is '{sign}' and a number, not {text!r}")
    return text


def is_pane(target: str) -> bool:
    """Whether a target is a pane's id; anything that is neither that nor a session's is a ValueError."""
    if target.startswith(PANE):
        exact(PANE, target)
        return True
    exact(SESSION, target)
    return False
