"""Registry files as people write them, in ordinary block style or in any style of YAML, and whose each line is."""

from dataclasses import dataclass, field

from hypothesis import strategies as st

Owner = tuple[str, ...]
"""Nobody's line is `()`; an entry's is `(section, name)`, a field's `(section, name, field)`."""

NAMES = ["builder", "tester", "a", "null", "x-1", "0123", "on", "lead_2"]
KEYS = ["status", "pid", "reason", "drifts", "pane"]
OWN_KEYS = ["owner", "notes", "tags"]

comments = st.sampled_from(["# mine", "#", "# a: b", "#- x", "# 'quoted", '# "', "# ünï 🎈"])
plain_values = st.sampled_from(
    [
        *("running", "7", "0x1f", "1e3", "-3", "null", "~", "true", "2030-01-01", "2030-01-01T12:00:00Z", "a b  c"),
        *("x:y", "a#b", "/work/d", "0123abc", "it's", "no", "[]", "[a, b]", "['a, b', \"c\"]", "[1, 2]", "{}"),
        "{k: v, l: [1]}",
    ]
)
quoted_values = st.sampled_from(
    ["'x'", "'it''s'", '"x"', '"a\\n\\u00e9"', "'a: b # c'", '"\\ud83d\\ude00"', "''", "'%3'"]
)


@dataclass
class Sheet:
    """A file in the making."""

    lines: list[tuple[str, Owner]] = field(default_factory=list)
    anchors: list[str] = field(default_factory=list)
    mappings: list[str] = field(default_factory=list)
    blocks: bool = False
    """Whether there are block texts: what follows one may have to be moved."""
    in_block: bool = False
    """Whether the last field is one: a deep comment would be a part of it."""
    rare: bool = True
    """Whether flow style, anchors, aliases, tags and scalars over several lines may be used."""

    def add(self, line: str, owner: Owner = ()) -> None:
        self.lines.append((line, owner))


@dataclass(frozen=True)
class Handwritten:
    text: str
    lines: tuple[tuple[str, Owner], ...]
    blocks: bool


@st.composite
def fillers(draw: st.DrawFn, indent: int, deep: bool = True) -> list[str]:
    kinds = draw(st.lists(st.sampled_from(["comment", "blank", "left", *(["deep"] if deep else [])]), max_size=2))
    made = []
    for kind in kinds:
        comment = draw(comments)
        made.append(
            {"comment": " " * indent + comment, "blank": "", "deep": " " * (indent + 3) + comment, "left": comment}[
                kind
            ]
        )
    return made


def trailing(draw: st.DrawFn) -> str:
    return draw(st.sampled_from(["", "", " ", "  "])) if draw(st.booleans()) else "  " + draw(comments)


def write_field(  # noqa: PLR0912 - one branch for each way to write a value
    draw: st.DrawFn, sheet: Sheet, indent: int, key: str, owner: Owner
) -> None:
    pad = " " * indent
    sheet.in_block = False
    name = draw(st.sampled_from([key, key, key, f"'{key}'", f'"{key}"']))
    kinds = ["plain"] * 6 + ["quoted"] * 4 + ["empty", "list", "indentless", "map", "block", "folded", "keep", "strip"]
    if sheet.rare:
        kinds += ["anchored", "alias", "lines", "quoted lines", "explicit", "tagged", "flow lines"]
    kind = draw(st.sampled_from(kinds))
    match kind:
        case "plain":
            sheet.add(f"{pad}{name}: {draw(plain_values)}{trailing(draw)}", owner)
        case "quoted":
            sheet.add(f"{pad}{name}:  {draw(quoted_values)}{trailing(draw)}", owner)
        case "empty":
            sheet.add(f"{pad}{name}:{trailing(draw)}", owner)
        case "anchored":
            anchor = f"n{len(sheet.lines)}"
            sheet.add(f"{pad}{name}: &{anchor} {draw(quoted_values)}{trailing(draw)}", owner)
            sheet.anchors.append(anchor)
        case "alias" if sheet.anchors:
            sheet.add(f"{pad}{name}: *{draw(st.sampled_from(sheet.anchors))}", (*owner, "alias"))
        case "list" | "indentless":
            inner = pad + ("  " if kind == "list" else "")
            sheet.add(f"{pad}{name}:{trailing(draw)}", owner)
            for _ in range(draw(st.integers(1, 2))):
                sheet.add(f"{inner}- {draw(plain_values)}{trailing(draw)}", owner)
        case "map":
            sheet.add(f"{pad}{name}:{trailing(draw)}", owner)
            sheet.add(f"{pad}  k1: {draw(plain_values)}{trailing(draw)}", owner)
            sheet.add(f"{pad}  k2: [1,", owner)
            sheet.add(f"{pad}    2]", owner)
        case "block" | "folded" | "keep" | "strip":
            sheet.blocks = sheet.in_block = True
            mark = {"block": "|", "folded": ">", "keep": "|+", "strip": "|-"}[kind]
            sheet.add(f"{pad}{name}: {mark}{draw(st.sampled_from(['', '  # why']))}", owner)
            sheet.add(f"{pad}   begin", owner)
            for text in draw(st.lists(st.sampled_from(["text", "# no comment", "a: b", "", "  deeper"]), max_size=3)):
                sheet.add(f"{pad}   {text}" if text else "", owner)
            if draw(st.booleans()):
                sheet.add("", owner)
        case "lines":
            sheet.add(f"{pad}{name}: some text", owner)
            sheet.add(f"{pad}  that goes on{trailing(draw)}", owner)
        case "quoted lines":
            sheet.add(f"{pad}{name}: 'some text", owner)
            sheet.add(f"{pad}  # that: goes on'{trailing(draw)}", owner)
        case "explicit":
            sheet.add(f"{pad}? {name}", owner)
            sheet.add(f"{pad}: {draw(plain_values)}{trailing(draw)}", owner)
        case "tagged":
            sheet.add(f"{pad}{name}: !!str {draw(st.sampled_from(['7', 'x', 'null']))}", owner)
        case "flow lines":
            sheet.add(f"{pad}{name}: [a,  {draw(comments)}", owner)
            sheet.add(f"{pad}  b]{trailing(draw)}", owner)
        case _:
            sheet.add(f"{pad}{name}: x", owner)


