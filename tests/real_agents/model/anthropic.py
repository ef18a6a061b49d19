"""Anthropic messages, for Claude Code and opencode."""

import json
import math
import re
import time
from collections.abc import Iterator

from tests.real_agents.model import wire
from tests.real_agents.model.script import RESET_IN_S, Call, Refuse, Say, Tool, Why
from tests.real_agents.model.wire import Asked, Json, Pause, Refusal

OWN = re.compile(r"\s*(<system-reminder>.*</system-reminder>|\[Request interrupted by user[^\]]*\])\s*", re.DOTALL)
MEANWHILE = re.compile(
    r"The user sent a new message while you were working:\n(?P<text>.*)\n\nIMPORTANT: After completing", re.DOTALL
)
"""How Claude Code tells what was written while a tool ran: beside the tool's result, not as a message of its own."""
LIMITS = "anthropic-ratelimit-unified-"
NO_CREDIT = (
    "Your credit balance is too low to access the Anthropic API. "
    "Please go to Plans & Billing to upgrade or purchase credits."
)


def read(body: Json) -> Asked:
    reader = wire.Reader()
    for message in body.get("messages", []):
        if message["role"] == "assistant":
            reader.model()
        else:
            for text in _texts(message["role"], message["content"]):
                reader.person(text)
    tools = tuple(str(tool["name"]) for tool in body.get("tools", []))
    main = wire.named(tools, "Bash") is not None
    return reader.asked(tools, str(body.get("model", "")), main=main)


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
        yield from _block(0, block, iter([{"type": "input_json_delta", "partial_json": json.dumps(call[1])}]))
    else:
        yield from _speech(wire.spoken(answer), pause)
    stop = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
    yield _event("message_delta", delta=stop, usage={"output_tokens": 12})
    yield _event("message_stop")


def _speech(say: Say, pause: Pause) -> Iterator[bytes]:
    pause(say.first_s)
    index = 0
    if say.thoughts:
        thinking = (
            {"type": "thinking_delta", "thinking": word} for word in wire.paced(say.thoughts, say.pace_s, pause)
        )
        yield from _block(0, {"type": "thinking", "thinking": "", "signature": ""}, thinking)
        index = 1
    words = ({"type": "text_delta", "text": word} for word in wire.paced(say.words, say.pace_s, pause))
    yield from _block(index, {"type": "text", "text": ""}, words)


def _block(index: int, block: Json, deltas: Iterator[Json]) -> Iterator[bytes]:
    yield _event("content_block_start", index=index, content_block=block)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
    if block["type"] == "thinking":
        yield _event("content_block_delta", index=index, delta={"type": "signature_delta", "signature": "c2lnbmVk"})
    yield _event("content_block_stop", index=index)


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
        case Tool.PLAN:
            name, arguments = "ExitPlanMode", {"plan": "1. Do it"}  # newer ones take it, and tell of it only when asked
        case Tool.AGENT | Tool.BACKGROUND:
            name = wire.named(asked.tools, "Agent", "Task")
            arguments = {"description": "Does a part", "prompt": call.argument}
            if name == "task":
                arguments["subagent_type"] = "general"
            else:
                arguments["subagent_type"] = "general-purpose"
                arguments["run_in_background"] = call.tool is Tool.BACKGROUND
        case Tool.STATE:
            name, arguments = wire.named(asked.tools, "StructuredOutput"), json.loads(call.argument)
        case Tool.WAIT:
            return None
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


def headers(answer: Say | Call) -> dict[str, str]:
    """What an answer says of the account: nothing, or that the budget of a claim is nearly spent."""
    if not (isinstance(answer, Say) and answer.near):
        return {}
    short = {"five_hour": "5h", "seven_day": "7d"}.get(answer.near, answer.near)
    return {
        **_budget("allowed_warning", answer.near, RESET_IN_S),
        f"{LIMITS}{short}-status": "allowed_warning",
        f"{LIMITS}{short}-reset": str(int(time.time() + RESET_IN_S)),
        f"{LIMITS}{short}-utilization": "0.93",
        f"{LIMITS}{short}-surpassed-threshold": "0.9",
    }


def refusal(refuse: Refuse) -> Refusal:
    match refuse.why:
        case Why.LIMIT:
            told = _budget("rejected", refuse.claim, refuse.reset_s)
            stay = {"x-should-retry": "false", "retry-after": str(math.ceil(refuse.reset_s))}
            return Refusal(429, {**told, **stay}, _error("rate_limit_error", "This account is out of budget."))
        case Why.OVERLOAD:
            return Refusal(529, {}, _error("overloaded_error", "Overloaded"))
        case Why.AUTH:
            return Refusal(401, {"x-should-retry": "false"}, _error("authentication_error", "invalid x-api-key"))
        case Why.CREDIT:
            return Refusal(400, {"x-should-retry": "false"}, _error("invalid_request_error", NO_CREDIT))
        case Why.BROKEN:
            return wire.broken()


def _budget(status: str, claim: str, reset_s: float) -> dict[str, str]:
    return {
        f"{LIMITS}status": status,
        f"{LIMITS}reset": str(int(time.time() + reset_s)),
        f"{LIMITS}representative-claim": claim,
    }


def _error(kind: str, message: str) -> Json:
    return {"type": "error", "error": {"type": kind, "message": message}}


def _event(kind: str, **rest: object) -> bytes:
    return wire.event({"type": kind, **rest}, kind)
