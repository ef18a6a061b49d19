"""What a demo agent prints while it works: a few lines of each kind of work, and the row that turns."""

import random
from collections.abc import Iterator
from itertools import chain

CODE = "code"
LINE_EVERY_S = (0.5, 1.6)
GLYPHS = "·✢✳✶✻✽"
VERBS = ("Sketching", "Thinking", "Reading", "Checking", "Comparing", "Writing")

SCENES: dict[str, tuple[tuple[str, ...], ...]] = {
    CODE: (
        ("● Read(src/orders/repository.py)", "  └ 212 lines"),
        ('● Search("write_order")', "  └ 6 matches in 4 files"),
        (
            "● Update(src/orders/repository.py)",
            "  └ 4 additions, 1 removal",
            "    88 - self._old.write(order)",
            "    88 + for table in self._tables:",
            "    89 +     table.write(order)",
        ),
        ("● Bash(ruff check src/orders)", "  └ All checks passed!"),
        ("● Bash(pytest -q tests/orders)", "  └ 41 passed in 2.31s"),
        ("● The new table takes writes; reads still come from the old one.",),
    ),
    "tests": (
        ("● Bash(git pull --rebase)", "  └ Already up to date."),
        ("● Bash(pytest -q tests/orders)", "  └ 41 passed in 2.31s"),
        ("● Bash(pytest -q tests/payments)", "  └ 1 failed, 63 passed in 5.02s"),
        ("● Read(tests/payments/test_refund.py)", "  └ 77 lines", "● The clock is real in this test. I freeze it."),
        (
            "● Update(tests/payments/test_refund.py)",
            "  └ 1 addition, 1 removal",
            "    31 - today = date.today()",
            "    31 + today = date(2026, 1, 31)",
        ),
        ("● Bash(pytest -q tests/payments)", "  └ 64 passed in 4.88s"),
    ),
    "docs": (
        ("● Read(docs/orders.md)", "  └ 148 lines"),
        ('● Search("orders_v1", docs)', "  └ 9 matches in 5 files"),
        (
            "● Update(docs/orders.md)",
            "  └ 2 additions, 1 removal",
            "    12 - Orders are kept in one table.",
            "    12 + Orders are kept in two tables until the move is over.",
        ),
        ("● Bash(mkdocs build --strict)", "  └ Documentation built in 1.44 seconds"),
    ),
    "infra": (
        ("● Read(infra/orders/main.tf)", "  └ 96 lines"),
        ("● Bash(terraform fmt -check infra/orders)", "  └ no changes"),
        ("● Bash(terraform validate)", "  └ Success! The configuration is valid."),
        ('● Search("db.r6g.large", infra)', "  └ 2 matches in 1 file"),
    ),
    "review": (
        ("● Bash(git log --oneline -3)", "  └ 3 commits"),
        ("● Bash(git diff HEAD~1 --stat)", "  └ 3 files changed, 41 insertions(+), 7 deletions(-)"),
        ("● Read(src/orders/repository.py)", "  └ 215 lines"),
        ("● Bash(pytest -q)", "  └ 105 passed in 7.90s"),
        ("● The change is small and tested.",),
    ),
    "data": (
        ("● Bash(python -m importer --source orders.csv)", "  └ 12,000 of 80,000 rows"),
        ("● Bash(psql -c 'select count(*) from orders')", "  └ waiting for db.internal:5432"),
    ),
}


class DemoWork:
    """One stretch of work."""

    def __init__(self, topic: str, chance: random.Random, now: float, until: float) -> None:
        self.until = until
        self._began, self._chance = now, chance
        self._verb = chance.choice(VERBS)
        self._lines = _endless(SCENES.get(topic, SCENES[CODE]), chance)
        self._next_at = now + chance.uniform(*LINE_EVERY_S)

    def lines(self, now: float) -> list[str]:
        """What is new by now: at most one line."""
        if not self._next_at <= now < self.until:
            return []
        self._next_at = now + self._chance.uniform(*LINE_EVERY_S)
        return [next(self._lines)]

    def row(self, now: float) -> str:
        """The row that turns: it changes each second."""
        seconds = int(now - self._began)
        return f"{GLYPHS[seconds % len(GLYPHS)]} {self._verb}… ({seconds}s)"


def _endless(scenes: tuple[tuple[str, ...], ...], chance: random.Random) -> Iterator[str]:
    """The lines of the scenes in their order, from one of them on."""
    first = chance.randrange(len(scenes))
    while True:
        yield from chain.from_iterable(scenes[first:])
        first = 0
