"""What a copy is asked, and how answers are read as models give them."""

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.monitor.health.question import (
    FORM,
    SCHEMA,
    SIDE_QUESTION,
    SUMMARY_CHARACTERS,
    WorkAnswer,
    WorkState,
    question_for,
    read_answer,
)

OBJECT = {"state": "blocked", "summary": "It needs a key.", "output": ""}
PLAIN = json.dumps(OBJECT)
BLOCKED = WorkAnswer(WorkState.BLOCKED, "It needs a key.")


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        f"```json\n{PLAIN}\n```",
        f"Sure! Here it is:\n\n{json.dumps(OBJECT, indent=2)}\n\nAnything else?",
        f'{{"state": "working", "summary": "no, wait", "output": ""}} I mean: {PLAIN}',
        f'{{"answer": {PLAIN}}}',
        PLAIN.replace("blocked", " Blocked "),
        f"{{ not json {{ {PLAIN}",
        '{"output": "", "summary": "It needs a key.", "state": "blocked", "confidence": 0.9}',
        f'{PLAIN} and {{"state": "dancing"}}',
        '{"notes": {"tries": 2}, "state": "blocked", "summary": "It needs a key.", "output": ""}',
    ],
)
def test_an_answer_is_found_however_it_is_wrapped(text: str) -> None:
    assert read_answer(text) == BLOCKED


@pytest.mark.parametrize(
    "text",
    [
        "",
        "It goes well.",
        "state: finished",
        '{"state": "dancing"}',
        '{"state": null}',
        '{"state": ["finished"]}',
        '{"status": "finished"}',
        '["finished"]',
        '{"state": "finished"',
        '{"a":' * 100_000,
        '{"state": ' * 100_000,
        "{" * 100_000 + '"state":',
    ],
)
def test_a_text_without_an_answer_gives_none(text: str) -> None:
    assert read_answer(text) is None


def test_a_structured_answer_comes_before_the_text() -> None:
    assert read_answer('{"state": "working"}', OBJECT) == BLOCKED
    for odd in (None, "finished", [OBJECT], {"state": 7}, {}):
        assert read_answer(PLAIN, odd) == BLOCKED


def test_a_result_may_hold_what_looks_like_an_answer() -> None:
    output = f"wrote {{'state'}} and {PLAIN} into x.json"
    text = json.dumps({"state": "finished", "summary": "Done.", "output": output})
    assert read_answer(text) == WorkAnswer(WorkState.FINISHED, "Done.", output)


@pytest.mark.parametrize(
    ("given_output", "kept"),
    [(None, ""), ({"rows": 3}, '{"rows": 3}'), (["a", "ü"], '["a", "ü"]'), (7, "7"), ("\ud800x", "?x")],
)
def test_a_result_that_is_no_text_becomes_one(given_output: Any, kept: str) -> None:
    answer = read_answer("", {"state": "finished", "summary": "a\n  b", "output": given_output})
    assert answer == WorkAnswer(WorkState.FINISHED, "a b", kept)


def test_a_summary_is_short() -> None:
    answer = read_answer("", {"state": "working", "summary": "word " * 1_000})
    assert answer is not None
    assert len(answer.summary) == SUMMARY_CHARACTERS


@given(st.text(alphabet='{}[]":,\\state finished0\n', max_size=300))
def test_any_text_gives_an_answer_or_none(text: str) -> None:
    answer = read_answer(text)
    assert answer is None or (answer.state in WorkState and len(answer.summary) <= SUMMARY_CHARACTERS)


def test_the_schema_fits_what_is_read() -> None:
    schema = json.loads(SCHEMA)
    jsonschema.validate(OBJECT, schema)
    for state in WorkState:
        jsonschema.validate({**OBJECT, "state": state.value}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**OBJECT, "state": "dancing"}, schema)


def test_the_usual_question_says_all_that_a_copy_must_know() -> None:
    usual = question_for()
    assert usual.startswith(SIDE_QUESTION)
    assert FORM in usual
    for words in ("interrupted", "Do nothing", *(f"{state.value}:" for state in WorkState)):
        assert words in usual


def test_a_person_s_own_question_asks_for_no_form() -> None:
    own = question_for("Which file?")
    assert own.startswith(SIDE_QUESTION)
    assert own.endswith("\n\nWhich file?")
    assert FORM not in own
