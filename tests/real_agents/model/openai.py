"""OpenAI responses, for Codex."""

import json
import time
from collections.abc import Iterator

from tests.real_agents.model import wire
from tests.real_agents.model.script import Call, Refuse, Say, Tool
from tests.real_agents.model.wire import Asked, Json, Pause, Refusal

OWN = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<turn_aborted>",
    "<user_shell_command>",
)
RESET_IN_S = 7200


def read(body: Json) -> Asked:
    said: list[str] = []
    for item in body.get("input", []):
        kind = item.get("type", "message")
        if kind in ("function_call", "custom_tool_call") or item.get("role") == "assistant":
            said.clear()
        elif item.get("role") == "user":
            texts = [block["text"] for block in item["content"] if block.get("type") == "input_text"]
            said.extend(text for text in texts if not text.startswith(OWN))
    tools = tuple(str(tool.get("name") or tool.get("type")) for tool in body.get("tools", []))
    return Asked(tuple(said), tools, str(body.get("model", "")), bool(tools))


def stream(asked: Asked, answer: Say | Call, pause: Pause) -> Iterator[bytes]:
    ident = f"resp_{time.time_ns()}"
    yield _event("response.created", response={"id": ident})
    call = _call(asked, answer) if isinstance(answer, Call) else None
    if call is not None:
        yield _event("response.output_item.done", output_index=0, item=call)
    else:
        say = answer if isinstance(answer, Say) else Say(("No such tool here.",))
        message: Json = {"type": "message", "role": "assistant", "id": f"msg_{time.time_ns()}", "content": []}
        words: list[str] = []
        for word in wire.paced(say, pause):
            if not words:
                yield _event("response.output_item.added", output_index=0, item=message)
            words.append(word)
            yield _event("response.output_text.delta", output_index=0, content_index=0, delta=word)
        text = {"type": "output_text", "text": "".join(words)}
        yield _event("response.output_item.done", output_index=0, item={**message, "content": [text]})
    usage = {
        "input_tokens": 10,
        "input_tokens_details": None,
        "output_tokens": 3,
        "output_tokens_details": None,
        "total_tokens": 13,
    }
    yield _event("response.completed", response={"id": ident, "usage": usage})


def _call(asked: Asked, call: Call) -> Json | None:
    ident = f"call_{time.time_ns()}"
    match call.tool:
        case Tool.BASH:
            name = wire.named(asked.tools, "exec_command", "shell_command", "shell")
            arguments: Json = {"sandbox_permissions": "require_escalated", "justification": "May I run this?"}
            match name:
                case "exec_command":
                    arguments["cmd"] = call.argument
                case "shell_command":
                    arguments["command"] = call.argument
                case _:
                    arguments["command"] = ["bash", "-lc", call.argument]
            return {"type": "function_call", "name": name, "call_id": ident, "arguments": json.dumps(arguments)}
        case Tool.EDIT:
            patch = f"*** Begin Patch\n*** Add File: {call.argument}\n+one line\n*** End Patch\n"
            if wire.named(asked.tools, "apply_patch"):
                return {"type": "custom_tool_call", "name": "apply_patch", "call_id": ident, "input": patch}
            arguments = {"cmd": f"apply_patch <<'EOF'\n{patch}EOF\n"}  # which it takes for the tool
            return {
                "type": "function_call",
                "name": "exec_command",
                "call_id": ident,
                "arguments": json.dumps(arguments),
            }
        case _:
            return None


def refusal(refuse: Refuse) -> Refusal:
    if refuse.status != 429:
        return wire.broken(refuse)
    error = {"type": "usage_limit_reached", "message": "This account is out of budget.", "plan_type": "plus"}
    return Refusal(429, {}, {"error": {**error, "resets_at": int(time.time()) + RESET_IN_S}})


def _event(kind: str, **rest: object) -> bytes:
    return wire.event({"type": kind, **rest}, kind)
