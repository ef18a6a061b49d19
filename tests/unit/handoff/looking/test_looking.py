"""When there is more to know of a branch than where it points, and when that takes a mirror."""

from typing import Any

import pytest

from services.handoff.looking.looking import is_news, needs_mirror
from tests.unit.handoff.scenes import BEFORE, TIP, watch

NEW = {"is_known": False, "seen": None}
GONE = {"is_gone": True}
NEVER = {"is_gone": True, "seen": None}
STATUS = {"statuses": ("STATUS.md",)}
READ = {**STATUS, "knows_statuses": True}
INBOX = {"inbox": ("inbox/*",)}


@pytest.mark.parametrize(
    ("given", "tip", "news", "mirror"),
    [
        (NEW, TIP, True, True),
        (NEW, None, True, False),
        ({**NEW, **STATUS}, TIP, True, True),
        ({**NEW, **INBOX}, TIP, True, True),
        ({**NEW, **STATUS}, None, True, False),
        ({}, BEFORE, False, False),
        ({}, TIP, True, True),
        ({}, None, True, False),
        (GONE, None, False, False),
        (GONE, BEFORE, True, True),
        (GONE, TIP, True, True),
        (NEVER, None, False, False),
        (NEVER, TIP, True, True),
        (STATUS, BEFORE, True, True),
        (READ, BEFORE, False, False),
        (READ, TIP, True, True),
        ({"knows_statuses": False}, BEFORE, False, False),
        ({**GONE, **STATUS}, None, False, False),
        (INBOX, BEFORE, False, False),
    ],
)
def test_each_way_a_branch_may_be_found(given: dict[str, Any], tip: str | None, news: bool, mirror: bool) -> None:
    assert (is_news(watch(**given), tip), needs_mirror(watch(**given), tip)) == (news, mirror)
