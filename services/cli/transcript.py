"""`muster transcript`: an agent's conversation, from the file that the agent's own program keeps."""

import argparse
import contextlib
import dataclasses
import io
import json
import os
import shutil
import sys
import textwrap
from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from registry import AgentRecord, BadRegistry, RegistryFile
from services.cli.fleet_option import open_fleet_leniently
from services.cli.words import Paint, did_you_mean, plain
from shared.agents.transcript import READERS, Speaker, TranscriptEntry
from shared.client.transcript_place import TranscriptPlace
from shared.errors import MusterError
from shared.fleet import Fleet

WIDEST, NARROWEST = 120, 40
SHORT_LINES = 3
INDENT = "  "


def recorded(fleet: Fleet) -> Mapping[str, AgentRecord]:
    with contextlib.suppress(BadRegistry):
        return RegistryFile(fleet.registry).records()
    return {}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", help="whose conversation")
    parser.add_argument("--conversation", metavar="ID", help="which one; else the one it is in, else its newest")
    parser.add_argument("--last", type=int, metavar="N", help="only the last N turns")
    parser.add_argument("--full", action="store_true", help="thoughts and results of tools at full length")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def run(options: argparse.Namespace) -> int:
    fleet, _ = open_fleet_leniently(options)
    agents = sorted({*fleet.agents, *recorded(fleet)})
    if options.agent not in agents:
        hint = did_you_mean(options.agent, agents)
        raise MusterError(f"there is no agent {plain(options.agent)!r}; {hint}there are: {', '.join(agents) or 'none'}")
    place = TranscriptPlace.of(fleet, options.agent, recorded(fleet).get(options.agent))
    path, conversation = place.find(options.conversation)
    entries = last_turns(READERS[place.format].entries(path, conversation), options.last)
    if options.json:
        for entry in entries:
            print(json.dumps(_document(entry), ensure_ascii=False))
        return 0
    no_colour = bool(os.environ.get("NO_COLOR"))
    paint = Paint(io.StringIO() if no_colour else sys.stdout)
    print(paint.dim(plain(f"{options.agent} · {place.format} · conversation {conversation} · {path}")))
    width = max(NARROWEST, min(WIDEST, shutil.get_terminal_size().columns))
    for line in render(entries, paint, width=width, full=options.full):
        print(line)
    return 0


def last_turns(entries: Iterable[TranscriptEntry], count: int | None) -> Iterator[TranscriptEntry]:
    """All entries, or those of the last few turns: a turn begins with a person's entry."""
    if count is None:
        yield from entries
        return
    turns: deque[list[TranscriptEntry]] = deque([[]], maxlen=max(count, 0) or 1)
    for entry in entries:
        if entry.who is Speaker.USER:
            turns.append([])
        turns[-1].append(entry)
    for turn in turns if count > 0 else ():
        yield from turn


def _document(entry: TranscriptEntry) -> dict[str, object]:
    return {**dataclasses.asdict(entry), "time": entry.time.isoformat() if entry.time else None}


# --- for people ---


def render(entries: Iterable[TranscriptEntry], paint: Paint, *, width: int, full: bool) -> Iterator[str]:
    """Lines for a terminal: who spoke when, then what. Nothing in them commands the terminal."""
    day, speaker = "", None
    for entry in entries:
        local = entry.time.astimezone() if entry.time else None
        if local and (today := f"{local:%A, %d %B %Y}") != day:
            day = today
            yield from ("", paint.dim(f"── {day} ──"))
        speaks = Speaker.USER if entry.who is Speaker.USER else Speaker.AGENT
        if entry.who is Speaker.USER or (speaks is not speaker and entry.who is not Speaker.NOTE):
            yield from ("", f"{paint.bold(speaks)} {paint.dim(f'{local:%H:%M:%S}' if local else '')}".rstrip())
        elif entry.who is Speaker.AGENT:
            yield ""
        speaker = speaker if entry.who is Speaker.NOTE else speaks
        match entry.who:
            case Speaker.USER | Speaker.AGENT:
                yield from wrapped(entry.text, width)
            case Speaker.THINKING:
                lines = _at_most(list(wrapped(entry.text, width - 2)), None if full else SHORT_LINES)
                yield from (paint.dim(f"{INDENT}┊ {line.removeprefix(INDENT)}") for line in lines)
            case Speaker.TOOL:
                given = entry.arguments if full else entry.text
                yield f"{INDENT}▸ {paint.bold(plain(entry.tool))} {one_line(given, None if full else width)}".rstrip()
            case Speaker.RESULT:
                yield from _result(entry, paint, width, full=full)
            case Speaker.NOTE:
                text = f"{INDENT}— {one_line(entry.text, None)}"
                yield paint.bad(text) if entry.failed else paint.dim(text)


def _result(entry: TranscriptEntry, paint: Paint, width: int, *, full: bool) -> Iterator[str]:
    lines = [plain(line.expandtabs()) for line in entry.text.strip("\n").split("\n")]
    shown = lines if full else _at_most(lines, SHORT_LINES)
    for number, line in enumerate(shown):
        text = f"{INDENT}{'⎿' if number == 0 else ' '} {line}"
        text = text if full or len(text) <= width else text[: width - 1] + "…"
        yield paint.bad(text) if entry.failed else paint.dim(text)


def _at_most(lines: list[str], count: int | None) -> list[str]:
    if count is None or len(lines) <= count:
        return lines
    return [*lines[:count], f"{INDENT}… {len(lines) - count} more lines (--full)"]


def one_line(text: str, width: int | None) -> str:
    line = plain(" ".join(text.split()))
    return line if width is None or len(line) <= width else line[: width - 1] + "…"


def wrapped(text: str, width: int) -> Iterator[str]:
    """The lines of a text. A long one is broken between words, and goes on with the same indentation."""
    for line in text.strip("\n").split("\n"):
        line = plain(line.expandtabs().rstrip())  # noqa: PLW2901
        margin = INDENT + " " * min(len(line) - len(line.lstrip()), width // 2)
        yield from textwrap.wrap(
            line,
            width,
            initial_indent=INDENT,
            subsequent_indent=margin,
            replace_whitespace=False,
            drop_whitespace=True,
            break_on_hyphens=False,
        ) or [""]
