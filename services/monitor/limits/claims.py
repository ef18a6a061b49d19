"""What an agent says about its usage limit, read from its banner and combined from all evidence. Pure.

Hooks and transcripts mark such a sentence by other fields, since prose that quotes a banner reads the same. A warning,
or a message that the limit is over, does not count. Each source knows another part: a hook the banner, a transcript
perhaps the exact second, a screen that the agent continues by itself. The most exact statement counts.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from itertools import islice

from services.monitor.limits.reset_times import ResetTime, plain, read_reset
from shared.agents.evidence import Evidence, EvidenceSource, LimitStatement
from shared.contract.states import Activity

READ_CHARACTERS = 4_000
"""An error may carry all that the server sent; the rest is not read."""
MAX_TIMES, MAX_WORDS = 8, 12
"""How many places are searched for a time, and how many words there: `Thu, Dec 31, 2026, at 11:59 pm (UTC)` has 8."""

OVER = re.compile(r"(?i)\busage\s+limit\s+reset\b(?:\s*[·∙•]\s*continuing\s+automatically\b)?")
"""Statements before this are about a limit that is over."""
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
SPEAKS_OF_LIMIT = re.compile(
    r"(?i)\blimit\s+reached\b|\blimit\s+resets\b|\blimit\s+to\s+reset\b|\baccess\s+resets\b|\bregain\s+access\s+on\b"
    r"|\bquota\s+will\s+reset\b|\bAPI\s+Error:\s+(?:Request\s+rejected\s+)?\(?429\b"
    r"|\bcontinuing\s+automatically\s+at\b|\bautomatic\s+continue\s+(?:cancell?ed|stopped)\b"
    r"|\[retrying\s+in\s+\d+[dhm]"  # opencode: a wait of minutes or longer is for a limit
)
FILLERS = re.compile(r"(?i)^(?:(?:claude(?: ai)?|specified|current|account's|plan's)(?: |$))+|(?<=\S) (?:usage|quota)$")
"""Words that do not tell one limit from another."""
GENERAL = ("usage", "rate")
KINDS = (*GENERAL, "session", "hourly", "daily", "weekly", "monthly")
"""These have a capital letter only at the beginning of a sentence; names of models always have one."""

RESETS = re.compile(r"(?i)\b(?:resets?|try\s+again|regain\s+access)\b|\breached\s*\|")
RETRIES = re.compile(r"(?i)\bretrying\b(?=\s+in\b)")
CONTINUES = re.compile(r"(?i)\bcontinuing\s+automatically\b")
CANCELLED = re.compile(r"(?i)\bautomatic\s+continue\s+(?:cancell?ed|stopped|was\s+turned\s+off|did\s+not\s+run)\b")
ENDS = re.compile(r"[·∙•|\"\[\]{}<>\\]")
TIME_GOES_ON = r"\(|at\b|[ap]\.?m\b"
MAY_END = re.compile(rf"(?i)(?<=\.) (?!{TIME_GOES_ON})| (?!{TIME_GOES_ON}|\d)|(?<!,)\n(?!{TIME_GOES_ON})|\Z")
"""Where the words of a time may end. A zone in brackets belongs to the time before it, and a time of day to its date:
half of them would mean another time."""


@dataclass(frozen=True, slots=True)
class Banner:
    scope: str
    """Which limit it is: `session`, `5-hour`, `weekly`, `Opus`, `usage`; empty if it is not named."""
    reset: ResetTime | None
    continues: ResetTime | None
    """When the agent goes on by itself, if it says so."""
    cancelled: bool
    """Whether a person cancelled that."""


def read_banner(sentence: str, said_at: datetime, zone: tzinfo) -> Banner | None:
    """What a sentence says of a limit, said at this time by a program in this zone; None if it speaks of none."""
    text = OVER.split(plain(sentence.strip()[:READ_CHARACTERS])[:READ_CHARACTERS])[-1]
    scopes = [_scope(match["scope"] or "") for form in SCOPES for match in form.finditer(text)]
    if not scopes and not SPEAKS_OF_LIMIT.search(text):
        return None
    retries = _first_time(RETRIES, text, said_at, zone)
    cancelled = _last_place(CANCELLED, text) > _last_place(CONTINUES, text)
    continues = None if cancelled else _first_time(CONTINUES, text, said_at, zone) or retries
    reset = _first_time(RESETS, text, said_at, zone) or retries
    return Banner(_most_telling(scopes), reset, continues, cancelled)


def _scope(words: str) -> str:
    name = FILLERS.sub("", " ".join(words.split()))
    return name.lower() if name.lower() in KINDS else name


def _most_telling(scopes: list[str]) -> str:
    """Of several names for one limit, the most exact."""
    named = [scope for scope in scopes if scope]
    return next((scope for scope in named if scope not in GENERAL), named[0] if named else "")


def _last_place(form: re.Pattern[str], text: str) -> int:
    return max((match.start() for match in form.finditer(text)), default=-1)


def _first_time(lead: re.Pattern[str], text: str, said_at: datetime, zone: tzinfo) -> ResetTime | None:
    """The first time after the lead words. `Try again later` names none, but another line may."""
    tails = (text[match.end() :] for match in islice(lead.finditer(text), MAX_TIMES))
    read = (read_reset(words, said_at, zone) for tail in tails for words in _beginnings(tail))
    return next((reset for reset in read if reset is not None), None)


def _beginnings(tail: str) -> Iterator[str]:
    """The beginnings that may be a time, the longest first: `3pm (UTC)` before `3pm`, which means another time."""
    lines = (" ".join(line.split()) for line in ENDS.split(tail, maxsplit=1)[0].splitlines())
    words = "\n".join(filter(None, lines))
    ends = [match.start() for match in islice(MAY_END.finditer(words), MAX_WORDS)]
    return (words[:end] for end in reversed(ends))


MODELS = frozenset(
    {
        *("opus", "sonnet", "haiku", "fable", "mythos"),
        *("gpt", "codex", "luna", "sol", "terra", "astra", "o3", "o4"),
        *("gemini", "pro", "flash", "ultra", "deepseek", "qwen", "kimi", "grok", "llama", "mistral"),
    }
)
"""Words that show that a limit is of a model, not of the whole account."""
PLANS = ("plan", "account", "subscription", "spend", "usage")
"""Words that show that a limit is of a plan, as in `Pro plan`."""
ORDER = list(EvidenceSource)
LATEST = datetime(2200, 1, 1, tzinfo=UTC).timestamp()


@dataclass(frozen=True)
class LimitClaim:
    """What all evidence together says of a limit."""

    at: float
    """When it was hit, by the first source in order."""
    scope: str = ""
    resets_at: float | None = None
    exact_to_s: float = 0.0
    """The reset may be this much later."""
    continues: bool = False
    """Whether the agent goes on by itself then."""
    said: str = ""
    by_file: bool = True
    """Whether a hook or a file says so, with its own time. A screen is dated when it was first seen."""

    @property
    def model(self) -> str | None:
        """The model that the limit is of; None where it is of the whole account."""
        words = re.findall(r"[a-z0-9]+", self.scope.lower())
        if any(word in PLANS for word in words):
            return None
        return next((word for word in words if word in MODELS), None)


def claim_in(evidence: Iterable[Evidence], zone: tzinfo) -> LimitClaim | None:
    """What the evidence says of a limit; None where none is reached."""
    found = [each for each in evidence if each.says is Activity.LIMITED and each.limit is not None]
    pieces = sorted(found, key=lambda each: ORDER.index(each.source))
    if not pieces:
        return None
    banners = [_banner(each.limit, zone) for each in pieces if each.limit is not None]
    resets = [each.reset for each in banners if each.reset is not None]
    best = min(resets, key=lambda each: each.exact_to_s, default=None)
    return LimitClaim(
        at=pieces[0].at,
        scope=_most_telling([each.scope for each in banners]),
        resets_at=best.at.timestamp() if best is not None else None,
        exact_to_s=best.exact_to_s if best is not None else 0.0,
        continues=_continues(pieces, banners),
        by_file=pieces[0].source is not EvidenceSource.SCREEN,
        said=next((each.limit.words for each in pieces if each.limit is not None and each.limit.words), ""),
    )


def _continues(pieces: list[Evidence], banners: list[Banner]) -> bool:
    """Whether a source says that it goes on by itself, and none that this was cancelled."""
    says_so = any(each.continues for each in banners) or any(each.limit and each.limit.continues for each in pieces)
    return says_so and not any(each.cancelled for each in banners)


def _banner(said: LimitStatement, zone: tzinfo) -> Banner:
    at = datetime.fromtimestamp(said.at, UTC)
    read = read_banner(said.words, at, zone) or Banner("", None, None, cancelled=False)
    reset = read_reset(said.reset, at, zone) if said.reset else None
    continues = read_reset(said.continues, at, zone) if said.continues else None
    exact = _moment(said.resets_at)
    return Banner(said.scope or read.scope, exact or reset or read.reset, continues or read.continues, read.cancelled)


def _moment(seconds: float | None) -> ResetTime | None:
    if seconds is None or not 0 < seconds < LATEST:
        return None
    return ResetTime(datetime.fromtimestamp(seconds, UTC), 1.0)
