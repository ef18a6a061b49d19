"""What an agent says of its usage limit, made out of all evidence for it. Pure.

Each source knows another part of it: a hook the banner, a transcript perhaps the very second, a screen that the agent
goes on by itself. The most exact word on each counts.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from services.monitor.evidence import Evidence, LimitSaid, Source
from services.monitor.limits.banners import Banner, read_banner
from services.monitor.limits.reset_times import Reset, read_reset
from shared.states import Activity

MODELS = frozenset(
    {
        *("opus", "sonnet", "haiku", "fable", "mythos"),
        *("gpt", "codex", "luna", "sol", "terra", "astra", "o3", "o4"),
        *("gemini", "pro", "flash", "ultra", "deepseek", "qwen", "kimi", "grok", "llama", "mistral"),
    }
)
"""Words by which a limit is known to be of a model, and not of all that an account is used for."""
PLANS = ("plan", "account", "subscription", "spend", "usage")
"""What follows a word that names a plan, as `Pro plan` does."""
ORDER = list(Source)
LATEST = datetime(2200, 1, 1, tzinfo=UTC).timestamp()


@dataclass(frozen=True)
class Claim:
    """What is known of a limit."""

    at: float
    """When it was hit, by the source that is believed most."""
    scope: str = ""
    resets_at: float | None = None
    exact_to_s: float = 0.0
    """It may be so much later."""
    continues: bool = False
    """Whether the agent says that it goes on by itself then."""
    said: str = ""
    by_file: bool = True
    """Whether a hook or a file says so, with its own time; a screen is only known since when it was first seen."""

    @property
    def model(self) -> str | None:
        """The model that it is of, by a word of its name; None where it is of the whole account."""
        words = re.findall(r"[a-z0-9]+", self.scope.lower())
        if any(word in PLANS for word in words):
            return None
        return next((word for word in words if word in MODELS), None)


def claim_in(evidence: Iterable[Evidence], zone: tzinfo) -> Claim | None:
    """What the evidence says of a limit; None where nothing says that one is reached."""
    found = [each for each in evidence if each.says is Activity.LIMITED and each.limit is not None]
    pieces = sorted(found, key=lambda each: ORDER.index(each.source))
    if not pieces:
        return None
    banners = [_banner(each.limit, zone) for each in pieces if each.limit is not None]
    resets = [each.reset for each in banners if each.reset is not None]
    best = min(resets, key=lambda each: each.exact_to_s, default=None)
    return Claim(
        at=pieces[0].at,
        scope=_most_telling([each.scope for each in banners]),
        resets_at=best.at.timestamp() if best is not None else None,
        exact_to_s=best.exact_to_s if best is not None else 0.0,
        continues=_continues(pieces, banners),
        by_file=pieces[0].source is not Source.SCREEN,
        said=next((each.limit.words for each in pieces if each.limit is not None and each.limit.words), ""),
    )


def _continues(pieces: list[Evidence], banners: list[Banner]) -> bool:
    """Whether it goes on by itself: somebody says so, and nobody that it was called off."""
    says_so = any(each.continues for each in banners) or any(each.limit and each.limit.continues for each in pieces)
    return says_so and not any(each.cancelled for each in banners)


def _banner(said: LimitSaid, zone: tzinfo) -> Banner:
    at = datetime.fromtimestamp(said.at, UTC)
    read = read_banner(said.words, at, zone) or Banner("", None, None, cancelled=False)
    reset = read_reset(said.reset, at, zone) if said.reset else None
    continues = read_reset(said.continues, at, zone) if said.continues else None
    exact = _moment(said.resets_at)
    return Banner(said.scope or read.scope, exact or reset or read.reset, continues or read.continues, read.cancelled)


def _moment(seconds: float | None) -> Reset | None:
    if seconds is None or not 0 < seconds < LATEST:
        return None
    return Reset(datetime.fromtimestamp(seconds, UTC), 1.0)


def _most_telling(scopes: list[str]) -> str:
    named = [scope for scope in scopes if scope]
    return next((scope for scope in named if scope.lower() not in ("usage", "rate")), named[0] if named else "")
