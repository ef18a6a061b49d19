"""Gemini generateContent, for Gemini CLI."""

from collections.abc import Iterator

from tests.real_agents.model import wire
from tests.real_agents.model.script import Call, Refuse, Say, Tool, Why
from tests.real_agents.model.wire import Asked, Json, Pause, Refusal

OWN = ("<session_context>",)
HEADING = "**Weighing the options**\n"
"""A thought that begins like this names what is thought about: Gemini CLI shows it in place of `Thinking...`."""
RPC = "type.googleapis.com/google.rpc."


def read(body: Json, model: str) -> Asked:
    reader = wire.Reader()
    for content in body.get("contents", []):
        if content.get("role") == "model":
            reader.model()
        else:
            for part in content.get("parts", []):
                if "text" in part and not part["text"].strip().startswith(OWN):
                    reader.person(part["text"])
    tools = tuple(
        str(function["name"]) for group in body.get("tools", []) for function in group.get("functionDeclarations", [])
    )
    return reader.asked(tools, model, main=bool(tools))


def stream(asked: Asked, answer: Say | Call, pause: Pause) -> Iterator[bytes]:
    call = _call(asked, answer) if isinstance(answer, Call) else None
    if call is not None:
        yield wire.event(_piece({"functionCall": call}, last=True))
        return
    say = wire.spoken(answer)
    pause(say.first_s)
    for word in wire.paced((HEADING, *say.thoughts) if say.thoughts else (), say.pace_s, pause):
        yield wire.event(_piece({"text": word, "thought": True}, last=False))
    for word in wire.paced(say.words, say.pace_s, pause):
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
        case Tool.AGENT | Tool.BACKGROUND:
            name, arguments = "invoke_agent", {"agent_name": "generalist", "prompt": call.argument}
        case Tool.WAIT | Tool.PLAN | Tool.STATE:
            return None
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
    match refuse.why:
        case Why.LIMIT:
            return _error(429, "RESOURCE_EXHAUSTED", "You exceeded your quota.", *_quota(refuse))
        case Why.OVERLOAD:
            return _error(503, "UNAVAILABLE", "The model is overloaded. Please try again later.")
        case Why.AUTH:
            return _error(401, "UNAUTHENTICATED", "API key not valid. Please pass a valid API key.")
        case Why.CREDIT | Why.BROKEN:
            return wire.broken()


def _quota(refuse: Refuse) -> Iterator[Json]:
    """A spent day ends the turn, a spent minute is waited out; any other claim says nothing of its kind."""
    ident = {"per_day": "GenerateRequestsPerDayPerModel", "per_minute": "GenerateRequestsPerMinutePerModel"}
    if refuse.claim in ident:
        yield {"@type": f"{RPC}QuotaFailure", "violations": [{"quotaId": ident[refuse.claim]}]}
        yield {"@type": f"{RPC}RetryInfo", "retryDelay": f"{int(refuse.reset_s)}s"}


def _error(code: int, status: str, message: str, *details: Json) -> Refusal:
    error = {"code": code, "status": status, "message": message, "details": list(details)}
    return Refusal(code, {}, {"error": error})
