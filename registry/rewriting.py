"""Edits of a whole registry, brought to the units that they concern. Many edits cost one pass."""

from collections.abc import Sequence
from typing import Any

from registry.edits import STEP, Page, apply, behind_comments, entry_lines, kept_apart, set_value
from registry.lines import SECTIONS, Piece, empty_braces, is_empty_section
from registry.nodes import column_of, line_end, line_start, next_line, pair_start
from registry.planning import Edit, Plan, planned
from registry.sections import edit_tree
from registry.units import Unit, tree_of


def rewrite(units: Sequence[Unit], text: str, edits: Sequence[Edit], *, careful: bool) -> list[Unit | Piece | str]:
    """The units with the edits made: changed ones as pieces to be read, or one text for a document without pieces."""
    plan = planned(units, edits)
    first = text.find("\n")
    eol = "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
    if len(units) == 1 and units[0].kind == "whole":
        return [edit_tree(units[0], plan, Page(text, eol, careful))]
    return list(_Rewriting(units, plan, eol, careful).made())


class _Rewriting:
    """One pass over the units of a document."""

    def __init__(self, units: Sequence[Unit], plan: Plan, eol: str, careful: bool) -> None:
        self.plan = plan
        self.eol = eol
        self.careful = careful
        self.sections = {unit.section for unit in units if unit.kind in ("header", "section")}
        self.left = {section: self._left(units, section) for section in SECTIONS}
        self.last = {section: self._last(units, section) for section in SECTIONS}
        self.units = units
        self.out: list[Unit | Piece] = []
        self.over: list[str] = []
        """What was around entries that are gone: it now follows what is above."""

    def _left(self, units: Sequence[Unit], section: str) -> int:
        """How many entries of a section stay."""
        here = [(each.section, each.name) for unit in units for each in unit.entries if each.section == section]
        return sum(1 for each in here if each not in self.plan.removed)

    def _last(self, units: Sequence[Unit], section: str) -> int:
        """Behind which unit new entries of a section go."""
        places = [place for place, unit in enumerate(units) if unit.section == section and self._stays(unit)]
        return max(places, default=-1)

    def _stays(self, unit: Unit) -> bool:
        return unit.kind != "entry" or (unit.section, unit.entries[0].name) not in self.plan.removed

    def made(self) -> list[Unit | Piece]:
        first_top = next((place for place, unit in enumerate(self.units) if unit.top), len(self.units))
        has_version = any(key == "version" for unit in self.units for key, _ in unit.top)
        for place, unit in enumerate(self.units):
            if place == first_top and self.plan.version is not None and not has_version:
                self._put(Piece("top", f"version: {self.plan.version}{self.eol}"))
            self._unit(place, unit)
        self._flush()
        if first_top == len(self.units) and self.plan.version is not None:
            self._behind_all([Piece("top", f"version: {self.plan.version}{self.eol}")])
        for section in SECTIONS:
            if self.plan.added.get(section) and section not in self.sections:
                header = Piece("header", f"{section}:{self.eol}", section)
                self._behind_all([header, *self._new_entries(section, STEP, STEP)])
        return self.out

    def _put(self, unit: Unit | Piece) -> None:
        self._flush()
        self.out.append(unit)

    def _flush(self) -> None:
        """Give what is left of removed entries to what is above them."""
        if self.over:
            above = self.out.pop()
            rest = "".join(self.over)
            if self.careful:
                rest = kept_apart(rest, self.eol)
            self.out.append(Piece(above.kind, above.text + rest, above.section, above.context))  # type: ignore[arg-type]
            self.over = []

    def _unit(self, place: int, unit: Unit) -> None:
        match unit.kind:
            case "header":
                self._put(self._header(unit))
            case "entry":
                self._entry(unit)
            case "section":
                self._put(self._edited(unit, "section"))
            case "top" if self.plan.version is not None and unit.top[0][0] == "version":
                self._put(self._renumbered(unit))
            case _:
                self._put(unit)
        section = unit.section
        if unit.kind in ("header", "entry") and place == self.last[section] and self.plan.added.get(section):
            self._flush()
            self._add_here(unit)

    def _header(self, unit: Unit) -> Unit | Piece:
        fills = bool(self.left[unit.section] or self.plan.added.get(unit.section))
        had = is_empty_section(unit.text)
        emptied = not fills and any(section == unit.section for section, _ in self.plan.removed)
        if (fills and had) or (emptied and not had):
            start, end = empty_braces(unit.text)
            return Piece("header", unit.text[:start] + ("" if fills else " {}") + unit.text[end:], unit.section)
        return unit

    def _entry(self, unit: Unit) -> None:
        where = (unit.section, unit.entries[0].name)
        if where in self.plan.removed:
            root = tree_of(unit).root
            self.over.append(unit.text[next_line(unit.text, line_end(unit.text, root.end)) :])
        elif where in self.plan.puts:
            self._put(self._edited(unit, "entry"))
        else:
            self._put(unit)

    def _edited(self, unit: Unit, kind: Any) -> Unit | Piece:
        text = edit_tree(unit, self.plan, Page(unit.text, self.eol, self.careful))
        return unit if text == unit.text else Piece(kind, text, unit.section, unit.context)

    def _renumbered(self, unit: Unit) -> Piece:
        root = tree_of(unit).root
        page = Page(unit.text, self.eol)
        changes = set_value(page, root.pairs[0], (root,), self.plan.version, flow=False)
        return Piece("top", apply(unit.text, changes), context=unit.context)

    def _new_entries(self, section: str, indent: int, step: int) -> list[Piece]:
        added = self.plan.added[section].items()
        return [Piece("entry", entry_lines(name, new, indent, step, self.eol), section) for name, new in added]

    def _add_here(self, unit: Unit) -> None:
        """New entries behind the last one of their section, or behind its header."""
        if unit.kind == "header":
            above = self.out.pop()
            at = behind_comments(above.text, next_line(above.text, 0), 0)
            self._split(above, at, self._new_entries(unit.section, STEP, STEP))
            return
        indent, step = _indents(unit)
        new = self._new_entries(unit.section, indent, step)
        if self.careful:
            first = next(place for place, each in enumerate(self.out) if self._begins(each, unit.section))
            self.out[first:first] = new
            return
        self._split_behind(new, indent)

    def _begins(self, each: Unit | Piece, section: str) -> bool:
        return each.kind == "entry" and each.section == section

    def _behind_all(self, new: list[Piece]) -> None:
        """New top-level keys behind all others."""
        if not self.out:
            self.out += new
        elif self.careful:
            first = next((place for place, each in enumerate(self.out) if each.kind != "filler"), len(self.out))
            self.out[first:first] = new
        elif self.out[-1].kind in ("filler", "header"):
            above = self.out.pop()
            at = len(above.text) if above.kind == "filler" else next_line(above.text, 0)
            self._split(above, behind_comments(above.text, at, 0), new)
        else:
            self._split_behind(new, 0)

    def _split_behind(self, new: list[Piece], indent: int) -> None:
        above = self.out.pop()
        unit = above if isinstance(above, Unit) else Unit(above.kind, above.text, above.section, context=above.context)
        after = tree_of(unit).root.after
        text = above.text
        at = after if after and text[after - 1 : after] in ("\n", "\r") else next_line(text, line_end(text, after))
        self._split(above, behind_comments(text, at, indent), new)

    def _split(self, above: Unit | Piece, at: int, new: list[Piece]) -> None:
        """Put pieces into the middle of another; what follows there goes behind the last of them."""
        text, rest = above.text[:at], above.text[at:]
        if text and not text.endswith(("\n", "\r")):
            text += self.eol
            last = new[-1]
            new[-1] = Piece(last.kind, last.text.removesuffix(self.eol), last.section)
        self.out.append(above if text == above.text else Piece(above.kind, text, above.section, above.context))  # type: ignore[arg-type]
        new[-1] = Piece(new[-1].kind, new[-1].text + rest, new[-1].section)
        self.out += new


def _indents(unit: Unit) -> tuple[int, int]:
    """How far the entries of a section are indented, and their fields within them, going by one of them."""
    key, value = tree_of(unit).root.pairs[0]
    indent = key.start - line_start(unit.text, key.start)
    if value.kind == "map" and not value.flow:
        first = pair_start(unit.text, value.pairs[0][0])
        return indent, max(1, column_of(unit.text, first) - indent)
    return indent, STEP
