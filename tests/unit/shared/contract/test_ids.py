"""Ids are safe in a topic, a tmux session name and a file name alike, and new ones sort by time."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from shared.contract.ids import Id, as_id, is_id, new_id


@pytest.mark.parametrize("text", ["a", "0", "-", "_", "builder-2", "a_b", "x" * 64])
def test_an_id_is_lower_case_letters_digits_underscore_and_hyphen(text: str) -> None:
    assert is_id(text)
    assert TypeAdapter(Id).validate_python(text) == text


@pytest.mark.parametrize(
    "text", ["", "x" * 65, "A", "a.b", "a b", "a/b", "a+", "#", "a\n", "\na", "ä", "a\0", "١", "a:b", "=a"]
)
def test_what_breaks_a_broker_or_tmux_is_no_id(text: str) -> None:
    assert not is_id(text)
    with pytest.raises(ValidationError):
        TypeAdapter(Id).validate_python(text)


@given(st.text(max_size=80))
def test_both_ways_of_checking_an_id_agree(text: str) -> None:
    try:
        TypeAdapter(Id).validate_python(text)
    except ValidationError:
        assert not is_id(text)
    else:
        assert is_id(text)


@given(st.text(max_size=200))
def test_any_text_becomes_an_id(text: str) -> None:
    assert is_id(as_id(text))


@given(st.from_regex(r"[a-z0-9_]([a-z0-9_-]{0,62}[a-z0-9_])?", fullmatch=True))
def test_what_reads_like_an_id_stays_as_it_is(text: str) -> None:
    assert as_id(text) == text


@pytest.mark.parametrize(
    ("given_name", "id_"),
    [("Box", "box"), ("my.host.example", "my-host-example"), ("Ann's MacBook", "ann-s-macbook"), ("...", "host")],
)
def test_a_host_name_becomes_an_id_that_reads_like_it(given_name: str, id_: str) -> None:
    assert as_id(given_name) == id_


def test_new_ids_are_ids_and_differ() -> None:
    made = {new_id() for _ in range(10_000)}
    assert len(made) == 10_000
    assert all(is_id(each) for each in made)


def test_an_id_made_later_sorts_later(monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns = time.time_ns()
    ids = []
    for milliseconds in (0, 1, 2, 31, 32, 1_000, 86_400_000, 40 * 365 * 86_400_000):
        monkeypatch.setattr(time, "time_ns", lambda at=now_ns + milliseconds * 1_000_000: at)
        ids.append(new_id())
    assert ids == sorted(ids)
    assert len({len(each) for each in ids}) == 1
