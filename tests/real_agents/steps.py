"""What is done to bring a situation about: a person's keys, and what is waited for between them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Ask:
    """Type a text and submit it."""

    text: str


@dataclass(frozen=True)
class Type:
    """Type a text and leave it."""

    text: str


@dataclass(frozen=True)
class Press:
    """Keys by tmux's names."""

    keys: tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """Press what the program wants for `approve` or `no` in a dialog, to `dismiss` one, to `interrupt` a turn."""

    how: str


@dataclass(frozen=True)
class See:
    """Wait until the screen says so; `screen_words.py` has each program's words."""

    sight: str


@dataclass(frozen=True)
class Running:
    """Wait until the slow command runs below the program."""


@dataclass(frozen=True)
class Reached:
    """Wait until the model was asked that often."""

    prompts: int = 1


@dataclass(frozen=True)
class Still:
    """Wait until nothing on the screen has moved for a while: a turn is over, or a dialog is up."""


@dataclass(frozen=True)
class Kill:
    """End the biggest of the pane's processes as the kernel does when memory is short."""


@dataclass(frozen=True)
class Quit:
    """Give the program's own command for leaving, and wait until its process has ended."""


Step = Ask | Type | Press | Answer | See | Running | Reached | Still | Kill | Quit
