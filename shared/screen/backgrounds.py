"""What stands on which background: a panel drawn over the rest, and what is chosen of several.

A text that an agent only quotes has the background of what is around it.
"""

from functools import lru_cache

from shared.screen.columns import columns, width
from shared.screen.styles import pieces, words


class Backgrounds:
    """Of a captured screen: a letter for each column of each row."""

    def __init__(self, screen: str) -> None:
        self._rows = _rows(screen)

    def is_panel(self, row: int, start: int, end: int) -> bool:
        """Whether these columns of a row have a background of their own, and those above and below them the same."""
        around = self._rows[row - 1 : row + 2] if row else []
        own = {each for line in around for each in line[start:end]}
        if len(around) != 3 or len(own) != 1 or any(len(line) < end for line in around):
            return False
        return not own & set(self._rows[row][:1])

    def at(self, row: int, start: int, end: int) -> set[str]:
        return set(self._rows[row][start:end]) if row < len(self._rows) else set()


def column(plain: str, place: int) -> int:
    """In which column of its row a place of a text is."""
    return columns(plain[plain.rfind("\n", 0, place) + 1 : place])


def _rows(screen: str) -> list[str]:
    texts, codes = pieces(screen)
    state, letters = ("", False), {("", False): "a"}
    drawn = []
    for text, code in zip(texts, [None, *codes], strict=True):
        state = state if code is None else _after(code, *state)
        letter = letters.setdefault(state, chr(ord("a") + len(letters)))
        if text.isascii():
            drawn += ["\n" if each == "\n" else letter for each in text]
        else:
            drawn += ["\n" if each == "\n" else letter * width(each) for each in text]
    return "".join(drawn).split("\n")


@lru_cache(maxsize=4096)
def _after(codes: str, background: str, reverse: bool) -> tuple[str, bool]:
    for word, numbers in words(codes):
        if word in ("", "0"):
            background, reverse = "", False
        elif word == "48":
            background = str(numbers)
        elif word == "49":
            background = ""
        elif word in ("7", "27"):
            reverse = word == "7"
        elif word.isdigit() and (40 <= int(word) <= 47 or 100 <= int(word) <= 107):
            background = word
    return background, reverse
