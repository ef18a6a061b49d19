"""A file of lines that grows, is cut, replaced, deleted and broken: each complete line comes once."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.agents import transcript_activity as tail
from shared.agents.transcript_activity import JsonLinesTail, NewLines


def line(number: int, **more: Any) -> bytes:
    return json.dumps({"n": number, **more}).encode() + b"\n"


def numbers(news: NewLines | None) -> list[int]:
    assert news is not None
    return [document["n"] for document in news.documents]


def drained(follower: JsonLinesTail) -> list[int]:
    """All that there is to be read, however many turns it takes."""
    found = numbers(follower.read())
    while follower.is_behind:
        found += numbers(follower.read())
    return found


def append(path: Path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.jsonl"


def test_lines_come_once_as_they_are_written(path: Path) -> None:
    path.write_bytes(line(1) + line(2))
    follower = JsonLinesTail(path)
    first = follower.read()
    assert first is not None
    assert (numbers(first), first.anew) == ([1, 2], True)
    append(path, line(3))
    more = follower.read()
    assert more is not None
    assert (numbers(more), more.anew) == ([3], False)
    assert numbers(follower.read()) == []


def test_half_a_line_is_waited_for(path: Path) -> None:
    whole = line(2, text="漢字 🦀")
    path.write_bytes(line(1) + whole[:12])
    follower = JsonLinesTail(path)
    assert numbers(follower.read()) == [1]
    for place in range(12, len(whole)):
        assert numbers(follower.read()) == []
        append(path, whole[place : place + 1])
    assert numbers(follower.read()) == [2]


def test_the_first_look_begins_near_the_end_at_a_line(path: Path) -> None:
    path.write_bytes(b"".join(line(number, text="x" * 100) for number in range(10_000)))
    found = drained(JsonLinesTail(path, first_look=4096))
    assert found[-1] == 9999
    assert found == list(range(found[0], 10_000))
    assert 20 < len(found) < 40


def test_the_first_look_takes_no_part_of_a_line_for_a_line(path: Path) -> None:
    path.write_bytes(b"[1, 2] " + line(1) + line(2))
    assert drained(JsonLinesTail(path, first_look=len(line(1) + line(2)))) == [2]


@pytest.mark.parametrize("size", [300_000, 5 << 20])
def test_a_long_last_line_is_found_by_the_first_look(size: int, path: Path) -> None:
    path.write_bytes(b"".join(line(number) for number in range(100)) + line(100, text="x" * size))
    assert drained(JsonLinesTail(path))[-1] == 100


def test_a_long_line_that_is_written_slowly_comes_whole(path: Path) -> None:
    path.write_bytes(line(1))
    follower = JsonLinesTail(path)
    assert numbers(follower.read()) == [1]
    whole = line(2, text="y" * (5 << 20))
    found: list[int] = []
    for start in range(0, len(whole), 300_000):
        append(path, whole[start : start + 300_000])
        found += numbers(follower.read())
    assert found + drained(follower) == [2]


def test_a_line_beyond_all_measure_is_passed_over(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "LONGEST_LINE", 1000)
    path.write_bytes(line(1))
    follower = JsonLinesTail(path, at_once=300)
    assert numbers(follower.read()) == [1]
    append(path, line(2, text="z" * 5000) + line(3))
    assert drained(follower) == [3]


def test_a_file_that_is_cut_is_begun_anew(path: Path) -> None:
    path.write_bytes(line(1) + line(2))
    follower = JsonLinesTail(path)
    follower.read()
    path.write_bytes(line(3))
    news = follower.read()
    assert news is not None
    assert (numbers(news), news.anew) == ([3], True)


def test_a_file_written_anew_in_its_place_is_recognised_though_it_is_longer(path: Path) -> None:
    path.write_bytes(line(1) + line(2)[:5])
    follower = JsonLinesTail(path)
    follower.read()
    path.write_bytes(line(3) + line(4) + line(5))
    news = follower.read()
    assert news is not None
    assert (numbers(news), news.anew) == ([3, 4, 5], True)


def test_a_replaced_file_is_begun_anew(path: Path, tmp_path: Path) -> None:
    path.write_bytes(line(1))
    follower = JsonLinesTail(path)
    follower.read()
    other = tmp_path / "other"
    other.write_bytes(line(1) + line(2))
    other.replace(path)
    news = follower.read()
    assert news is not None
    assert (numbers(news), news.anew) == ([1, 2], True)


def test_a_file_that_is_gone_and_comes_back(path: Path) -> None:
    follower = JsonLinesTail(path)
    assert follower.read() is None
    path.write_bytes(line(1))
    assert numbers(follower.read()) == [1]
    path.unlink()
    assert follower.read() is None
    path.write_bytes(line(1))
    news = follower.read()
    assert news is not None
    assert (numbers(news), news.anew) == ([1], True)


@pytest.mark.parametrize(
    "broken", [b"\n", b"{\n", b"[1]\n", b"null\n", b"\0\0\0\n", b"\xff\xfe\n", b"[" * 100_000 + b"\n"]
)
def test_what_is_no_object_is_passed_over(broken: bytes, path: Path) -> None:
    path.write_bytes(line(1) + broken + line(2))
    assert drained(JsonLinesTail(path)) == [1, 2]


def test_what_is_no_file_is_none(tmp_path: Path) -> None:
    assert JsonLinesTail(tmp_path).read() is None
    os.mkfifo(tmp_path / "pipe")
    assert JsonLinesTail(tmp_path / "pipe").read() is None
    assert JsonLinesTail(Path("/nowhere\0")).read() is None


def test_an_unchanged_file_is_not_opened(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(line(1) + line(2)[:4])
    follower = JsonLinesTail(path)
    assert numbers(follower.read()) == [1]
    monkeypatch.setattr(Path, "open", lambda *_: pytest.fail("opened"))
    assert numbers(follower.read()) == []


@settings(max_examples=150, deadline=None)
@given(rubbish=st.lists(st.binary(max_size=60), max_size=8), at_once=st.integers(1, 50), first=st.integers(1, 200))
def test_whatever_is_written_only_documents_come(
    rubbish: list[bytes], at_once: int, first: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("t") / "a"
    follower = JsonLinesTail(path, at_once=at_once, first_look=first)
    for text in rubbish:
        append(path, text)
        for _ in range(4):
            news = follower.read()
            assert news is not None
            assert all(isinstance(document, dict) for document in news.documents)
