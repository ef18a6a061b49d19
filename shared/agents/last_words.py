"""What an agent's last message says beyond its activity: until when it waits (`WAITING-UNTIL: <ISO time>`), and why it
can't continue. Pure.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo

from shared.agents.evidence import Evidence
from shared.contract.states import Activity, Trouble

LATEST = datetime(2200, 1, 1, tzinfo=UTC).timestamp()
"""What lies beyond no calendar has to be asked about."""


def promised(evidence: Iterable[Evidence], zone: tzinfo) -> float | None:
    """The newest promise, in seconds since 1970. A time without a zone is of the agent's own."""
    pieces = [each for each in evidence if each.promise and each.says is Activity.WAITING]
    newest = max(pieces, key=lambda each: each.at, default=None)
    return None if newest is None else _read(newest.promise, zone)


def _read(words: str, zone: tzinfo) -> float | None:
    try:
        found = datetime.fromisoformat(words.strip().upper().rstrip("."))
    except ValueError:
        return None
    try:
        moment = (found if found.tzinfo is not None else found.replace(tzinfo=zone)).timestamp()
    except (OverflowError, OSError, ValueError):
        return None
    return moment if 0 < moment < LATEST else None


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
