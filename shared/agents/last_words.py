"""What an agent's last message says beyond its activity: its promise (`WAITING-UNTIL: <ISO time>`), and why it can't
continue. Pure.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo

from shared.agents.evidence import Evidence
from shared.contract.states import Activity, Trouble

LATEST = datetime(2200, 1, 1, tzinfo=UTC).timestamp()
"""Later times count as no promise."""


def promised(evidence: Iterable[Evidence], zone: tzinfo) -> float | None:
    """The newest promise, in seconds since 1970. A time without a zone is in `zone`."""
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
"""How many characters at the end of a message are read."""
NO_CREDIT = re.compile(r"(?i)\bcredits?\b|\bbilling|\bquota\b|\binsufficient|\bpayment|\b402\b")
NO_MODEL = re.compile(r"(?i)model[ _-]?not[ _-]?found|\bmodel\b.*\b(?:does not exist|not supported|unavailable)")


NO_LIMIT = re.compile(r"not your usage limit|experiencing high load|currently unavailable|\b529\b")
"""Errors that are called a rate limit but are not of the account: the next prompt may work."""


def promise_in(words: str) -> str:
    """The time after the last `WAITING-UNTIL:`; empty if there is none."""
    found = PROMISE.findall(words[-LONGEST:])
    return found[-1].replace(" Z", "Z") if found else ""


def trouble_in(*said: object) -> Trouble:
    """The kind of trouble in an error that the next prompt won't solve."""
    words = " ".join(str(each)[:LONGEST] for each in said)
    if NO_MODEL.search(words):
        return Trouble.SETUP
    return Trouble.CREDIT if NO_CREDIT.search(words) else Trouble.LOGIN
