"""No character in a text can hide, turn or reach what is beside it."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.client.visible_text import visible, visible_document


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("rm -rf \u202etxt.exe", "rm -rf ⟨U+202E⟩txt.exe"),
        ("\x1b[2Jx\x07", "⟨U+001B⟩[2Jx⟨U+0007⟩"),
        ("a\u200bb\u2066c\ufeff\u061c\u200e\u2060", "a⟨U+200B⟩b⟨U+2066⟩c⟨U+FEFF⟩⟨U+061C⟩⟨U+200E⟩⟨U+2060⟩"),
        ("\U000e0041\U000e007f", "⟨U+E0041⟩⟨U+E007F⟩"),
        ("a\ud800b", "a⟨U+D800⟩b"),
        ("\u2028\x85\x9b", "⟨U+2028⟩⟨U+0085⟩⟨U+009B⟩"),
        ("a\ufe0fb\u200dc", "a⟨U+FE0F⟩b⟨U+200D⟩c"),
        ("one\r\ntwo\rthree", "one\ntwo⟨U+000D⟩three"),
    ],
)
def test_what_hides_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        *("", "plain\n\ttext", "größer, 漢字, שלום", "│ ✻ ⏺ ⠋ \ue0b0", "👩‍💻 ❤️ 🏳️‍🌈 1️⃣ ☑︎ 👍🏽", "می‌خواهم", "a b"),
    ],
)
def test_what_people_write_stays(text: str) -> None:
    assert visible(text) == text


def test_a_document_is_made_visible_in_every_place() -> None:
    given_document: dict[str, Any] = {
        "k\u202e": ["\x1b", {"a": ("\u200b", 1, 1.5, True, None)}],
        "at": datetime(2030, 1, 1, tzinfo=UTC),
        "odd": [float("nan"), float("inf")],
    }
    assert visible_document(given_document) == {
        "k⟨U+202E⟩": ["⟨U+001B⟩", {"a": ["⟨U+200B⟩", 1, 1.5, True, None]}],
        "at": "2030-01-01T00:00:00+00:00",
        "odd": [None, None],
    }


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_any_text_can_be_sent_and_shown_again(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    json.dumps(shown, ensure_ascii=False).encode()
