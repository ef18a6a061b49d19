"""The scripted model is what the other tests trust: each submission is one prompt, and a repeat is none."""

import json
import urllib.error
import urllib.request
from typing import Any

from tests.real_agents.model import Model

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
