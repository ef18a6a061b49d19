"""Compiled when they are first needed, and kept."""

import re
from functools import lru_cache


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)
