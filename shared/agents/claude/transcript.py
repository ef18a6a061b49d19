"""Claude Code: `projects/<workspace with dashes>/<conversation>.jsonl` (seen with 2.1.197)."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shared.agents.transcript import (
    Document,
    Speaker,
    TranscriptEntry,
    at,
    is_name,
    json_lines_format,
    newest,
    texts,
    tool_call,
)

CUT_AT = 200
INTERRUPTED = "[Request interrupted by user"
COMMAND = re.compile(r"<command-name>(?P<name>[^<]*)</command-name>")
ARGUMENTS = re.compile(r"<command-args>(?P<arguments>.*?)</command-args>", re.DOTALL)
BASH = re.compile(r"<bash-input>(?P<line>.*?)</bash-input>", re.DOTALL)
OWN = ("<local-command-", "<bash-stdout>", "<bash-stderr>", "<system-reminder>", "<task-notification>")


def locate(env: Mapping[str, str], workspace: Path, conversation: str | None) -> Path | None:
    root = Path(env.get("CLAUDE_CONFIG_DIR") or Path(env.get("HOME") or "/") / ".claude") / "projects"
    if conversation is not None:
        return _file_of(root, workspace, conversation) if is_name(conversation) else None
    files = (file for folder in _own(root, workspace) for file in folder.glob("*.jsonl"))
    return next(iter(newest(file for file in files if not file.name.startswith("agent-"))), None)


def _file_of(root: Path, workspace: Path, conversation: str) -> Path | None:
    """Where it most likely is, else anywhere: a conversation stays in its file when the agent goes elsewhere."""
    name = f"{conversation}.jsonl"
    own = newest(folder / name for folder in _own(root, workspace))
    return next(iter(own or newest(root.glob(f"*/{name}"))), None)


def _own(root: Path, workspace: Path) -> Iterator[Path]:
    """The folders of a workspace, by each of its names."""
    yield from _folders(root, workspace)
    if (resolved := workspace.resolve()) != workspace:
        yield from _folders(root, resolved)


def _folders(root: Path, workspace: Path) -> list[Path]:
    # As JavaScript counts letters: those outside the first plane are two.
    dashes = "".join(
        letter if letter.isascii() and letter.isalnum() else "-" * (2 if ord(letter) > 0xFFFF else 1)
        for letter in str(workspace)
    )
    return [root / dashes] if len(dashes) <= CUT_AT else list(root.glob(f"{dashes[:CUT_AT]}-*"))


def conversation_in(path: Path, workspace: Path) -> str | None:  # noqa: ARG001 - every reader is asked alike
    return path.stem


def translate(line: Document) -> Iterator[TranscriptEntry]:
    if line.get("isSidechain") or line.get("isMeta"):
        return
    time = at(line.get("timestamp"))
    match line.get("type"):
        case "user" if line.get("isCompactSummary"):
            yield TranscriptEntry(Speaker.NOTE, "the conversation so far was made shorter", time)
        case "user":
            yield from _user(line["message"]["content"], time)
        case "assistant" if line.get("isApiErrorMessage"):
            yield TranscriptEntry(Speaker.NOTE, " ".join(texts(line["message"]["content"], "text")), time, failed=True)
        case "assistant":
            yield from _assistant(line["message"]["content"], time)
        case "attachment" if line.get("attachment", {}).get("type") == "queued_command":
            yield from (
                TranscriptEntry(Speaker.USER, text, time) for text in texts(line["attachment"].get("prompt"), "text")
            )
        case "system" if line.get("subtype") == "compact_boundary":
            yield TranscriptEntry(Speaker.NOTE, "the conversation so far was made shorter", time)
        case "system" if line.get("subtype") == "api_error":
            yield TranscriptEntry(
                Speaker.NOTE, f"the model did not answer: {_said(line.get('error'))}", time, failed=True
            )


def _user(content: Any, time: Any) -> Iterator[TranscriptEntry]:
    for text in texts(content, "text"):
        if text.startswith(INTERRUPTED):
            yield TranscriptEntry(Speaker.NOTE, "interrupted", time, failed=True)
        elif prompt := _typed(text):
            yield TranscriptEntry(Speaker.USER, prompt, time)
    for block in content if isinstance(content, list) else []:
        match block.get("type"):
            case "tool_result":
                said = "\n".join(texts(block.get("content"), "text"))
                yield TranscriptEntry(
                    Speaker.RESULT, said, time, call=block.get("tool_use_id", ""), failed=bool(block.get("is_error"))
                )
            case "image" | "document" as kind:
                yield TranscriptEntry(Speaker.USER, f"({kind})", time)


def _assistant(content: Any, time: Any) -> Iterator[TranscriptEntry]:
    for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
        match block.get("type"):
            case "text":
                yield TranscriptEntry(Speaker.AGENT, block["text"], time)
            case "thinking":
                yield TranscriptEntry(Speaker.THINKING, block["thinking"], time)
            case "tool_use":
                yield tool_call(block["name"], block.get("input"), time=time, call=block.get("id", ""))


def _typed(text: str) -> str:
    """What a person typed, of which Claude records commands in its own format; empty for texts of Claude's own."""
    if text.startswith("<command-") and (command := COMMAND.search(text)):
        given = ARGUMENTS.search(text)
        return f"{command['name']} {given['arguments'] if given else ''}".strip()
    if bash := BASH.match(text):
        return f"!{bash['line']}"
    return "" if text.startswith(OWN) else text


def _said(error: Any) -> str:
    return str(error.get("message") or error.get("status") or error) if isinstance(error, Mapping) else str(error)


def prompts(line: Document) -> Iterator[str]:
    if line.get("type") == "queue-operation" and line.get("operation") == "enqueue":
        if isinstance(line.get("content"), str) and (prompt := _typed(line["content"])):
            yield prompt
    elif (
        line.get("type") == "user" and line.get("promptSource") != "queued"
    ):  # queued ones were given when they were queued
        yield from (
            entry.text
            for entry in translate(line)
            if entry.who is Speaker.USER and (entry.text not in ("(image)", "(document)"))
        )


READER = json_lines_format(locate, conversation_in, translate, prompts)
