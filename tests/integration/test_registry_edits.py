"""People's editors and the registrar at the same file: what a person saves is never lost, however the editor saves."""

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from registry import ChangedMeanwhile, LateSave, RegistryFile
from tests.unit.registry.samples import record

WRITER = textwrap.dedent("""
    import sys
    from pathlib import Path
    from registry import BadRegistry, ChangedMeanwhile, LateSave, RegistryFile

    file = RegistryFile(Path(sys.argv[1]))
    number = 0
    while not Path(sys.argv[2]).exists():
        number += 1
        try:
            file.take_up_late_save()
            builder = file.records()["builder"]
            file.write({"builder": builder.model_copy(update={"pid": number})})
        except (BadRegistry, ChangedMeanwhile, LateSave):
            continue
""")
EDITS = 25


def vim(path: Path, known: str, line: str) -> None:
    """Writes a new file and renames it over the old one."""
    fresh = path.with_name("4913~")
    fresh.write_text(f"{opened(path, known)}{line}\n")
    fresh.rename(path)


def nano(path: Path, known: str, line: str) -> None:
    """Empties the file and writes it anew."""
    path.write_text(f"{opened(path, known)}{line}\n")


def append(path: Path, known: str, line: str) -> None:
    with path.open("a") as file:
        file.write(f"{line}\n")


def sed(path: Path, known: str, line: str) -> None:
    """`sed -i` itself, with a new last line."""
    opened(path, known)
    subprocess.run(["sed", "-i", "-e", f"$a\\{line}", str(path)], check=True)


def opened(path: Path, known: str) -> str:
    """The text as a person sees it who wrote `known` before, and looks whether it is there."""
    deadline = time.monotonic() + 5
    while known not in (text := path.read_text()):
        assert time.monotonic() < deadline, f"{known!r} was lost:\n{text}"
        time.sleep(0.001)
    return text


def missing(lines: list[str], path: Path) -> list[str]:
    """What is neither in the file nor kept beside it."""
    kept = [each.read_text() for each in path.parent.glob("registry.yaml.late-*")]
    everything = "\n".join([path.read_text(), *kept]).splitlines()
    return [line for line in lines if line not in everything]


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """A process that writes to the file all the time."""
    done = path.with_name("done")
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(done)])
    try:
        before = path.stat().st_ino
        while path.stat().st_ino == before:
            assert writer.poll() is None
            time.sleep(0.01)
        yield
    finally:
        done.touch()
        assert writer.wait(timeout=30) == 0


@pytest.mark.parametrize("editor", [vim, nano, append, sed], ids=lambda each: str(each.__name__))
def test_an_edit_beside_a_busy_writer_stays(tmp_path: Path, editor: Callable[[Path, str, str], None]) -> None:
    """Each edit adds a comment; it stays in the file, or is kept beside it where two saves can't be one."""
    path = tmp_path / "registry.yaml"
    RegistryFile(path).write({"builder": record()})
    lines = [f"# edit {number} by {editor.__name__}" for number in range(EDITS)]
    with writing(path):
        for known, line in pairwise(["", *lines]):
            editor(path, known, line)
        deadline = time.monotonic() + 10
        while missing(lines, path) and time.monotonic() < deadline:
            time.sleep(0.02)
    assert set(RegistryFile(path).records()) == {"builder"}
    assert missing(lines, path) == []


def test_a_slow_save_into_the_old_file_is_taken_up(tmp_path: Path) -> None:
    """`(sleep 1; cat edited) > registry.yaml` opens the file long before it writes."""
    path = tmp_path / "registry.yaml"
    file = RegistryFile(path)
    file.write({"builder": record()})
    edited = path.read_text().replace("spawned", "because I say so")
    go, opened = tmp_path / "go", tmp_path / "opened"
    script = f'exec 3<>"{path}"; touch "{opened}"; until [ -e "{go}" ]; do sleep 0.01; done; printf "%s" "$1" >&3'
    editor = subprocess.Popen(["sh", "-c", script, "sh", edited])
    while not opened.exists():
        time.sleep(0.01)
    file.write({"builder": record(pid=8)})
    go.touch()
    assert editor.wait(timeout=10) == 0
    deadline = time.monotonic() + 10
    while not file.take_up_late_save():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert path.read_text() == edited
    with pytest.raises(ChangedMeanwhile):
        file.write({"builder": record(pid=8)})
    assert file.records()["builder"].reason == "because I say so"


def test_two_writers_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "registry.yaml"
    RegistryFile(path).write({"builder": record()})
    file = RegistryFile(path)
    written = 0
    with writing(path):
        deadline = time.monotonic() + 20
        while written < 10 and time.monotonic() < deadline:
            try:
                builder = file.records()["builder"]
                file.write({"builder": builder.model_copy(update={"reason": f"turn {written}"})})
                written += 1
            except (ChangedMeanwhile, LateSave):
                continue
    assert written == 10
    assert RegistryFile(path).records()["builder"].reason == "turn 9"


def test_a_lock_of_another_process_delays_a_write(tmp_path: Path) -> None:
    path = tmp_path / "registry.yaml"
    file = RegistryFile(path)
    file.write({"builder": record()})
    holder = subprocess.Popen(
        ["flock", str(tmp_path / ".registry.lock"), "sh", "-c", f'touch "{tmp_path}/held"; sleep 0.5'],
        env={**os.environ},
    )
    while not (tmp_path / "held").exists():
        time.sleep(0.01)
    began = time.monotonic()
    file.write({"builder": record(pid=8)})
    assert time.monotonic() - began > 0.2
    assert holder.wait(timeout=10) == 0
