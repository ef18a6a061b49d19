"""Anthropic messages, for Claude Code and opencode."""

import json
import re
import time
from collections.abc import Iterator

from tests.real_agents.model import wire
from tests.real_agents.model.script import Call, Refuse, Say, Tool
from tests.real_agents.model.wire import Asked, Json, Pause, Refusal

OWN = re.compile(r"\s*(<system-reminder>.*</system-reminder>|\[Request interrupted by user[^\]]*\])\s*", re.DOTALL)
MEANWHILE = re.compile(
    r"The user sent a new message while you were working:\n(?P<text>.*)\n\nIMPORTANT: After completing", re.DOTALL
)
"""How Claude Code tells what was written while a tool ran: beside the tool's result, not as a message of its own."""
RESET_IN_S = 7200


def read(body: Json) -> Asked:
    messages: list[Json] = body.get("messages", [])
    tail: list[Json] = []
    for message in reversed(messages):
        if message["role"] == "assistant":
            break
        tail.insert(0, message)
    said = tuple(text for message in tail for text in _texts(message["role"], message["content"]))
    tools = tuple(str(tool["name"]) for tool in body.get("tools", []))
    main = wire.named(tools, "Bash") is not None
    return Asked(said, tools, str(body.get("model", "")), main)


def _texts(role: str, content: str | list[Json]) -> Iterator[str]:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for text in (block["text"] for block in blocks if block["type"] == "text"):
        if found := MEANWHILE.search(text):
            yield found["text"]
        elif role == "user" and not OWN.fullmatch(text):
            yield text


def stream(asked: Asked, answer: Say | Call, pause: Pause) -> Iterator[bytes]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    message: Json = {
        "id": f"msg_{time.time_ns()}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    yield _event("message_start", message=message)
    call = _call(asked, answer) if isinstance(answer, Call) else None
    if call is not None:
        block = {"type": "tool_use", "id": f"toolu_{time.time_ns()}", "name": call[0], "input": {}}
        yield _event("content_block_start", index=0, content_block=block)
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
        yield _event("content_block_delta", index=0, delta=delta)
    else:
        yield _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        say = answer if isinstance(answer, Say) else Say(("No such tool here.",))
        for word in wire.paced(say, pause):
            yield _event("content_block_delta", index=0, delta={"type": "text_delta", "text": word})
    yield _event("content_block_stop", index=0)
    stop = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
    yield _event("message_delta", delta=stop, usage={"output_tokens": 12})
    yield _event("message_stop")


def _call(asked: Asked, call: Call) -> tuple[str, Json] | None:
    match call.tool:
        case Tool.BASH:
            name = wire.named(asked.tools, "Bash")
            arguments: Json = {"command": call.argument, "description": "Runs what was asked"}
        case Tool.EDIT:
            name = wire.named(asked.tools, "Write")
            arguments = {"content": "one line\n"}
            arguments["filePath" if name == "write" else "file_path"] = call.argument
        case Tool.QUESTION:
            name = wire.named(asked.tools, "AskUserQuestion", "question")
            arguments = {"questions": wire.questions()}
    return (name, arguments) if name else None


def whole(asked: Asked, text: str) -> Json:
    """The answer to a request that does not stream."""
    return {
        "id": f"msg_{time.time_ns()}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 3},
    }


def refusal(refuse: Refuse) -> Refusal:
    if refuse.status != 429:
        return wire.broken(refuse)
    headers = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": str(int(time.time()) + RESET_IN_S),
        "anthropic-ratelimit-unified-representative-claim": refuse.claim,
        "x-should-retry": "false",
        "retry-after": str(RESET_IN_S),
    }
    body = {"type": "error", "error": {"type": "rate_limit_error", "message": "This account is out of budget."}}
    return Refusal(429, headers, body)


def _event(kind: str, **rest: object) -> bytes:
    return wire.event({"type": kind, **rest}, kind)
