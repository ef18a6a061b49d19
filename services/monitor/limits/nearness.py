"""Warnings that a usage limit is near: each account's once in a while, however many of its agents show it. Pure."""

import re
from collections.abc import Mapping

AGAIN_S = 1800.0
NUMBERS = re.compile(r"\d+")

Told = Mapping[str, float]
"""When each warning was last told, by its account and its words but for the numbers."""


def news(told: Told, account: str, words: str, now: float) -> Told | None:
    """What is told after this warning; None where it was told not long ago."""
    key = f"{account}: {NUMBERS.sub('', words)}"[:200]
    if 0 <= now - told.get(key, float("-inf")) < AGAIN_S:
        return None
    recent = {each: at for each, at in told.items() if 0 <= now - at < AGAIN_S}
    return {**recent, key: now}
