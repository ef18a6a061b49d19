"""Never half a file, never a lost edit, and nothing left lying about."""

import os
import re
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from registry import ChangedMeanwhile, RegistryFile, disk
from registry.disk import exchange as real_exchange
from tests.unit.registry.samples import EDITED, record


def test_a_reader_never_sees_half_a_file(path: Path) -> None:
    agents = [f"agent{number}" for number in range(30)]
    writer = RegistryFile(path)
    writer.write({agent: record(pid=0) for agent in agents})
    done = threading.Event()
    seen: list[str] = []

    def read() -> None:
        while not done.is_set():
            text = path.read_text()
            if not seen or seen[-1] != text:
                seen.append(text)

    reader = threading.Thread(target=read)
    reader.start()
    for pid in range(1, 15):
        writer.write({agent: record(pid=pid) for agent in agents})
    done.set()
    reader.join()
    assert len(seen) > 1
    for text in seen:
        assert text.startswith("# ")
        assert text.count("    pid: ") == len(agents)
        assert len(set(re.findall(r"^    pid: \d+$", text, re.MULTILINE))) == 1


@pytest.mark.parametrize("fails", [(os, "fsync"), (os, "open"), (os, "write"), (disk, "exchange")])
def test_a_write_that_fails_leaves_the_old_file_and_can_be_made_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, fails: tuple[Any, str]
) -> None:
    file = RegistryFile(path)
    file.write({"builder": record(spawn="s1")})
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(*fails, full)
        with pytest.raises(OSError, match="No space left"):
            file.write({"builder": record(spawn="s2")})
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir() if each.name != disk.LOCK] == ["registry.yaml"]
    assert file.records()["builder"].spawn == "s1"
    file.write({"builder": record(spawn="s2")})
    assert RegistryFile(path).records()["builder"].spawn == "s2"


def test_a_file_keeps_its_mode(path: Path) -> None:
    file = RegistryFile(path)
    file.write({"builder": record()})
    for mode in (0o640, 0o400, 0o600):
        path.chmod(mode)
        file.write({"builder": record(pid=mode)})
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_link_stays_one_and_its_target_is_edited(path: Path, tmp_path: Path) -> None:
    home = tmp_path / "elsewhere"
    home.mkdir()
    path.symlink_to(home / "kept.yaml")
    file = RegistryFile(path)
    file.write({"builder": record()})
    file.write({"builder": record(pid=8)})
    assert path.is_symlink()
    assert RegistryFile(home / "kept.yaml").records()["builder"].pid == 8


