"""Muster's own scripted agent: `.muster/demo/<conversation>.jsonl` beside the fleet file."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from shared.agents.transcript import Document, Speaker, TranscriptEntry, is_name, json_lines_format, newest

FLEET = "MUSTER_FLEET"


def locate(env: Mapping[str, str], workspace: Path, conversation: str | None) -> Path | None:  # noqa: ARG001 - the signature of all formats
    if FLEET not in env:
        return None
    folder = Path(env[FLEET]).parent / ".muster" / "demo"
    if conversation is None:
        return next(iter(newest(folder.glob("*.jsonl"))), None)
    file = folder / f"{conversation}.jsonl"
    return file if is_name(conversation) and file.is_file() else None


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
