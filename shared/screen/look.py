"""Finds the input box, a dialog and signs on a screen; each when it is first needed.

A dialog replaces the input box: if the box is whole, a dialog above it is only quoted, unless its rule says that it
covers the box. A sign counts only in its part of the screen and in its style: quoted text is elsewhere, or looks
different.
"""

import re
from dataclasses import dataclass
from functools import cached_property

from shared.contract.states import Activity
from shared.fleet.backend import Backend
from shared.fleet.screen_rules import Below, Dialog, LimitWarning, Sign, Style
from shared.fleet.screen_rules import ScreenRules as Rules
from shared.fleet.section import KEY_NAME
from shared.fleet.version_ranges import matches
from shared.screen.box import compiled, find_box, text_in
from shared.screen.styles import FAINT, LETTERS, Backgrounds, colours, column, marked, pieces, plain

MOST_CHARACTERS = 40_000
"""How much of the bottom of a screen is read: it bounds the cost of a rule. A regular expression that backtracks for
ever can't be stopped here; so the rules of a fleet file are tried on their samples when it is read."""


class ScreenLook:
    """A screen, read by the rules for one version of the program; by all rules if the version is unknown."""

    def __init__(self, rules: Rules, screen: str, version: str | None) -> None:
        self._rules = rules
        self._screen = screen
        self._version = version
        self._pieces = pieces(screen)
        self._plain = _bottom(plain(self._pieces), rules.box_rows)

    @property
    def has_box(self) -> bool:
        """Whether there is a box to type into, or rules that know of none."""
        return self._rules.box is None or self._found is not None

    @cached_property
    def box(self) -> str | None:
        """The text in the input box; None if there is no box to type into."""
        if self._rules.box is None:
            return ""
        return text_in(self._rules, self._found, self._plain, self._marked) if self._found else None

    @cached_property
    def dialog(self) -> tuple[Dialog, re.Match[str]] | None:
        """The first dialog rule that matches, and its match."""
        for dialog in self._rules.dialogs:
            if matches(dialog.versions, self._version) and (found := self.find_dialog(dialog)) is not None:
                return dialog, found
        return None

    def find_dialog(self, dialog: Dialog) -> re.Match[str] | None:
        """The match of one dialog rule, whatever its versions."""
        if not dialog.match or (self._found is not None and not dialog.over):
            return None
        found = compiled(dialog.match).search(self._plain)
        return found if found is not None and self._has_backgrounds(found) else None

    def from_there(self, place: re.Match[str]) -> str:
        """The screen from the start of a match on."""
        return self._plain[place.start() :]

    @property
    def above_box(self) -> str:
        """What stands above the input box and its hints; without a box, everything."""
        return self._plain[: self._top_of_box]

    @cached_property
    def signs(self) -> dict[str, Sign]:
        """The sign rules for this version."""
        given = self._rules.signs.items()
        return {name: sign for name, sign in given if sign and sign.match and matches(sign.versions, self._version)}

    @cached_property
    def work(self) -> tuple[str, re.Match[str]] | None:
        """The sign that shows work, and its match."""
        return self.telling([name for name, sign in self.signs.items() if sign.says is Activity.WORKING])

    def telling(self, names: list[str]) -> tuple[str, re.Match[str]] | None:
        """Of these signs, the one that counts, and its match.

        The lowest sign on the screen (of two that end together the longer one) gives the activity. The first rule with
        the same activity gives the reason.
        """
        found = {name: place for name in names if (place := self.find(self.signs[name])) is not None}
        if not found:
            return None
        lowest = max(found, key=lambda name: (found[name].end(), -found[name].start()))
        first = next(name for name in found if self.signs[name].says is self.signs[lowest].says)
        return first, found[first]

    @property
    def warning(self) -> str:
        """A warning of a usage limit, in one line; empty if there is none."""
        for rule in self._rules.warnings.values():
            if rule is None or not rule.match or not matches(rule.versions, self._version):
                continue
            if (found := self.find(rule)) is not None:
                return " ".join((found.groupdict().get("text") or found[0]).split())
        return ""

    def find(self, sign: Sign | LimitWarning) -> re.Match[str] | None:
        """The last match of a sign in its part of the screen and its style."""
        last = None
        for found in compiled(sign.match).finditer(self._plain, *self._part(sign.below)):
            if found.group() and self._has_style(sign, found):
                last = found
        return last

    # --- parts of the screen ---

    @cached_property
    def _found(self) -> re.Match[str] | None:
        return find_box(self._rules, self._plain)

    @cached_property
    def _top_of_box(self) -> int:
        """The end of the last text above the box and its hints; without a box, of all text."""
        end = len(self._plain[: self._found.start() if self._found else None].rstrip())
        above = self._rules.above
        if self._found is None or above is None or (hints := compiled(above).search(self._plain, 0, end)) is None:
            return end
        return len(self._plain[: hints.start()].rstrip())

    @cached_property
    def _last_prompt(self) -> int:
        """The end of the last prompt; 0 if it is out of sight."""
        end = 0
        if self._rules.prompt is not None:
            for found in compiled(self._rules.prompt).finditer(self._plain, 0, self._top_of_box):
                end = found.end()
        return end

    def _part(self, below: Below) -> tuple[int, int]:
        if below is Below.LAST_PROMPT:
            return self._last_prompt, self._top_of_box
        if below is Below.ANYWHERE:
            return 0, len(self._plain)
        if self._found is None:
            return 0, 0
        end = self._found.end("text")
        return (end if end >= 0 else self._found.start()), len(self._plain)

    # --- styles ---

    @cached_property
    def _marked(self) -> str:
        """Of the same length as the plain text."""
        return _bottom(marked(self._pieces), self._rules.box_rows)

    @cached_property
    def _colours(self) -> str | None:
        found = colours(self._screen)
        return None if found is None else _bottom(found, self._rules.box_rows)

    @cached_property
    def _faint(self) -> str | None:
        return self._marked if FAINT in self._marked else None

    def _has_style(self, sign: Sign | LimitWarning, found: re.Match[str]) -> bool:
        if sign.style is None:
            return True
        styles, wanted = (self._faint, FAINT) if sign.style is Style.FAINT else (self._colours, LETTERS[sign.style])
        start, end = found.span("text" if "text" in found.re.groupindex else 0)
        return styles is None or set(styles[start:end]) <= {wanted, " ", "\n"}

    def _has_backgrounds(self, found: re.Match[str]) -> bool:
        """Whether the groups `panel`, `chosen` and `others` of a dialog have the backgrounds that they must have."""
        groups = found.groupdict()
        if groups.get("panel") and not self._backgrounds.is_panel(*self._cells(found, "panel")):
            return False
        if groups.get("chosen") and groups.get("others"):
            chosen, others = (self._backgrounds.at(*self._cells(found, name)) for name in ("chosen", "others"))
            return len(chosen) == len(others) == 1 and chosen != others
        return True

    @cached_property
    def _backgrounds(self) -> Backgrounds:
        return Backgrounds(self._screen)

    def _cells(self, found: re.Match[str], group: str) -> tuple[int, int, int]:
        """The row of a group on the whole screen, and its columns."""
        start, end = found.span(group)
        above = plain(self._pieces).count("\n") - self._plain.count("\n")
        return above + self._plain.count("\n", 0, start), column(self._plain, start), column(self._plain, end)


