"""Muster's own scripted agent: `.muster/demo/<conversation>.jsonl` beside the fleet file."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from shared.agents.transcript import Document, Speaker, TranscriptEntry, is_name, json_lines_format

FLEET = "MUSTER_FLEET"


def locate(env: Mapping[str, str], workspace: Path, conversation: str | None) -> Path | None:  # noqa: ARG001 - the signature of all formats
    if FLEET not in env or conversation is None or not is_name(conversation):
        return None  # the files of all agents are together: the newest may be another one's
    file = Path(env[FLEET]).parent / ".muster" / "demo" / f"{conversation}.jsonl"
    return file if file.is_file() else None


def conversation_in(path: Path, workspace: Path) -> str | None:  # noqa: ARG001 - the signature of all formats
    return path.stem


def translate(line: Document) -> Iterator[TranscriptEntry]:
    time, text = datetime.fromtimestamp(line["time"], UTC), str(line["text"])
    match line["who"]:
        case "user":
            yield TranscriptEntry(Speaker.USER, text, time)
        case "agent":
            yield TranscriptEntry(Speaker.AGENT, text, time)
        case _:
            yield TranscriptEntry(Speaker.NOTE, text, time, failed=True)


def prompts(line: Document) -> Iterator[str]:
    if line.get("who") == "user":
        yield str(line.get("text"))


READER = json_lines_format(locate, conversation_in, translate, prompts)
