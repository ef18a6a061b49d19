"""Record again what an agent program shows and writes in every situation, so that a new release is an update of data.

    python -m tests.real_agents.record claude --version 2.1.325 --columns 80 120 200
    python -m tests.real_agents.record codex --situation thinking approved

installs that version, brings about each situation of `situations.py` against the scripted model, and writes one file
per case, `recorded/<cli>-<version>/<situation>@<columns>.json`. A case that does not come about is reported with the
screen as it was, and the others are recorded all the same: a release that has changed its words needs a look at
`screen_words.py` (what to wait for) or `keys.py` (which keys answer its dialogs), and then `--missing` records the
rest. Look at each screen (`--show` prints them): a recording that does not show its situation is worse than none.

Each case runs in an empty room at a fixed short path, so that nothing of this machine is in the data. Hooks,
transcripts and the live file are kept at one width only, the others are recorded as without any hooks.
"""

import argparse
import fcntl
import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.real_agents.clis import CLIS, Cli
from tests.real_agents.installs import installed
from tests.real_agents.rehearsal import ROWS, rehearsal
from tests.real_agents.situations import SITUATIONS, Situation

RECORDED = Path(__file__).parent / "recorded"
IN_FULL_AT = 120
ROOM = "/tmp/agents-1"  # noqa: S108 - the path is part of the data
ROOMS = (ROOM, "/tmp/agents-2")  # noqa: S108
STYLES = re.compile(r"\x1b\[[0-9;:]*m")


@contextmanager
def a_room() -> Iterator[Path]:
    """The first room that nobody records in."""
    while True:
        for path in ROOMS:
            with Path(f"{path}.lock").open("w") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                yield Path(path)
                return
        time.sleep(1)


def case(cli: Cli, situation: Situation, room: Path, columns: int) -> dict[str, Any]:
    in_full = columns == IN_FULL_AT
    with rehearsal(cli, situation, room, columns, hooked=in_full) as playing:
        playing.play(situation)
        found: dict[str, Any] = {
            "cli": cli.name,
            "version": cli.version,
            "situation": situation.name,
            "expected": situation.expected,
            "columns": columns,
            "rows": ROWS,
            **playing.seen(),
        }
        if in_full:
            found |= playing.written()
    return found


def anonymous(text: str, cli: Cli, room: Path) -> str:
    """The same with nothing in it that tells which machine it was."""
    home = str(installed(cli).parents[2])
    text = text.replace(home, f"/opt/{cli.name}").replace(room.name, Path(ROOM).name)
    text = text.replace(str(Path.home()) + "/", "/home/user/")
    return re.sub(rf"\b{re.escape(os.uname().nodename)}\b", "host", text)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.real_agents.record", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("cli", choices=[cli.name for cli in CLIS])
    parser.add_argument("--version", help="as the package registry names it; otherwise the one that the tests use")
    parser.add_argument("--columns", type=int, nargs="+", default=[IN_FULL_AT])
    parser.add_argument("--situation", nargs="+", default=[], choices=[situation.name for situation in SITUATIONS])
    parser.add_argument("--out", type=Path, default=RECORDED)
    parser.add_argument("--missing", action="store_true", help="leave alone what is recorded already")
    parser.add_argument("--show", action="store_true", help="print each screen")
    asked = parser.parse_args()
    cli = next(cli for cli in CLIS if cli.name == asked.cli)
    if asked.version:
        cli = replace(cli, version=asked.version)
    wanted = [
        one
        for one in SITUATIONS
        if one.concerns(cli.name, cli.version) and (not asked.situation or one.name in asked.situation)
    ]
    failed = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # with nothing left running
    with a_room() as room:
        for columns in asked.columns:
            for situation in wanted:
                if asked.missing and _file(cli, situation, columns, asked.out).exists():
                    continue
                failed += not _record(cli, situation, room, columns, asked.out, show=asked.show)
    return 1 if failed else 0


def _file(cli: Cli, situation: Situation, columns: int, out: Path) -> Path:
    return out / f"{cli.name}-{cli.version}" / f"{situation.name}@{columns}.json"


def _record(cli: Cli, situation: Situation, room: Path, columns: int, out: Path, *, show: bool) -> bool:
    file = _file(cli, situation, columns, out)
    name = f"{file.parent.name}/{file.stem}"
    began = time.monotonic()
    try:
        found = case(cli, situation, room, columns)
    except AssertionError as why:
        print(f"NOT RECORDED {name}: {why}", flush=True)
        return False
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(anonymous(json.dumps(found, indent=1, ensure_ascii=False), cli, room) + "\n", encoding="utf-8")
    print(f"recorded {name} in {time.monotonic() - began:.1f} s", flush=True)
    if show:
        print("\n".join(STYLES.sub("", line) for line in found["screen"] if line.strip()))
    return True


if __name__ == "__main__":
    sys.exit(main())