def _bottom(text: str, rows: int) -> str:
    return "\n".join(text[-MOST_CHARACTERS:].split("\n")[-rows:])


PLACEHOLDER = re.compile(r"\{(\w+)\}")
NUMBERED_ROW = re.compile(
    r"^(?P<before>[ │┃]*(?P<mark>[❯›>●]?) *)(?P<key>[1-9])[.)] +(?P<text>\S.*?)[ │┃]*$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class ScreenReading:
    """What is on a screen, as far as typing is concerned."""

    box: str | None
    """The text in the input box; None if there is no box to type into."""
    dialog: Dialog | None
    working: bool
    dialog_text: str = ""
    """The dialog as the screen shows it, to tell one from the next."""
    leave: tuple[str, ...] = ()
    """The keys that leave the dialog without buying, changing or cancelling anything; empty: only a person can."""
    resume: tuple[str, ...] = ()
    """The keys that make the agent continue with what was refused."""

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        """The key and the text of each row of a choice; empty if the dialog is none."""
        if self.dialog is None or not self.dialog.numbered:
            return ()
        rows = list(NUMBERED_ROW.finditer(self.dialog_text))
        # The question, or the words below a row, may be numbered too, but do not stand where the chosen row does.
        chosen = [len(row["before"]) for row in rows if row["mark"]] or [len(row["before"]) for row in rows]
        found: list[tuple[str, str]] = []
        for row in rows:
            if len(row["before"]) != chosen[-1]:
                continue
            if row["key"] == "1":
                found = []
            if row["key"] == str(len(found) + 1):
                found.append((row["key"], row["text"]))
        return tuple(found)

    @property
    def empty(self) -> bool:
        return self.box is not None and not self.box.strip()


def _filled(keys: list[str], place: re.Match[str]) -> tuple[str, ...]:
    """Keys with the rule's groups filled in; empty if a group is missing."""
    groups = {name: found for name, found in place.groupdict().items() if found}
    filled = tuple(PLACEHOLDER.sub(lambda each: groups.get(each[1], ""), key) for key in keys)
    return filled if all(re.fullmatch(KEY_NAME, key) for key in filled) else ()


FRAME = re.compile(r"^[\s\u2500-\u259f]+|[\s\u2500-\u259f]+$")


def current_line(backend: Backend, screen: str) -> str:
    """The last line of a screen that the agent wrote: above its input box and hints, or the question of a dialog."""
    look = ScreenLook(backend.screen, screen, None)
    if look.dialog is not None:
        rows = look.from_there(look.dialog[1]).split("\n")
        asked = [row for row in rows if row.rstrip().endswith("?")]
        return _bare_line([*rows[:1], *asked])
    return _bare_line(look.above_box.split("\n"))


def _bare_line(rows: list[str]) -> str:
    bare = [FRAME.sub("", row) for row in rows]
    return next((row for row in reversed(bare) if any(map(str.isalnum, row))), "")


def read_screen(backend: Backend, screen: str, version: str | None = None) -> ScreenReading:
    """Read a styled screen by the rules for a version of the program; by all rules if it is unknown."""
    look = ScreenLook(backend.screen, screen, version)
    working = look.work is not None
    if look.dialog is not None:
        dialog, place = look.dialog
        keys = (_filled(each, place) for each in (dialog.leave, dialog.resume))
        return ScreenReading(None, dialog, working, look.from_there(place), *keys)
    return ScreenReading(look.box, None, working)
