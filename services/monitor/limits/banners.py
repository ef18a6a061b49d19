"""What an agent's sentence about a limit says: which limit, when it ends, and whether the agent goes on by itself.

Hooks and transcripts give such a sentence, and know by other fields that it is one: prose that quotes a banner reads
the same. What only warns of a limit, or says that it is over, is none.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import islice

from services.monitor.limits.reset_times import Reset, plain, read_reset

LONGEST = 4_000
"""In characters: an error may carry what the server sent. What comes later is not read."""
MOST_TIMES = 8
MOST_WORDS = 12
"""How many places are looked at for a time, and how many words there: `Thu, Dec 31, 2026, at 11:59 pm (UTC)` has 8."""

OVER = re.compile(r"(?i)\busage\s+limit\s+reset\b(?:\s*[·∙•]\s*continuing\s+automatically\b)?")
"""What was said before this holds no more."""
WORD = r"[\w'/-]+(?:\.[\w'/-]+)*"
SCOPES = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"\b(?:hit|reached|exceed(?:ed)?|exhausted|increase)\s+your(?P<scope>(?:\s+{WORD}){{0,4}}?)"
        r"\s+(?:limits?|quota|capacity)\b",
        rf"(?:^|[^\w\s'/.-]|\.\s|\n)[^\S\n]*(?P<scope>{WORD}(?: {WORD}){{0,2}}?)\s+limit\s+reached\b",
        rf"\blimits?(?:\s+reached)?\s+for\s+(?P<scope>{WORD}(?:\s+{WORD}){{0,4}}?)"
        r"(?=\.?\s*\Z|\.\s|\s*[^\w\s.]|\s+(?:in|on)\b)",
    )
)
SPEAKS = re.compile(
    r"(?i)\blimit\s+reached\b|\blimit\s+resets\b|\blimit\s+to\s+reset\b|\baccess\s+resets\b|\bregain\s+access\s+on\b"
    r"|\bquota\s+will\s+reset\b|\bAPI\s+Error:\s+(?:Request\s+rejected\s+)?\(?429\b"
    r"|\bcontinuing\s+automatically\s+at\b|\bautomatic\s+continue\s+(?:cancell?ed|stopped)\b"
    r"|\[retrying\s+in\s+\d+[dhm]"  # opencode: who waits for minutes or longer waits for a limit to end
)
UNSAID = re.compile(r"(?i)^(?:(?:claude(?: ai)?|specified|current|account's|plan's)(?: |$))+|(?<=\S) (?:usage|quota)$")
"""Words that don't tell one limit from another."""
GENERAL = ("usage", "rate")
KINDS = (*GENERAL, "session", "hourly", "daily", "weekly", "monthly")
"""These are written with a capital letter only because a sentence begins with them; names of models always are."""

RESETS = re.compile(r"(?i)\b(?:resets?|try\s+again|regain\s+access)\b|\breached\s*\|")
RETRIES = re.compile(r"(?i)\bretrying\b(?=\s+in\b)")
CONTINUES = re.compile(r"(?i)\bcontinuing\s+automatically\b")
CANCELLED = re.compile(r"(?i)\bautomatic\s+continue\s+(?:cancell?ed|stopped|was\s+turned\s+off|did\s+not\s+run)\b")
ENDS = re.compile(r"[·∙•|\"\[\]{}<>\\]")
GOES_ON = r"\(|at\b|[ap]\.?m\b"
MAY_END = re.compile(rf"(?i)(?<=\.) (?!{GOES_ON})| (?!{GOES_ON}|\d)|(?<!,)\n(?!{GOES_ON})|\Z")
"""Where the words of a time may be over. A zone in brackets belongs to the time before it, known or not, and a time of
day to its date: half of what can't be read would mean something else."""


@dataclass(frozen=True, slots=True)
class Banner:
    scope: str
    """Which limit, as the words say: `session`, `5-hour`, `weekly`, `Opus`, `usage`. Empty if they don't."""
    reset: Reset | None
    continues: Reset | None
    """When it goes on by itself, where it says so."""
    cancelled: bool
    """It would have gone on by itself, and somebody stopped that."""


def read_banner(sentence: str, said_at: datetime, zone: tzinfo) -> Banner | None:
    """What this says of a limit, if said at this moment by a program in this zone; None if it speaks of none."""
    text = OVER.split(plain(sentence.strip()[:LONGEST])[:LONGEST])[-1]
    scopes = [_scope(match["scope"] or "") for form in SCOPES for match in form.finditer(text)]
    if not scopes and not SPEAKS.search(text):
        return None
    retries = _first_time(RETRIES, text, said_at, zone)
    cancelled = _last_place(CANCELLED, text) > _last_place(CONTINUES, text)
    continues = None if cancelled else _first_time(CONTINUES, text, said_at, zone) or retries
    reset = _first_time(RESETS, text, said_at, zone) or retries
    return Banner(_most_telling(scopes), reset, continues, cancelled)


def _scope(words: str) -> str:
    name = UNSAID.sub("", " ".join(words.split()))
    return name.lower() if name.lower() in KINDS else name


def _most_telling(scopes: list[str]) -> str:
    """Several lines about one limit name it more or less exactly."""
    named = [scope for scope in scopes if scope]
    return next((scope for scope in named if scope not in GENERAL), named[0] if named else "")


def _last_place(form: re.Pattern[str], text: str) -> int:
    return max((match.start() for match in form.finditer(text)), default=-1)


def _first_time(lead: re.Pattern[str], text: str, said_at: datetime, zone: tzinfo) -> Reset | None:
    """The first time that is named after such words. `Try again later` names none, another line may."""
    tails = (text[match.end() :] for match in islice(lead.finditer(text), MOST_TIMES))
    read = (read_reset(words, said_at, zone) for tail in tails for words in _beginnings(tail))
    return next((reset for reset in read if reset is not None), None)


def _beginnings(tail: str) -> Iterator[str]:
    """The longest first: `3pm` is the beginning of `3pm (UTC)`, and means another time."""
    lines = (" ".join(line.split()) for line in ENDS.split(tail, maxsplit=1)[0].splitlines())
    words = "\n".join(filter(None, lines))
    ends = [match.start() for match in islice(MAY_END.finditer(words), MOST_WORDS)]
    return (words[:end] for end in reversed(ends))
