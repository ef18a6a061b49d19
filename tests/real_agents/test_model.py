"""The scripted model is what the other tests trust: each submission is one prompt, and a repeat is none."""

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.real_agents.model import Model, anthropic, gemini, openai
from tests.real_agents.model.quotes import QUOTES
from tests.real_agents.model.script import Call, Refuse, Say, Tool, Why, answer

Json = dict[str, Any]
TOOLS = [{"name": "Bash"}]


def post(model: Model, path: str, body: Json) -> str:
    request = urllib.request.Request(  # noqa: S310 - it is the model's own address
        model.url + path, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310
            return str(response.read().decode())
    except urllib.error.HTTPError as refused:
        with refused:
            return f"{refused.code}"


def messages(*said: str, tools: list[Json] = TOOLS) -> Json:
    """Texts by turns; one that begins with `<` is the assistant's."""
    turns = [{"role": "assistant" if text.startswith("<") else "user", "content": text} for text in said]
    return {"model": "m", "stream": True, "tools": tools, "messages": turns}


def test_a_prompt_is_taken_once_over_a_conversation(model: Model) -> None:
    post(model, "/v1/messages", messages("one"))
    post(model, "/v1/messages", messages("one", "<done", "two\n"))
    assert model.prompts == ["one", "two\n"]


def test_the_same_text_submitted_twice_is_two_prompts(model: Model) -> None:
    post(model, "/v1/messages", messages("one"))
    post(model, "/v1/messages", messages("one", "<done", "one"))
    assert model.prompts == ["one", "one"]


def test_a_retry_after_a_refusal_is_no_second_prompt(model: Model) -> None:
    assert post(model, "/v1/messages", messages("DO-LIMIT")) == "429"
    assert post(model, "/v1/messages", messages("DO-LIMIT")) == "429"
    assert model.prompts == ["DO-LIMIT"]


def test_what_is_added_to_a_turn_under_way_is_one_more_prompt(model: Model) -> None:
    post(model, "/v1/messages", messages("one"))
    post(model, "/v1/messages", messages("one\n", "two"))
    assert model.prompts == ["one", "two"]


def test_what_a_program_asks_for_itself_is_no_prompt(model: Model) -> None:
    post(model, "/v1/messages", messages("make a title", tools=[]))
    post(model, "/v1/messages", messages("<system-reminder>be good</system-reminder>", "real"))
    assert model.prompts == ["real"]


def test_every_wire_says_what_came_and_calls_its_own_tool(model: Model) -> None:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "DO-BASH ls"}]}
    codex = post(model, "/v1/responses", {"model": "m", "input": [item], "tools": [{"name": "exec_command"}]})
    declared = [{"functionDeclarations": [{"name": "run_shell_command"}]}]
    contents = [{"role": "user", "parts": [{"text": "DO-BASH ls"}]}]
    gemini = post(model, "/v1beta/models/g:streamGenerateContent", {"contents": contents, "tools": declared})
    assert ("exec_command" in codex, "run_shell_command" in gemini) == (True, True)
    assert [(prompt.api, prompt.text) for prompt in model.received] == [
        ("openai", "DO-BASH ls"),
        ("gemini", "DO-BASH ls"),
    ]


def test_a_turn_goes_through_its_steps_and_a_new_prompt_begins_anew(model: Model) -> None:
    steps = "DO-BASH ls THEN DO-EDIT x.txt"
    tools = [{"name": "Bash"}, {"name": "Write"}]
    first = post(model, "/v1/messages", messages(steps, tools=tools))
    second = post(model, "/v1/messages", messages(steps, "<ran", tools=tools))
    third = post(model, "/v1/messages", messages(steps, "<ran", "<wrote", tools=tools))
    again = post(model, "/v1/messages", messages(steps, "<ran", "<wrote", "<done", "DO-BASH ls", tools=tools))
    assert ['"Bash"' in said for said in (first, second, third, again)] == [True, False, False, True]
    assert ('"Write"' in second, "All done." in third) == (True, True)


def test_a_subagents_prompt_is_what_follows_and_is_answered_by_its_own_word(model: Model) -> None:
    tools = [{"name": "Bash"}, {"name": "Agent"}]
    handed = post(model, "/v1/messages", messages("DO-AGENT DO-BASH ls", tools=tools))
    assert ('"Agent"' in handed, r"\"prompt\": \"DO-BASH ls\"" in handed) == (True, True)
    assert '"Bash"' in post(model, "/v1/messages", messages("DO-BASH ls", tools=tools))


