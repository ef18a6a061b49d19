"""What is filled into a backend's words. Pure."""

import re
from collections.abc import Mapping, Sequence


def spliced(argv: Sequence[str], lists: Mapping[str, Sequence[str]]) -> list[str]:
    """Put lists in place of the words that name them."""
    named = {f"{{{name}}}": words for name, words in lists.items()}
    return [each for word in argv for each in named.get(word, [word])]


def fill(word: str, values: Mapping[str, str]) -> str:
    """Put values in place of `{name}`, once; other braces stay, for a command line may need them."""
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), word)
