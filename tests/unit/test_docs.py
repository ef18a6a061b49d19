"""Docs that name files of the project name files that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(page.relative_to(ROOT).as_posix() for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")))
NAMED = re.compile(r"`((?:shared|services|registry|tests|mosquitto|docs)/[\w/.*-]*)`")


def missing(text: str) -> list[str]:
    return [name for name in NAMED.findall(text) if not list(ROOT.glob(name.rstrip("/")))]


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_names_are_there(page: str) -> None:
    assert missing((ROOT / page).read_text(encoding="utf-8")) == []


def test_a_file_that_is_not_there_is_seen() -> None:
    assert missing("`shared/contract/topics.py`, `shared/agents/*/profile.yaml` and `services/nobody.py`") == [
        "services/nobody.py"
    ]
