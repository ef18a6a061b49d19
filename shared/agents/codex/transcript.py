"""Codex: `sessions/YYYY/MM/DD/rollout-<time>-<conversation>.jsonl` (seen with 0.166.0)."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shared.agents.transcript import (
    Document,
    Speaker,
    TranscriptEntry,
    at,
    first,
    is_name,
    json_lines_format,
    newest,
    texts,
    tool_call,
)

ROLLOUT = re.compile(r"rollout-\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}-(?P<conversation>.+)\.jsonl")
FAILED = re.compile(r"\A(?:.*\n){0,4}?(?:Process exited with code [1-9]|Exit code: [1-9]|aborted by user)")
MOST_FILES = 500
"""How many of the newest files are searched for a workspace's conversation; each costs reading one line."""


def locate(env: Mapping[str, str], workspace: Path, conversation: str | None) -> Path | None:
    root = Path(env.get("CODEX_HOME") or Path(env.get("HOME") or "/") / ".codex") / "sessions"
    if conversation is not None:
        found = newest(root.glob(f"*/*/*/rollout-*-{conversation}.jsonl")) if is_name(conversation) else []
        return found[0] if found else None
    places = {str(workspace), str(workspace.resolve())}
    files = newest(root.glob("*/*/*/rollout-*.jsonl"))[:MOST_FILES]
    return next((file for file in files if _is_of(first(file), places)), None)


def _is_of(head: Document, places: set[str]) -> bool:
    """Whether a file is a person's conversation in this workspace, and not one of a subagent."""
    about = head.get("payload")
    source = about.get("source") if isinstance(about, dict) else None
    return isinstance(about, dict) and about.get("cwd") in places and not isinstance(source, dict)


def conversation_in(path: Path, workspace: Path) -> str | None:  # noqa: ARG001 - the signature of all formats
    found = ROLLOUT.fullmatch(path.name)
    return found["conversation"] if found else None


def translate(line: Document) -> Iterator[TranscriptEntry]:
    time, about = at(line.get("timestamp")), line.get("payload")
    if not isinstance(about, dict):
        return
    match line.get("type"), about.get("type"):
        case "event_msg", _:
            yield from _event(about, time)
        case "response_item", "message" if about.get("role") == "assistant":
            yield from (
                TranscriptEntry(Speaker.AGENT, text, time) for text in texts(about.get("content"), "output_text")
            )
        case "response_item", "reasoning":
            yield from (
                TranscriptEntry(Speaker.THINKING, text, time) for text in texts(about.get("summary"), "summary_text")
            )
        case "response_item", "function_call" | "custom_tool_call":
            given = about.get("arguments", about.get("input"))
            yield tool_call(about["name"], _arguments(given), time=time, call=about.get("call_id", ""))
        case "response_item", "local_shell_call" | "web_search_call" as kind:
            yield tool_call(kind.removesuffix("_call"), about.get("action"), time=time, call=about.get("call_id") or "")
        case "response_item", "function_call_output" | "custom_tool_call_output":
            said = _output(about.get("output"))
            yield TranscriptEntry(
                Speaker.RESULT, said, time, call=about.get("call_id", ""), failed=bool(FAILED.match(said))
            )
        case "compacted", _:
            yield TranscriptEntry(Speaker.NOTE, "the conversation so far was made shorter", time)


def _event(about: Document, time: Any) -> Iterator[TranscriptEntry]:
    match about.get("type"):
        case "turn_aborted":
            yield TranscriptEntry(Speaker.NOTE, str(about.get("reason") or "interrupted"), time, failed=True)
        case "task_complete" if isinstance(about.get("error"), dict):
            yield TranscriptEntry(Speaker.NOTE, str(about["error"].get("message")), time, failed=True)
        case "error" | "stream_error":
            yield TranscriptEntry(Speaker.NOTE, str(about.get("message")), time, failed=True)
        case _:
            yield from (TranscriptEntry(Speaker.USER, text, time) for text in _typed(about))


def _typed(about: Document) -> Iterator[str]:
    """What people typed. The messages to the model contain more in the user's name."""
    item = about.get("item")
    if about.get("type") == "item_completed" and isinstance(item, dict) and item.get("type") == "UserMessage":
        yield "".join(texts(item.get("content"), "text"))
    elif about.get("type") == "user_message" and isinstance(about.get("message"), str):  # older versions
        yield about["message"]


def _arguments(given: Any) -> Any:
    try:
        return json.loads(given)
    except (ValueError, TypeError, RecursionError):
        return given


def _output(output: Any) -> str:
    if isinstance(output, dict):
        output = output.get("content")
    return "\n".join(texts(output, "input_text", "output_text", "text"))


def prompts(line: Document) -> Iterator[str]:
    about = line.get("payload")
    if line.get("type") == "event_msg" and isinstance(about, dict):
        yield from _typed(about)


READER = json_lines_format(locate, conversation_in, translate, prompts)