def test_a_subagent_that_was_started_is_waited_for_by_its_id(model: Model) -> None:
    tools = [{"type": "namespace", "name": "agents", "tools": [{"name": "spawn_agent"}, {"name": "wait_agent"}]}]
    prompt = {"role": "user", "content": [{"type": "input_text", "text": "DO-BACKGROUND DO-THINK 1 THEN DO-WAIT"}]}
    started = [{"type": "function_call"}, {"type": "function_call_output", "output": '{"agent_id":"a1"}'}]
    spawns = post(model, "/v1/responses", {"input": [prompt], "tools": tools})
    waits = post(model, "/v1/responses", {"input": [prompt, *started], "tools": tools})
    assert ('"spawn_agent"' in spawns, r"\"message\": \"DO-THINK 1\"" in spawns) == (True, True)
    assert ('"wait_agent"' in waits, '"namespace": "agents"' in waits, r"[\"a1\"]" in waits) == (True, True, True)


def test_an_overload_passes_and_comes_again_with_the_next_such_prompt(model: Model) -> None:
    asked = messages("DO-OVERLOAD 2")
    said = [post(model, "/v1/messages", asked) for _ in range(4)]
    assert [text if len(text) == 3 else "answered" for text in said] == ["529", "529", "answered", "529"]
    assert model.prompts == ["DO-OVERLOAD 2", "DO-OVERLOAD 2"]


def test_thoughts_come_before_the_words_on_every_wire(model: Model) -> None:
    claude = post(model, "/v1/messages", messages("DO-REASON 0.5"))
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "DO-REASON 0.5"}]}
    codex = post(model, "/v1/responses", {"model": "m", "input": [item], "tools": [{"name": "exec_command"}]})
    declared = [{"functionDeclarations": [{"name": "run_shell_command"}]}]
    contents = [{"role": "user", "parts": [{"text": "DO-REASON 0.5"}]}]
    google = post(model, "/v1beta/models/g:streamGenerateContent", {"contents": contents, "tools": declared})
    kinds = ("thinking_delta", "response.reasoning_summary_text.delta", '"thought": true')
    for said, kind in zip((claude, codex, google), kinds, strict=True):
        assert 0 < said.index(kind) < said.index("All done.")


def test_what_is_quoted_is_said_and_nothing_else(model: Model) -> None:
    said = post(model, "/v1/messages", messages("DO-QUOTE dialog"))
    assert json.dumps(QUOTES["dialog"]) in said


def test_a_warning_comes_with_its_answer() -> None:
    near = answer("DO-NEAR seven_day")
    assert isinstance(near, Say)
    told = anthropic.headers(near)
    assert told["anthropic-ratelimit-unified-status"] == "allowed_warning"
    assert told["anthropic-ratelimit-unified-representative-claim"] == "seven_day"
    assert anthropic.headers(Say()) == anthropic.headers(Call(Tool.BASH, "ls")) == {}


def test_a_limit_names_its_claim_and_when_it_lifts() -> None:
    assert answer("DO-LIMIT") == Refuse(Why.LIMIT, "five_hour")
    assert answer("DO-LIMIT seven_day 30") == Refuse(Why.LIMIT, "seven_day", 30)


@pytest.mark.parametrize(
    ("why", "statuses"),
    [
        (Why.LIMIT, (429, 429, 429)),
        (Why.OVERLOAD, (529, 503, 503)),
        (Why.AUTH, (401, 401, 401)),
        (Why.CREDIT, (400, 429, 500)),
        (Why.BROKEN, (500, 500, 500)),
    ],
)
def test_every_wire_fails_in_its_own_way(why: Why, statuses: tuple[int, int, int]) -> None:
    refuse = Refuse(why, "five_hour")
    assert tuple(wire.refusal(refuse).status for wire in (anthropic, openai, gemini)) == statuses


def test_a_spent_day_is_told_apart_from_a_spent_minute() -> None:
    day, minute, unnamed = (
        gemini.refusal(Refuse(Why.LIMIT, claim, 30)).body["error"]["details"] for claim in ("per_day", "per_minute", "")
    )
    assert ("PerDay" in str(day), "PerMinute" in str(minute), unnamed) == (True, True, [])
