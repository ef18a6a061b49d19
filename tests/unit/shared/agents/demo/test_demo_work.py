"""What the demo agent prints while it works."""

import random

from shared.agents.demo.demo_work import LINE_EVERY_S, SCENES, DemoWork


def work(topic: str, seconds: float = 600.0) -> DemoWork:
    return DemoWork(topic, random.Random("builder"), 100.0, 100.0 + seconds)


def test_lines_come_one_at_a_time_and_in_the_order_of_their_scene() -> None:
    docs, found = work("docs"), []
    for second in range(120):
        found += docs.lines(100.0 + second * LINE_EVERY_S[1])
    assert docs.lines(100.0 + 119 * LINE_EVERY_S[1]) == [], "not twice at the same time"
    for scene in SCENES["docs"]:
        first = found.index(scene[0], 20)
        assert tuple(found[first : first + len(scene)]) == scene


def test_nothing_is_printed_after_the_end() -> None:
    assert work("tests", seconds=5.0).lines(105.0) == []
    assert work("tests", seconds=5.0).lines(104.0) != []


def test_an_unknown_topic_is_code() -> None:
    lines = [line for scene in SCENES["code"] for line in scene]
    assert work("poetry").lines(110.0)[0] in lines


def test_the_row_changes_each_second() -> None:
    code = work("code")
    rows = [code.row(100.0 + second) for second in range(13)]
    assert len(set(rows)) == len(rows)
    assert rows[12].endswith("… (12s)")


def test_the_same_agent_prints_the_same_each_time() -> None:
    assert work("code").lines(110.0) == work("code").lines(110.0)
