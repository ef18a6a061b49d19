"""Which lines of a status file are done lines: no templates, quotes, examples or comments."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.handoff.loops.branch_files import LINE_CHARACTERS_AT_MOST, StatusFile, read_status

DONE = r"^STATUS: DONE\b"
LINE = "STATUS: DONE"


def done_lines(text: str, done: str = DONE) -> tuple[str, ...]:
    return read_status(text, done).done_lines


# --- what counts ---


@pytest.mark.parametrize(
    "line",
    [
        "STATUS: DONE",
        "STATUS: DONE at 1a2b3c4",
        "STATUS: DONE [x]",
        "STATUS: DONE [X] and [✓] and [✔]",
        "STATUS: DONE by Ada <ada@example.org>",
        "STATUS: DONE, see <https://example.org/1>",
        "STATUS: DONE, see [the review](https://example.org/1)",
        "STATUS: DONE in a_b and a__b, 2 > 1, 1 < 2",
        "STATUS: DONE. Was it hard? Yes..",
        "STATUS: DONE on 2026-07-01 at 10:30",
        "STATUS: DONE (it was a TODOIST plugin)",
        "STATUS: DONE and/or reviewed",
    ],
)
def test_a_line_that_somebody_wrote_counts(line: str) -> None:
    assert read_status(f"# Phase\n\n{line}\n", DONE) == StatusFile((line,))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("at <sha>", "< >"),
        ("at < sha >", "< >"),
        ("at {commit}", "{ }"),
        ("at {}", "{ }"),
        ("at {{ commit }}", "{ }"),
        ("[ ]", "[ ]"),
        ("[]", "[ ]"),
        ("[date]", "[ ]"),
        ("[x] but [ ]", "[ ]"),
        ("[xx]", "[ ]"),
        ("at TBD", "not there yet"),
        ("at TBC", "not there yet"),
        ("TODO: the date", "not there yet"),
        ("FIXME", "not there yet"),
        ("XXX", "not there yet"),
        ("XXXXXX", "not there yet"),
        ("on YYYY-MM-DD", "not there yet"),
        ("at HH:MM", "not there yet"),
        ("| OPEN", "a choice"),
        ("|OPEN", "a choice"),
        ("/ NOT DONE / BLOCKED", "a choice"),
        ("| IN_PROGRESS", "a choice"),
        ("…", "dots"),
        ("at ...", "dots"),
        ("by ____", "a blank"),
        ("by ???", "a blank"),
    ],
)
def test_a_line_with_a_placeholder_is_refused_and_says_why(more: str, why: str) -> None:
    status = read_status(f"{LINE} {more}\n", DONE)
    assert status.done_lines == ()
    ((line, said),) = status.refused
    assert line == f"{LINE} {more}"
    assert why in said


@pytest.mark.parametrize(
    ("line", "done"),
    [("STATUS: DONE, and CI/CD is green", DONE), ("| STATUS | DONE |", r"^\| STATUS +\| DONE +\|")],
)
def test_a_slash_or_a_table_is_no_choice(line: str, done: str) -> None:
    assert done_lines(f"{line}\n", done) == (line,)


@pytest.mark.parametrize(
    ("line", "counts"),
    [("DONE: 1a2b", True), ("DONE:   ", False), ("DONE:", False), ("DONE", True)],
)
def test_a_named_group_that_matched_nothing_is_a_blank_unless_it_is_optional(line: str, counts: bool) -> None:
    status = read_status(line, r"^DONE(?::(?P<proof>.*))?$")
    assert bool(status.done_lines) is counts
    assert status.refused == (() if counts else (("DONE:", "a blank to be filled in"),))


@pytest.mark.parametrize("done", [r"DONE(\s|$)", r"DONE(\.|$)", r"DONE()"])
def test_a_group_without_a_name_is_never_a_blank(done: str) -> None:
    assert done_lines(LINE, done) == (LINE,)


@pytest.mark.parametrize("more", ["with no TODO left", "see main...feature", "by <ada@example.org>"])
def test_words_that_only_look_like_a_placeholder_count(more: str) -> None:
    assert done_lines(f"{LINE}, {more}") == (f"{LINE}, {more}",)


def test_a_template_line_beside_a_done_line_does_not_matter() -> None:
    status = read_status(f"{LINE} at <sha>\n{LINE} at 1a2b\n", DONE)
    assert status.done_lines == (f"{LINE} at 1a2b",)
    assert [line for line, _ in status.refused] == [f"{LINE} at <sha>"]


def test_a_placeholder_in_another_line_does_not_matter() -> None:
    assert done_lines(f"Reviewer: <name>\n{LINE}\nNext: TBD\n") == (LINE,)


def test_a_line_that_is_repeated_counts_once() -> None:
    assert done_lines(f"{LINE}\n{LINE}  \n{LINE} again\n") == (LINE, f"{LINE} again")


def test_the_fleet_file_says_which_lines_are_done_lines() -> None:
    assert done_lines("- phase 2: finished\n", r"(?i)phase 2: FINISHED") == ("- phase 2: finished",)
    assert done_lines(f"{LINE}\n", r"^PHASE DONE") == ()


# --- what is shown and not said ---


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        (f"```\n{LINE}\n```\n", False),
        (f"```\n{LINE}\n```\n{LINE}\n", True),
        (f"~~~\n{LINE}\n~~~\n", False),
        (f"```markdown\n{LINE}\n```\n", False),
        (f"   ```\n{LINE}\n   ```\n", False),
        (f"````\n```\n{LINE}\n````\n", False),
        (f"````\n```\n````\n{LINE}\n", True),
        (f"```\ncode\n`````\n{LINE}\n", True),
        (f"~~~\n```\n~~~\n{LINE}\n", True),
        (f"~~~\n```\n{LINE}\n~~~\n", False),
        (f"```\n``` no end\n{LINE}\n```\n", False),
        (f"```\n{LINE}\n", False),
        (f"{LINE}\n```\nnever closed\n", True),
        (f"``\n{LINE}\n``\n", True),
        (f"    ```\n{LINE}\n", True),
    ],
)
def test_a_fenced_line_does_not_count(text: str, counts: bool) -> None:
    assert bool(done_lines(text)) is counts
    assert bool(done_lines(text.replace("\n", "\r\n"))) is counts


def test_inline_code_is_no_fence() -> None:
    """A fence of backticks has none behind it."""
    assert done_lines(f"```make test``` passes.\n\n{LINE}\n") == (LINE,)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        (f"<!-- {LINE} -->\n", False),
        (f"<!--\n{LINE}\n-->\n", False),
        (f"<!--\n{LINE}\n", False),
        (f"<!-- one --> <!-- two\n{LINE}\n-->\n", False),
        (f"<!-- one -->\n{LINE}\n<!-- two -->\n", True),
        (f"{LINE} <!-- write <sha> behind it -->\n", True),
        (f"{LINE}\n<!-- never closed\n", True),
        (f"<!--\n```\n-->\n{LINE}\n", True),
        (f"-->\n{LINE}\n", True),
        (f"<!- {LINE} ->\n{LINE}", True),
    ],
)
def test_a_commented_out_line_does_not_count(text: str, counts: bool) -> None:
    assert bool(done_lines(text)) is counts
    assert bool(done_lines(text.replace("\n", "\r\n"))) is counts


def test_lines_around_a_comment_stay_apart() -> None:
    assert done_lines("STATUS: <!--\n-->DONE\n") == ()
    assert done_lines(f"not yet<!-- a\nb -->{LINE}\n") == (LINE,)


def test_a_comment_that_begins_inside_a_fence_is_no_comment() -> None:
    """Else all that follows it would be one, and the phase would never end."""
    assert done_lines(f"```html\n<!-- a heading\n```\n\n{LINE}\n") == (LINE,)


@pytest.mark.parametrize("quote", ["> ", ">", "  > ", "> > ", "\t> "])
def test_a_quoted_line_does_not_count(quote: str) -> None:
    assert done_lines(f"{quote}{LINE}\n", r"STATUS: DONE") == ()


# --- files as they come ---


@pytest.mark.parametrize("end", ["\n", "\r\n", "  \r\n", ""])
def test_how_a_line_ends_does_not_matter(end: str) -> None:
    assert done_lines(f"{LINE}{end}", r"^STATUS: DONE$") == (LINE,)


def test_a_byte_order_mark_does_not_hide_the_first_line() -> None:
    """Editors on Windows write one."""
    assert done_lines(f"\ufeff{LINE}\n") == (LINE,)


def test_a_huge_line_is_cut() -> None:
    (line,) = done_lines(f"{LINE} {'A-' * 500_000}\n")
    assert len(line) == LINE_CHARACTERS_AT_MOST


@pytest.mark.parametrize("shape", ["<", "[", "{", "A|", "A-", "_?", "<a@", f"{LINE} A-A/ "])
def test_no_line_takes_long_to_read(shape: str) -> None:
    """What goes wrong with regular expressions takes longer than the time that a test has."""
    status = read_status(f"{LINE} {shape * 20_000}\n" * 20, DONE)
    assert len(status.done_lines) + len(status.refused) == 1


PIECES = st.sampled_from(
    [LINE, "```", "~~~~", "<!--", "-->", "> ", "\n", "\r\n", " ", "<sha>", "[ ]", "é", "\x00", "\x85"]
)
TEXTS = st.text() | st.lists(PIECES | st.text(max_size=3)).map("".join)


@given(TEXTS)
def test_odd_texts_never_raise_and_each_line_counts_or_is_refused(text: str) -> None:
    status = read_status(text, r"(?i)done")
    refused = [line for line, _ in status.refused]
    assert not {*status.done_lines} & {*refused}
    assert all(re.search(r"(?i)done", line) and "\n" not in line for line in [*status.done_lines, *refused])
    assert all(why for _, why in status.refused)


@given(TEXTS)
def test_no_fenced_text_has_a_done_line(text: str) -> None:
    fence = "`" * (text.count("`") + 3)
    assert done_lines(f"{fence}\n{text.replace('<!--', '')}\n{LINE}") == ()


@given(st.text(alphabet=st.characters(exclude_characters="\n\r"), max_size=50))
def test_a_done_line_does_not_depend_on_plain_lines_around_it(other: str) -> None:
    if other.lstrip().startswith(("```", "~~~")) or "<!--" in other:
        return
    assert LINE in done_lines(f"{other}\n{LINE}\n{other}")
