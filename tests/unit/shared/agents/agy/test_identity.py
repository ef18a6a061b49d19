"""Antigravity CLI, by what people tell of its files."""

import shutil
from pathlib import Path

from shared.agents.identity import IDENTITY_READERS, ConversationIdentity
from shared.system.processes import OpenFile, Process
from tests.fakes.processes import Details, FakeProcesses
from tests.unit.shared.agents.process_samples import SAMPLES, ident, put

AGY = Process(50, 1, "agy", 1000.0, 1)


def root(room: Path) -> Path:
    return room / ".gemini" / "antigravity-cli"


def database(room: Path, number: int) -> Path:
    return put(root(room) / "conversations" / f"{ident(number)}.db", "")


def seen(room: Path, *arguments: str, held: list[Path] | None = None) -> FakeProcesses:
    shutil.copytree(SAMPLES / "agy-unmeasured", root(room), dirs_exist_ok=True)
    files = [OpenFile(path, 0) for path in held or []]
    return FakeProcesses({AGY: Details(["agy", *arguments], {"HOME": str(room)}, Path("/srv/app/ws"), files)})


def identify(processes: FakeProcesses) -> ConversationIdentity | None:
    return IDENTITY_READERS["agy"](processes, AGY, Path("/nowhere"))


def test_the_database_that_it_holds(tmp_path: Path) -> None:
    path = database(tmp_path, 5)
    held = [path, path, path.with_name(f"{path.name}-wal"), tmp_path / "else.db"]
    assert identify(seen(tmp_path, held=held)) == ConversationIdentity(ident(5), path, Path("/srv/app/ws"))


def test_several_tell_nothing(tmp_path: Path) -> None:
    assert identify(seen(tmp_path, held=[database(tmp_path, 5), database(tmp_path, 6)])) is None


def test_the_last_one_of_a_directory_is_not_enough(tmp_path: Path) -> None:
    database(tmp_path, 1)
    assert identify(seen(tmp_path)) is None


def test_the_command_line_and_the_last_one_agree(tmp_path: Path) -> None:
    path = database(tmp_path, 1)
    database(tmp_path, 2)
    processes = seen(tmp_path, f"--conversation={ident(1)}")
    assert identify(processes) == ConversationIdentity(ident(1), path, Path("/srv/app/ws"))
    assert identify(seen(tmp_path, "--conversation", ident(2))) is None
    other = Process(60, 1, "agy", 900.0, 1)
    assert identify(processes.and_also(other, arguments=["agy"])) is None


def test_broken_files_say_nothing(tmp_path: Path) -> None:
    database(tmp_path, 1)
    processes = seen(tmp_path, f"--conversation={ident(1)}")
    put(root(tmp_path) / "cache" / "last_conversations.json", '{"/srv/app/ws": ')
    assert identify(processes) is None