def write_entry(draw: st.DrawFn, sheet: Sheet, section: str, name: str, indent: int, step: int) -> None:
    owner = (section, name)
    pad = " " * indent
    key = name if name not in ("null", "0123", "on") or draw(st.booleans()) else f"'{name}'"
    rare = ["flow", "flow lines", "alias", "merge", "anchored", "empty flow"] if sheet.rare else []
    style = draw(st.sampled_from(["block"] * 6 + rare))
    keys = draw(st.lists(st.sampled_from([*KEYS, *OWN_KEYS]), min_size=1, max_size=4, unique=True))
    if style == "alias" and sheet.mappings:
        sheet.add(f"{pad}{key}: *{draw(st.sampled_from(sheet.mappings))}{trailing(draw)}", (*owner, "", "alias"))
    elif style == "flow":
        pairs = ", ".join(f"{each}: {draw(quoted_values)}" for each in keys)
        comma = draw(st.sampled_from(["", ",", " "]))
        sheet.add(f"{pad}{key}: {{{pairs}{comma}}}{trailing(draw)}", owner)
    elif style == "empty flow":
        sheet.add(f"{pad}{key}: {{}}{trailing(draw)}", owner)
    elif style == "flow lines":
        sheet.add(f"{pad}{key}: {{", owner)
        for each in keys:
            sheet.add(f"{pad}    {each}: {draw(quoted_values)},{trailing(draw)}", owner)
        sheet.add(f"{pad}  }}", owner)
    else:
        anchor = ""
        if style == "anchored":
            anchor = f" &m{len(sheet.lines)}"
            sheet.mappings.append(anchor[2:])
        sheet.add(f"{pad}{key}:{anchor}{trailing(draw)}", owner)
        inner = indent + step
        if style == "merge" and sheet.mappings:
            sheet.add(f"{' ' * inner}<<: *{draw(st.sampled_from(sheet.mappings))}", (*owner, "", "alias"))
        for each in keys:
            write_field(draw, sheet, inner, each, (*owner, each))
            for filler in draw(fillers(inner, not sheet.in_block)) if draw(st.integers(0, 3)) == 0 else []:
                sheet.add(filler, () if each == keys[-1] else (*owner, "#"))


def write_section(draw: st.DrawFn, sheet: Sheet, section: str, names: list[str]) -> None:
    form = draw(st.sampled_from(["block"] * 8 + (["flow"] if sheet.rare else [])))
    if not names:
        sheet.add(f"{section}:{draw(st.sampled_from(['', ' {}']))}{trailing(draw)}", (section,))
        return
    if form == "flow":
        pairs = ", ".join(f"{name}: {{status: running, pid: 7}}" for name in names)
        sheet.add(f"{section}: {{{pairs}}}{trailing(draw)}", (section,))
        return
    indent, step = draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([1, 2, 4]))
    quoted = draw(st.sampled_from([section] * 9 + ([f'"{section}"'] if sheet.rare else [])))
    sheet.add(f"{quoted}:{trailing(draw)}", (section,))
    for name in names:
        for filler in draw(fillers(indent, not sheet.in_block)):
            sheet.add(filler)
        write_entry(draw, sheet, section, name, indent, step)


@st.composite
def files(draw: st.DrawFn, rare: bool = True) -> Handwritten:
    sheet = Sheet(rare=rare)
    for filler in draw(fillers(0)):
        sheet.add(filler)
    if draw(st.integers(0, 9)) == 0:
        sheet.add(f"---{trailing(draw)}")
    if draw(st.booleans()):
        sheet.add(f"version: 1{trailing(draw)}", ("version",))
    if rare and draw(st.booleans()):
        sheet.mappings.append("top")
        sheet.add("defaults: &top {status: stopped, owner: Ann}")
    if draw(st.integers(0, 3)) == 0:
        write_field(draw, sheet, 0, "notes_of_mine", ())
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3))
    write_section(draw, sheet, "agents", names)
    for filler in draw(fillers(0, not sheet.in_block)):
        sheet.add(filler)
    if draw(st.booleans()):
        write_section(draw, sheet, "history", draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=2)))
    if draw(st.integers(0, 2)) == 0:
        write_field(draw, sheet, 0, "after", ())
        for filler in draw(fillers(0, not sheet.in_block)):
            sheet.add(filler)
    eol = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    text = eol.join(line for line, _ in sheet.lines) + draw(st.sampled_from([eol, eol, ""]))
    if draw(st.integers(0, 9)) == 0:
        text = "\ufeff" + text
    return Handwritten(text, tuple(sheet.lines), sheet.blocks)
