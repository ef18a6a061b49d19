"""opencode: the conversation that the process was last prompted in, by its own log (measured with 1.18.33).

All processes write one log, and each line has the `run` that wrote it. Each process has its own open file, whose
position is after its last line. So that line gives the process's run, and the lines before it the conversations of that
run: exact, with any number of processes in one directory. The database shows which conversations are people's.

A conversation begins with its first prompt. `/new` and the list of sessions leave no trace before the next prompt. On
systems that don't show file positions there is no answer.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from shared.agents.identity import ConversationIdentity, conversation, option, path_of, selves
from shared.agents.opencode.transcript import open_read_only
from shared.agents.transcript import READERS
from shared.system.processes import Process, Processes

SERVES = {"serve", "web", "acp", "attach"}
"""Commands with which it serves others, or is served."""
LINE = re.compile(
    rb"timestamp=\S+ level=\w+ +run=(?P<run>\w+) message="
    rb"(?:loop session\.id=(?P<prompted>[\w-]+)|created id=(?P<created>[\w-]+)|)"
)
BLOCK = 1 << 16
BLOCKS = 64
BUSY_TIMEOUT_S = 0.5


def identify(processes: Processes, agent: Process, workspace: Path) -> ConversationIdentity | None:
    for process in reversed(selves(processes, agent)):
        # It has the log open twice, and writes through one of them.
        written = [(file.position, file.path) for file in processes.open_files(process, ".log") if _is_log(file.path)]
        positions = [(position, path) for position, path in written if position]
        if positions and SERVES.isdisjoint(processes.arguments(process)[1:]):
            return _identity(processes, process, workspace, *max(positions))
    return None


def _is_log(path: Path) -> bool:
    return path.suffix == ".log" and path.parent.name == "log" and path.parent.parent.name == "opencode"


def _identity(
    processes: Processes, process: Process, workspace: Path, position: int, log: Path
) -> ConversationIdentity | None:
    env = processes.environment(process)
    named = conversation(option(processes.arguments(process), "--session", "-s"))
    for ident in (*_worked_in(log, position), *([named] if named else [])):
        database = READERS["opencode"].locate(env, workspace, ident)
        if database is None:
            continue
        directory = _directory_of_peoples(database, ident)
        if directory is not None:
            return ConversationIdentity(ident, database, path_of(directory))
    return None


def _worked_in(log: Path, position: int) -> Iterator[str]:
    """The conversations of the run whose last line ends at this position, the last one first."""
    run = None
    for line in _lines_before(log, position):
        found = LINE.match(line)
        if run is None:
            if found is None:
                return  # not what was measured
            run = found["run"]
        if found is not None and found["run"] == run and (ident := found["prompted"] or found["created"]):
            yield ident.decode()


def _lines_before(path: Path, position: int) -> Iterator[bytes]:
    """Lines from a place backwards, as far as it is worth it. Nothing if no line ends at that place."""
    end, rest = position, b""
    try:
        with path.open("rb") as file:
            for _ in range(BLOCKS):
                start = max(0, end - BLOCK)
                file.seek(start)
                block = file.read(end - start)
                if len(block) < end - start or (end == position and not block.endswith(b"\n")):
                    return
                rest, *lines = (block + rest).split(b"\n")
                yield from (line for line in reversed(lines) if line)
                end = start
                if start == 0:
                    yield rest
                    return
    except OSError:
        return


def _directory_of_peoples(database: Path, ident: str) -> str | None:
    """The directory of a conversation; None if it is a subagent's."""
    try:
        with closing(open_read_only(database, BUSY_TIMEOUT_S)) as connection:
            query = "SELECT directory FROM session WHERE id = ? AND parent_id IS NULL"
            row = connection.execute(query, (ident,)).fetchone()
    except sqlite3.Error:
        return None
    return row[0] if row is not None and isinstance(row[0], str) else None
