"""Gemini generateContent, for Gemini CLI."""

from collections.abc import Iterator

from tests.real_agents.model import wire
from tests.real_agents.model.script import Call, Refuse, Say, Tool
from tests.real_agents.model.wire import Asked, Json, Pause, Refusal

OWN = ("<session_context>",)


def read(body: Json, model: str) -> Asked:
    said: list[str] = []
    for content in body.get("contents", []):
        if content.get("role") == "model":
            said.clear()
        else:
            texts = [part["text"] for part in content.get("parts", []) if "text" in part]
            said.extend(text for text in texts if not text.strip().startswith(OWN))
    tools = tuple(
        str(function["name"]) for group in body.get("tools", []) for function in group.get("functionDeclarations", [])
    )
    return Asked(tuple(said), tools, model, bool(tools))


def stream(asked: Asked, answer: Say | Call, pause: Pause) -> Iterator[bytes]:
    call = _call(asked, answer) if isinstance(answer, Call) else None
    if call is not None:
        yield wire.event(_piece({"functionCall": call}, last=True))
        return
    say = answer if isinstance(answer, Say) else Say(("No such tool here.",))
    for word in wire.paced(say, pause):
        yield wire.event(_piece({"text": word}, last=False))
    yield wire.event(_piece({"text": ""}, last=True))


def _call(asked: Asked, call: Call) -> Json | None:
    match call.tool:
        case Tool.BASH:
            name = "run_shell_command"
            arguments: Json = {"command": call.argument, "description": "Runs what was asked"}
        case Tool.EDIT:
            name, arguments = "write_file", {"file_path": call.argument, "content": "one line\n"}
        case Tool.QUESTION:
            name, arguments = "ask_user", {"questions": wire.questions()}
    return {"name": name, "args": arguments} if name in asked.tools else None


def whole(_asked: Asked, text: str) -> Json:
    """The answer to a request that does not stream."""
    return _piece({"text": text}, last=True)


def _piece(part: Json, *, last: bool) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": [part]}, "index": 0}
    if last:
        candidate["finishReason"] = "STOP"
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 3, "totalTokenCount": 13}
    return {"candidates": [candidate], "usageMetadata": usage}


def refusal(refuse: Refuse) -> Refusal:
    if refuse.status != 429:
        return wire.broken(refuse)
    return Refusal(
        429, {}, {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your quota."}}
    )
