"""What an agent's own last words tell beyond what it is doing: until when it waits, and why it can't go on. Pure."""

import re

from shared.states import Trouble

PROMISE = re.compile(
    r"\bWAITING-UNTIL:[*_`<‹ \t]{0,8}"
    r"(\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)?(?: ?[Zz]\b|[+-]\d\d:?\d\d)?)"
)
LONGEST = 4_000
"""In characters: what is said at the end counts, and an error may carry what a server sent."""
NO_CREDIT = re.compile(r"(?i)\bcredits?\b|\bbilling|\bquota\b|\binsufficient|\bpayment|\b402\b")
NO_MODEL = re.compile(r"(?i)model[ _-]?not[ _-]?found|\bmodel\b.*\b(?:does not exist|not supported|unavailable)")


NO_LIMIT = re.compile(r"not your usage limit|experiencing high load|currently unavailable|\b529\b")
"""Called a rate limit, and none of the account's: the next prompt may do."""


def promise_in(words: str) -> str:
    """What stands behind the last `WAITING-UNTIL:`; empty where there is none that could be a time."""
    found = PROMISE.findall(words[-LONGEST:])
    return found[-1].replace(" Z", "Z") if found else ""


def trouble_in(*said: object) -> Trouble:
    """Why an agent can't go on after an error that no next prompt mends."""
    words = " ".join(str(each)[:LONGEST] for each in said)
    if NO_MODEL.search(words):
        return Trouble.SETUP
    return Trouble.CREDIT if NO_CREDIT.search(words) else Trouble.LOGIN
