"""OpenAI responses, for Codex."""

import json
import re
import time
from collections.abc import Iterator

from tests.real_agents.model import wire
from tests.real_agents.model.script import Call, Refuse, Say, Tool, Why
from tests.real_agents.model.wire import Asked, Json, Pause, Refusal

OWN = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<turn_aborted>",
    "<user_shell_command>",
)
AGENT = re.compile(r'"agent_id":"([^"]+)"')
CALLS = ("function_call", "custom_tool_call")
HEADING = "**Weighing the options**\n\n"
"""A thought that begins like this names what is thought about: Codex shows it in place of `Working`."""


def read(body: Json) -> Asked:
    reader = wire.Reader()
    for item in body.get("input", []):
        reader.agents += AGENT.findall(str(item.get("output", "")))
        if item.get("type", "message") in CALLS or item.get("role") == "assistant":
            reader.model()
        elif item.get("role") == "user":
            for block in item["content"]:
                if block.get("type") == "input_text" and not block["text"].startswith(OWN):
                    reader.person(block["text"])
    tools = tuple(name for tool in body.get("tools", []) for name in _names(tool))
    return reader.asked(tools, str(body.get("model", "")), main=bool(tools))


def _names(tool: Json) -> Iterator[str]:
    """A namespace holds tools of its own; they are called by `namespace` and name."""
    yield str(tool.get("name") or tool.get("type"))
    if tool.get("type") == "namespace":
        yield from (f"{tool['name']}/{inner['name']}" for inner in tool.get("tools", []))


def stream(asked: Asked, answer: Say | Call, pause: Pause) -> Iterator[bytes]:
    ident = f"resp_{time.time_ns()}"
    yield _event("response.created", response={"id": ident})
    call = _call(asked, answer) if isinstance(answer, Call) else None
    if call is not None:
        yield _event("response.output_item.done", output_index=0, item=call)
    else:
        yield from _speech(wire.spoken(answer), pause)
    usage = {
        "input_tokens": 10,
        "input_tokens_details": None,
        "output_tokens": 3,
        "output_tokens_details": None,
        "total_tokens": 13,
    }
    yield _event("response.completed", response={"id": ident, "usage": usage})


def _speech(say: Say, pause: Pause) -> Iterator[bytes]:
    pause(say.first_s)
    if say.thoughts:
        yield from _reasoning(say, pause)
    message: Json = {"type": "message", "role": "assistant", "id": f"msg_{time.time_ns()}", "content": []}
    yield _event("response.output_item.added", output_index=0, item=message)
    for word in wire.paced(say.words, say.pace_s, pause):
        yield _event("response.output_text.delta", output_index=0, content_index=0, delta=word)
    text = {"type": "output_text", "text": "".join(say.words)}
    yield _event("response.output_item.done", output_index=0, item={**message, "content": [text]})


def _reasoning(say: Say, pause: Pause) -> Iterator[bytes]:
    item: Json = {"type": "reasoning", "id": f"rs_{time.time_ns()}", "summary": []}
    yield _event("response.output_item.added", output_index=0, item=item)
    yield _event("response.reasoning_summary_part.added", output_index=0, summary_index=0)
    thoughts = (HEADING, *say.thoughts)
    for word in wire.paced(thoughts, say.pace_s, pause):
        yield _event("response.reasoning_summary_text.delta", output_index=0, summary_index=0, delta=word)
    summary = [{"type": "summary_text", "text": "".join(thoughts)}]
    yield _event("response.output_item.done", output_index=0, item={**item, "summary": summary})


def _call(asked: Asked, call: Call) -> Json | None:
    match call.tool:
        case Tool.BASH:
            return _shell(asked, call.argument)
        case Tool.EDIT:
            patch = f"*** Begin Patch\n*** Add File: {call.argument}\n+one line\n*** End Patch\n"
            if wire.named(asked.tools, "apply_patch"):
                return _item("custom_tool_call", "apply_patch", input=patch)
            # which it takes for the tool
            return _function("exec_command", {"cmd": f"apply_patch <<'EOF'\n{patch}EOF\n"})
        case Tool.QUESTION:
            return _function(wire.named(asked.tools, "request_user_input"), {"questions": wire.questions()})
        case Tool.AGENT | Tool.BACKGROUND:
            return _function(_ending(asked, "spawn_agent"), {"task_name": "part", "message": call.argument})
        case Tool.PLAN | Tool.STATE:
            return None
        case Tool.WAIT:
            return _function(_ending(asked, "wait_agent"), {"targets": asked.agents, "timeout_ms": 60_000})


def _ending(asked: Asked, name: str) -> str | None:
    return next((tool for tool in asked.tools if tool.endswith(name)), None)


def _shell(asked: Asked, command: str) -> Json | None:
    name = wire.named(asked.tools, "exec_command", "shell_command", "shell")
    arguments: Json = {"sandbox_permissions": "require_escalated", "justification": "May I run this?"}
    match name:
        case "exec_command":
            arguments["cmd"] = command
        case "shell_command":
            arguments["command"] = command
        case _:
            arguments["command"] = ["bash", "-lc", command]
    return _function(name, arguments)


def _function(name: str | None, arguments: Json) -> Json | None:
    if name is None:
        return None
    space, _, name = name.rpartition("/")
    inside = {"namespace": space} if space else {}
    return _item("function_call", name, arguments=json.dumps(arguments), **inside)


def _item(kind: str, name: str, **rest: str) -> Json:
    return {"type": kind, "name": name, "call_id": f"call_{time.time_ns()}", **rest}


def refusal(refuse: Refuse) -> Refusal:
    match refuse.why:
        case Why.LIMIT:
            error: Json = {"type": "usage_limit_reached", "message": "This account is out of budget."}
            error |= {"plan_type": "plus", "resets_at": int(time.time() + refuse.reset_s)}
            return Refusal(429, {}, {"error": error})
        case Why.OVERLOAD:
            return wire.broken(503, "server_error", "The server had no room for this request.")
        case Why.AUTH:
            return wire.broken(401, "invalid_request_error", "Incorrect API key provided.")
        case Why.CREDIT:
            spent = {"code": "insufficient_quota", "message": "You exceeded your current quota."}
            return Refusal(429, {}, {"error": {"type": "insufficient_quota", **spent}})
        case Why.BROKEN:
            return wire.broken()


def _event(kind: str, **rest: object) -> bytes:
    return wire.event({"type": kind, **rest}, kind)
