"""Ranges of versions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.fleet.version_ranges import BadRange, matches, parse


@pytest.mark.parametrize(
    ("wanted", "version", "expected"),
    [
        (">=2.1.300", "2.1.325", True),
        (">=2.1.300", "2.1.300", True),
        (">=2.1.300", "2.1.197", False),
        (">=2.1.300", "2.1.1000", True),  # numbers, not texts
        ("<2.1.300", "2.1.197", True),
        ("<2.1.300", "2.2", False),
        (">=2.1, <2.2", "2.1.325", True),
        (">=2.1,<2.2", "2.2.0", False),
        ("==2.1", "2.1.0", True),
        ("!=2.1.3", "2.1.3", False),
        (">2.1", "2.1.0", False),
        ("<=2.1", "2.1.0.0", True),
        (">=2.1.300", "2.1.325 (Claude Code)", True),
        ("<0.200", "codex-cli 0.166.0", True),
        ("", "2.1.197", True),
        (" ", "2.1.197", True),
        # what is not known is in every range
        (">=2.1.300", None, True),
        (">=2.1.300", "", True),
        ("<2.1.300", "unknown", True),
    ],
)
def test_a_version_is_in_a_range(wanted: str, version: str | None, expected: bool) -> None:
    assert matches(wanted, version) is expected


@pytest.mark.parametrize(
    "wanted", ["2.1", ">=", ">=x", ">=2.1,", "~=2.1", ">=2.1 <2.2", "=>2.1", ">=2..1", ">=2.1-beta"]
)
def test_a_bad_range_is_refused_with_what_is_allowed(wanted: str) -> None:
    with pytest.raises(BadRange, match=r"^not a range of versions: .*; write conditions such as >=") as refused:
        parse(wanted)
    assert "allowed are: <, <=, >, >=, ==, !=" in str(refused.value)


VERSIONS = st.lists(st.integers(0, 400), min_size=1, max_size=4).map(lambda numbers: ".".join(map(str, numbers)))


@given(VERSIONS, VERSIONS)
def test_every_version_is_on_one_side(limit: str, version: str) -> None:
    assert matches(f"<{limit}", version) is not matches(f">={limit}", version)
    assert matches(f"<={limit}", version) is not matches(f">{limit}", version)
    assert matches(f"=={limit}", version) is not matches(f"!={limit}", version)
