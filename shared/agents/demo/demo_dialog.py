"""What a demo agent asks a person: whether a command may run, which of several ways to take, what to do about a limit.

A dialog stands in the place of the input box. Parts of its text are divided by `|`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

ESCAPE = "\x1b"
LONGEST = 120
MOST_OPTIONS = 9
"""Each is chosen by one key."""


@dataclass(frozen=True)
class DemoAnswer:
    said: str
    """What the agent says about it; empty: nothing."""
    goes_on: bool = True
    """Whether it goes on with what it was doing."""


@dataclass(frozen=True)
class DemoDialog:
    title: str
    options: tuple[str, ...]
    hint: str
    answers: dict[str, DemoAnswer] = field(default_factory=dict)
    """By key."""
    details: tuple[str, ...] = ()

    def rows(self) -> Iterator[str]:
        yield self.title
        if self.details:
            yield from ("", *(f"  {each}" for each in self.details), "")
        yield from (f"  {number}. {option}" for number, option in enumerate(self.options, start=1))
        yield self.hint


def permission(text: str) -> DemoDialog:
    """`terraform plan | what it does | why it asks`"""
    what, *details = _parts(text)
    yes, no = DemoAnswer("allowed"), DemoAnswer("refused", goes_on=False)
    answers = {"1": yes, "y": yes, "2": no, "n": no, ESCAPE: no}
    return DemoDialog(f"Do you allow this? {what}", ("Yes", "No"), "1 or 2 · esc to refuse", answers, tuple(details))


def choice(text: str) -> DemoDialog:
    """`Which way? | the one | the other`"""
    question, *options = _parts(text)
    if not 0 < len(options) <= MOST_OPTIONS:
        raise ValueError(f"{question!r} needs 1 to {MOST_OPTIONS} options: choose Which? | one | two")
    answers = {str(number): DemoAnswer(f"chose: {option}") for number, option in enumerate(options, start=1)}
    answers[ESCAPE] = DemoAnswer("left the question open", goes_on=False)
    return DemoDialog(f"? {question}", tuple(options), f"1 to {len(options)} · esc to cancel", answers)


def limit_menu() -> DemoDialog:
    bought, waits = DemoAnswer("bought"), DemoAnswer("")
    answers = {"1": bought, "\r": bought, "2": waits}
    return DemoDialog("What do you want to do?", ("Buy more", "Wait for the reset"), "1 or 2", answers)


def _parts(text: str) -> list[str]:
    return [" ".join(part.split())[:LONGEST] for part in text.split("|")]
