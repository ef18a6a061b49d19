"""What a page may ask for: its verbs, the arguments that each needs, and those that it may have. Pure."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from shared.contract.commands import VERBS, Command, Send
from shared.contract.ids import is_id
from shared.contract.topics import first_fault
from shared.errors import MusterError

ANSWER = "answer"
ARGUMENTS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    # These answer a dialog: the one that the page showed, and no other.
    "approve": (frozenset({"agent", "fingerprint"}), frozenset()),
    "deny": (frozenset({"agent", "fingerprint"}), frozenset()),
    ANSWER: (frozenset({"agent", "key", "fingerprint"}), frozenset()),
    "send": (frozenset({"agent", "text"}), frozenset({"when"})),
    "comment": (frozenset({"agent", "text"}), frozenset()),
    **dict.fromkeys(("interrupt", "stop", "restart", "resume", "spawn"), (frozenset({"agent"}), frozenset[str]())),
}


class BadPageCommand(MusterError):
    """What no page sends."""


def page_command(verb: object, arguments: Mapping[str, Any]) -> Command:
    """The command that a page asks for. Raises BadPageCommand."""
    if not isinstance(verb, str) or verb not in ARGUMENTS:
        raise BadPageCommand("pages send no such command")
    needed, optional = ARGUMENTS[verb]
    if missing := sorted(name for name in needed if not arguments.get(name)):
        raise BadPageCommand(f"{verb} needs {' and '.join(missing)}")
    if arguments.keys() - needed - optional:
        raise BadPageCommand(f"{verb} takes nothing but {', '.join(sorted(needed | optional))}")
    for name, value in arguments.items():
        if not isinstance(value, str) or not _can_be_sent(value):
            raise BadPageCommand(f"{name} is no text that can be sent")
    if not is_id(arguments["agent"]):
        raise BadPageCommand("`agent` is no agent's name")
    given: dict[str, Any] = dict(arguments)
    if verb == ANSWER:
        given["keys"] = [given.pop("key")]
    try:
        return (Send if verb == ANSWER else VERBS[verb]).model_validate(given)
    except ValidationError as error:
        raise BadPageCommand(f"{verb} can't be sent: {first_fault(error)}") from error


def _can_be_sent(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True
