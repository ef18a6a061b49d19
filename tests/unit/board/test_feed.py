"""A reader that has only a version ends up with the same board as one that reads everything."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.board.feed import KEPT_COMMENTS, KEPT_REMOVALS, BoardFeed


def news(feed: BoardFeed, version: int) -> dict[str, Any] | None:
    return feed.since(version)[1]


def test_a_part_that_nobody_put_is_left_out() -> None:
    feed = BoardFeed()
    assert feed.whole() == (0, {"whole": True})
    feed.put_cards({})
    assert feed.whole()[1] == {"whole": True, "cards": {}}
    feed.put_fleet({"name": "x"})
    feed.put_loops([])
    feed.put_lines({"a": "ls", "b": ""})
    feed.add_comments([{"number": 1}])
    expected = {"whole": True, "cards": {}, "fleet": {"name": "x"}, "loops": [], "lines": {"a": "ls"}}
    assert feed.whole()[1] == expected


def test_only_what_changed_is_told() -> None:
    feed = BoardFeed()
    feed.put_cards({"a": {"n": 1}, "b": {"n": 1}})
    feed.put_fleet({"name": "x"})
    version, _ = feed.whole()
    assert feed.since(version) == (version, None)
    feed.put_cards({"a": {"n": 2}})
    feed.put_lines({"b": "ls"})
    feed.add_comments([{"number": 1}, {"number": 2}])
    expected = {"cards": {"a": {"n": 2}}, "lines": {"b": "ls"}, "comments": [{"number": 1}, {"number": 2}]}
    assert news(feed, version) == {"whole": False, **expected}
    feed.put_lines({"b": ""})
    newer = news(feed, version)
    assert newer is not None
    assert newer["lines"] == {"b": ""}
    assert feed.card("a") == {"n": 2}
    assert feed.card("c") is None


CHANGES: list[Callable[[BoardFeed], None]] = [
    lambda feed: feed.put_fleet({"name": "x"}),
    lambda feed: feed.put_loops([{"loop": "api"}]),
    lambda feed: feed.put_cards({"a": {"n": 1}}, ["nobody"]),
    lambda feed: feed.put_lines({"a": "ls"}),
    lambda feed: feed.put_lines({"nobody": ""}),
    lambda feed: feed.add_comments([]),
]


def test_an_equal_value_is_no_change_and_wakes_nobody() -> None:
    feed = BoardFeed()
    for change in CHANGES:
        change(feed)
    woken: list[int] = []
    feed.subscribe(lambda: woken.append(1))
    version, _ = feed.whole()
    for change in CHANGES:
        change(feed)
    assert feed.since(version) == (version, None)
    assert woken == []


def test_a_card_that_goes_takes_its_line_along_and_may_return() -> None:
    feed = BoardFeed()
    feed.put_cards({"a": {"n": 1}})
    feed.put_lines({"a": "ls"})
    version, _ = feed.whole()
    feed.put_cards({}, ["a"])
    assert news(feed, version) == {"whole": False, "gone": ["a"]}
    assert feed.whole()[1] == {"whole": True, "cards": {}}
    feed.put_cards({"a": {"n": 1}})
    assert news(feed, version) == {"whole": False, "cards": {"a": {"n": 1}}, "lines": {"a": ""}}, "not the old one"


def test_a_reader_that_is_too_far_behind_gets_the_whole() -> None:
    feed = BoardFeed()
    feed.put_cards({"a": {}})
    version, _ = feed.whole()
    feed.add_comments({"number": number} for number in range(KEPT_COMMENTS))
    behind = news(feed, version)
    assert behind is not None
    assert len(behind["comments"]) == KEPT_COMMENTS
    feed.add_comments([{"number": -1}])
    assert news(feed, version) == feed.whole()[1]
    version, _ = feed.whole()
    for number in range(KEPT_REMOVALS + 1):
        feed.put_cards({f"c{number}": {}})
        feed.put_cards({}, [f"c{number}"])
    assert news(feed, version) == feed.whole()[1]


def test_a_version_from_before_a_restart_gets_the_whole() -> None:
    feed = BoardFeed()
    feed.put_cards({"a": {}})
    assert news(feed, 99) == feed.whole()[1]


def test_every_subscriber_is_woken_until_it_leaves() -> None:
    feed = BoardFeed()
    woken: list[str] = []
    leave = feed.subscribe(lambda: woken.append("one"))
    feed.subscribe(lambda: woken.append("two"))
    assert feed.watchers == 2
    feed.put_fleet({"n": 1})
    leave()
    leave()
    assert feed.watchers == 1
    feed.put_fleet({"n": 2})
    assert woken == ["one", "two", "two"]


def test_a_subscriber_may_read_while_it_is_woken() -> None:
    feed = BoardFeed()
    seen: list[int] = []
    feed.subscribe(lambda: seen.append(feed.whole()[0]))
    feed.put_fleet({"n": 1})
    assert seen == [1]


NAMES = st.sampled_from("abc")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("card"), NAMES, st.integers(0, 2)),
        st.tuples(st.just("gone"), NAMES, st.just(0)),
        st.tuples(st.just("line"), NAMES, st.integers(0, 2)),
        st.tuples(st.just("fleet"), st.just(""), st.integers(0, 2)),
        st.tuples(st.just("read"), st.just(""), st.just(0)),
    )
)


@given(STEPS)
def test_a_reader_of_changes_sees_what_a_reader_of_the_whole_sees(steps: list[tuple[str, str, int]]) -> None:
    feed = BoardFeed()
    version, board = feed.whole()
    for what, name, number in [*steps, ("read", "", 0)]:
        match what:
            case "card":
                feed.put_cards({name: {"n": number}})
            case "gone":
                feed.put_cards({}, [name])
            case "line" if feed.card(name) is not None:
                feed.put_lines({name: "x" * number})
            case "fleet":
                feed.put_fleet({"n": number})
            case "read":
                version, changed = feed.since(version)
                board = applied(board, changed)
    assert board == feed.whole()[1]


def applied(board: dict[str, Any], changed: dict[str, Any] | None) -> dict[str, Any]:
    """What the page does with a message."""
    if changed is None:
        return board
    if changed["whole"]:
        return changed
    gone = set(changed.get("gone", ()))
    cards = {**board.get("cards", {}), **changed.get("cards", {})}
    lines = {name: line for name, line in board.get("lines", {}).items() if name not in gone}
    lines = {name: line for name, line in {**lines, **changed.get("lines", {})}.items() if line}
    after = {**board, **({"fleet": changed["fleet"]} if "fleet" in changed else {})}
    after["cards"] = {name: card for name, card in cards.items() if name not in gone}
    after["lines"] = lines
    if not ("cards" in board or "cards" in changed or gone):
        del after["cards"]
    return {name: value for name, value in after.items() if name != "lines" or value}


def test_readers_and_a_writer_don_t_disturb_each_other() -> None:
    feed, done = BoardFeed(), threading.Event()
    faults: list[BaseException] = []

    def read() -> None:
        version, board = feed.whole()
        try:
            while not done.is_set():
                version, changed = feed.since(version)
                board = applied(board, changed)
            version, changed = feed.since(version)
            assert applied(board, changed) == feed.whole()[1]
        except BaseException as error:  # noqa: BLE001 - told by the test's own thread
            faults.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for each in threads:
        each.start()
    for number in range(2000):
        feed.put_cards({f"c{number % 20}": {"n": number}}, [f"c{(number + 7) % 20}"])
    done.set()
    for each in threads:
        each.join()
    if faults:
        pytest.fail(repr(faults))
    assert feed.whole()[0] > 2000 - 1
