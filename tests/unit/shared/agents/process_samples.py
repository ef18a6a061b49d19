"""A look at processes that are not there: as they were recorded, or as a test wants them."""

import json
import os
from pathlib import Path

from shared.system.processes import OpenFile, Process
from tests.fakes.processes import Details, FakeProcesses

SAMPLES = Path(__file__).parents[3] / "samples" / "identity"
RECORDED_AT = "/srv/app"


def ident(number: int) -> str:
    """The ids in the samples."""
    return f"{number:08x}-0000-4000-8000-{number:012x}"


def moment(sample: str, name: str, room: Path) -> FakeProcesses:
    """The processes at one moment of a recording, as if it had happened in that room: `home` and `ws` are in it."""
    states = json.loads((SAMPLES / sample / "states.json").read_text().replace(RECORDED_AT, str(room)))
    home, works = room / "home", room / "ws"
    return FakeProcesses(
        {
            Process(row["pid"], row["parent"], row["name"], row["started"], row["pid"] * 7): Details(
                row["arguments"],
                {"HOME": str(home)},
                works,
                [OpenFile(Path(path), position) for path, position, *_ in row["open_files"]],
            )
            for row in states[name]
        }
    )


def put(path: Path, text: str, written: float | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    if written is not None:
        os.utime(path, (written, written))
    return path