def test_only_the_new_text_appears_beside_the_target_of_a_link(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a repository: the lock is the fleet's own, and only the new text must be on the same file system."""
    home = tmp_path / "repository"
    home.mkdir()
    path.symlink_to(home / "kept.yaml")
    places: list[tuple[Path, Path]] = []

    def noted_exchange(fresh: Path, target: Path) -> bool:
        places.append((fresh.parent, target))
        return real_exchange(fresh, target)

    monkeypatch.setattr(disk, "exchange", noted_exchange)
    file = RegistryFile(path)
    file.write({"builder": record()})
    with path.open("ab") as editor:
        file.write({"builder": record(pid=8)})
        editor.write(b"note: mine\n")
        editor.flush()
        os.utime(editor.fileno(), (0, 0))
    assert places == [(home, home / "kept.yaml")]
    assert file.take_up_late_save()
    assert [each.name for each in home.iterdir()] == ["kept.yaml"]
    assert sorted(each.name for each in tmp_path.iterdir()) == [disk.LOCK, "registry.yaml", "repository"]
    aside = file.set_aside()
    assert aside is not None
    assert [each.name for each in home.iterdir()] == [aside.name]


def test_a_link_planted_under_our_temporary_name_is_not_followed(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("not ours\n")
    file = RegistryFile(path)
    file.write({"builder": record()})
    (tmp_path / f".registry.yaml.new-{path.stat().st_ino}").symlink_to(other)
    file.write({"builder": record(pid=8)})
    assert other.read_text() == "not ours\n"
    (tmp_path / disk.LOCK).unlink()
    (tmp_path / disk.LOCK).symlink_to(other)
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        file.write({"builder": record(pid=9)})


def test_what_a_killed_writer_left_is_cleaned_up(path: Path, tmp_path: Path) -> None:
    file = RegistryFile(path)
    file.write({"builder": record()})
    (tmp_path / f".registry.yaml.new-{path.stat().st_ino}").write_text("agents: {")
    file.write({"builder": record(pid=8)})
    assert sorted(each.name for each in tmp_path.iterdir()) == [disk.LOCK, "registry.yaml"]


def test_an_edit_that_a_killed_writer_swapped_out_is_kept(path: Path, tmp_path: Path) -> None:
    file = RegistryFile(path)
    file.write({"builder": record()})
    (tmp_path / ".registry.yaml.new-1").write_text("somebody's edit")
    file.write({"builder": record(pid=8)})
    assert (tmp_path / "registry.yaml.late-1").read_text() == "somebody's edit"


@pytest.mark.parametrize("can_exchange", [True, False])
@pytest.mark.parametrize("editor", ["renames", "writes in place", "removes"])
def test_an_edit_in_the_very_instant_of_the_exchange_is_not_lost(
    path: Path, monkeypatch: pytest.MonkeyPatch, editor: str, can_exchange: bool
) -> None:
    file = RegistryFile(path)
    file.write({"builder": record()})
    edit = path.read_text().replace("spawned", "because I say so")
    edited: list[str] = []

    def edit_and_exchange(fresh: Path, target: Path) -> bool:
        if not edited:
            edited.append(editor)
            if editor == "renames":
                other = path.with_name("4913")
                other.write_text(edit)
                other.rename(path)
            elif editor == "writes in place":
                path.write_text(edit)
            else:
                path.unlink()
        return real_exchange(fresh, target) if can_exchange else False

    monkeypatch.setattr(disk, "exchange", edit_and_exchange)
    with pytest.raises(ChangedMeanwhile):
        file.write({"builder": record(pid=8)})
    if editor == "removes":
        assert not path.exists()
    else:
        assert path.read_text() == edit
        assert file.records()["builder"].reason == "because I say so"
    assert sorted(each.name for each in path.parent.iterdir() if each != path) == [disk.LOCK]
    file.records()
    file.write({"builder": record(pid=9)})
    assert RegistryFile(path).records()["builder"].pid == 9


def test_the_newest_of_two_edits_around_a_swap_back_stays(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edits = iter(["first", "second"])
    file = RegistryFile(path)
    file.write({"builder": record()})
    base = path.read_text()

    def edit_and_exchange(fresh: Path, target: Path) -> bool:
        if (edit := next(edits, None)) is not None:
            other = path.with_name("4913")
            other.write_text(base.replace("spawned", edit))
            other.rename(path)
        return real_exchange(fresh, target)

    monkeypatch.setattr(disk, "exchange", edit_and_exchange)
    with pytest.raises(ChangedMeanwhile):
        file.write({"builder": record(pid=8)})
    assert "reason: second" in path.read_text()


def test_a_file_that_appears_while_the_first_is_written_is_not_lost(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def make_and_link(fresh: Path, target: Path) -> None:
        path.write_text(EDITED)
        link(fresh, target)

    file = RegistryFile(path)
    monkeypatch.setattr(os, "link", make_and_link)
    with pytest.raises(ChangedMeanwhile):
        file.write({"tester": record()})
    assert path.read_text() == EDITED


def test_text_is_synced_before_the_exchange_and_the_name_after_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync
    done: list[str] = []

    def noted_fsync(descriptor: int) -> None:
        done.append("directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def noted_exchange(fresh: Path, target: Path) -> bool:
        done.append("exchange")
        return real_exchange(fresh, target)

    file = RegistryFile(path)
    file.write({"builder": record()})
    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(disk, "exchange", noted_exchange)
    file.write({"builder": record(pid=8)})
    assert done == ["file", "exchange", "directory"]


def test_a_file_that_can_not_be_set_aside_stays(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a directory that may not be written to; root may write to any."""

    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    file = RegistryFile(path)
    file.write({"builder": record()})
    monkeypatch.setattr(Path, "rename", denied)
    with pytest.raises(OSError, match="Permission denied"):
        file.set_aside()
    assert file.records() == {"builder": record()}


def test_a_file_written_during_a_read_gets_its_new_stamp(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text(EDITED)
    os.utime(path, (0, 0))
    content_of = disk.content_of
    writes = iter([EDITED.partition("    spawn")[0]])

    def written_under_it(descriptor: int) -> bytes:
        for text in writes:
            path.write_text(text)
        return content_of(descriptor)

    monkeypatch.setattr(disk, "content_of", written_under_it)
    assert disk.read(path).stamp == disk.stamp(path)
