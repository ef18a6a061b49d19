"""When the tips of a remote are news for a loop, and when a mirror is needed."""

from typing import Any

import pytest

from services.handoff.remotes.inspection import is_news, needs_head, needs_mirror
from services.handoff.remotes.observation import HEAD, Target
from tests.unit.handoff.samples import BEFORE, TIP, watch

NEW = {"is_known": False, "tip": None}
GONE = {"is_gone": True}
NEVER = {"is_gone": True, "tip": None}
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
def test_each_state_of_a_branch_is_news_or_not_and_needs_a_mirror_or_not(
    given: dict[str, Any], tip: str | None, news: bool, mirror: bool
) -> None:
    tips = {"main": tip}
    assert (is_news(watch(**given), tips), needs_mirror(watch(**given), tips)) == (news, mirror)


@pytest.mark.parametrize(
    ("given", "head", "news"),
    [
        (NEVER, TIP, True),  # nothing was there at all
        ({**NEVER, "head": BEFORE}, TIP, True),
        ({**NEVER, "head": BEFORE}, BEFORE, False),
        ({**NEVER, "head": BEFORE}, None, False),  # it points nowhere: what it was is still of the past
        (NEVER, None, False),
        (GONE, TIP, False),  # it was there once: it goes on from what was seen
    ],
)
def test_the_remotes_head_is_kept_up_to_date_until_a_branch_appears(
    given: dict[str, Any], head: str | None, news: bool
) -> None:
    assert is_news(watch(**given), {"main": None, HEAD: head}) is news


@pytest.mark.parametrize(("given", "asks"), [(NEW, True), (NEVER, True), ({}, False), (GONE, False)])
def test_head_is_asked_for_only_while_a_branch_never_existed(given: dict[str, Any], asks: bool) -> None:
    assert Target("r", 1.0, (watch(**given),)).asks_for == (("main", HEAD) if asks else ("main",))


@pytest.mark.parametrize(
    ("given", "tips", "needs"),
    [
        ({**NEVER, "head": BEFORE}, {"main": TIP, HEAD: TIP}, True),
        ({**NEVER, "head": BEFORE}, {"main": TIP, HEAD: None}, False),
        ({**NEVER, "head": BEFORE}, {"main": None, HEAD: TIP}, False),
        (NEVER, {"main": TIP, HEAD: TIP}, False),
        ({}, {"main": TIP}, False),
    ],
)
def test_head_is_fetched_only_when_a_branch_appeared(
    given: dict[str, Any], tips: dict[str, str | None], needs: bool
) -> None:
    assert needs_head(watch(**given), tips) is needs
