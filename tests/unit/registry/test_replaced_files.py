"""A save into a file that was swapped out is not lost."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

import pytest

from registry import ChangedMeanwhile, LateSave, RegistryFile, disk, replaced_files
from registry.disk import exchange as real_exchange
from tests.unit.registry.samples import record


def quiet(descriptor: int) -> None:
    """Let a save be some time ago."""
    long_ago = os.fstat(descriptor).st_mtime_ns - 10**9
    os.utime(descriptor, ns=(long_ago, long_ago))


def test_a_save_into_the_file_that_was_replaced_is_taken_up(path: Path) -> None:
    file = RegistryFile(path)
    file.write({"builder": record()})
    with path.open("r+b") as editor:
        saved = path.read_bytes().replace(b"spawned", b"because I say so")
        file.write({"builder": record(pid=8)})
        assert not file.take_up_late_save()
        editor.truncate(0)
        quiet(editor.fileno())
        assert not file.take_up_late_save(), "an empty file is one that is being written"
        editor.write(saved)
        editor.flush()
        assert not file.take_up_late_save(), "it may not be finished"
        quiet(editor.fileno())
        assert file.take_up_late_save()
    assert path.read_bytes() == saved
    assert file.last_good()["builder"].pid == 8
    with pytest.raises(ChangedMeanwhile):
        file.write({"builder": record(pid=8)})
    assert file.records()["builder"].reason == "because I say so"
    file.write({"builder": record(pid=8)})
    assert not file.take_up_late_save()


def test_a_late_save_does_not_undo_what_somebody_else_edited_meanwhile(path: Path, tmp_path: Path) -> None:
    file = RegistryFile(path)
    file.write({"builder": record()})
    with path.open("r+b") as editor:
        file.write({"builder": record(pid=8)})
        path.write_text(path.read_text() + "note: mine\n")
        editor.write(b"# an older state\nagents: {}\n")
        editor.truncate()
        quiet(editor.fileno())
        with pytest.raises(LateSave, match=r"is kept as registry\.yaml\.late-1: copy from it"):
            file.take_up_late_save()
        assert not file.take_up_late_save()
    assert (tmp_path / "registry.yaml.late-1").read_text() == "# an older state\nagents: {}\n"
    assert stat.S_IMODE((tmp_path / "registry.yaml.late-1").stat().st_mode) == 0o600
    assert path.read_text().endswith("note: mine\n")


def test_a_late_save_does_not_undo_an_edit_that_was_taken_up_since(path: Path, tmp_path: Path) -> None:
    file = RegistryFile(path)
    file.write({"builder": record()})
    with path.open("r+b") as editor:
        file.write({"builder": record(pid=8)})
        path.write_text(path.read_text() + "note: mine\n")
        file.records()
        file.write({"builder": record(pid=9)})
        editor.write(b"# an older state\n")
        quiet(editor.fileno())
        with pytest.raises(LateSave):
            file.take_up_late_save()
    assert path.read_text().endswith("note: mine\n")
    assert (tmp_path / "registry.yaml.late-1").exists()


def test_only_so_many_old_files_stay_open(path: Path) -> None:
    before = len(list(Path("/dev/fd").iterdir()))
    file = RegistryFile(path)
    for pid in range(replaced_files.FILES_AT_MOST + 5):
        file.write({"builder": record(pid=pid)})
    assert len(list(Path("/dev/fd").iterdir())) - before == replaced_files.FILES_AT_MOST
    del file
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_an_edit_of_our_own_text_in_the_instant_before_it_is_swapped_back_is_kept(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody renames a file over ours, and somebody else opens the name while we have not yet put that right."""
    file = RegistryFile(path)
    file.write({"builder": record()})
    theirs = path.read_text().replace("spawned", "because I say so")
    opened: list[BinaryIO] = []

    def edit_and_exchange(fresh: Path, target: Path) -> bool:
        if not opened:
            other = path.with_name("4913")
            other.write_text(theirs)
            other.rename(path)
            swapped = real_exchange(fresh, target)
            opened.append(path.open("ab"))
            return swapped
        return real_exchange(fresh, target)

    with monkeypatch.context() as patch:
        patch.setattr(disk, "exchange", edit_and_exchange)
        with pytest.raises(ChangedMeanwhile):
            file.write({"builder": record(pid=8)})
    with opened[0] as other:
        other.write(b"note: mine\n")
        other.flush()
        quiet(other.fileno())
    file.records()
    with pytest.raises(LateSave):
        file.take_up_late_save()
    assert path.read_text() == theirs
    assert (tmp_path / "registry.yaml.late-1").read_text().endswith("note: mine\n")


def test_a_save_is_found_after_a_burst_of_writes(path: Path) -> None:
    file = RegistryFile(path)
    file.write({"builder": record()})
    with path.open("ab") as editor:
        file.write({"builder": record(pid=8)})
        editor.write(b"note: mine\n")
        editor.flush()
        for pid in range(100, 105 + replaced_files.FILES_AT_MOST):
            file.write({"builder": record(pid=pid)})
        quiet(editor.fileno())
        assert file.take_up_late_save()
    assert path.read_text().endswith("note: mine\n")


def test_two_late_saves_do_not_undo_each_other(path: Path, tmp_path: Path) -> None:
    file = RegistryFile(path)
    file.write({"builder": record()})
    with path.open("ab") as first:
        file.write({"builder": record(pid=8)})
        with path.open("ab") as second:
            file.write({"builder": record(pid=9)})
            for editor, words in ((first, b"a: 1\n"), (second, b"b: 1\n")):
                editor.write(words)
                editor.flush()
                quiet(editor.fileno())
            assert file.take_up_late_save()
            with pytest.raises(LateSave):
                file.take_up_late_save()
            assert not file.take_up_late_save()
    assert path.read_text().endswith("b: 1\n")
    assert (tmp_path / "registry.yaml.late-1").read_text().endswith("a: 1\n")


def test_an_edit_of_a_hard_link_is_no_late_save(path: Path, tmp_path: Path) -> None:
    """`ln registry.yaml backup.yaml`: after a write of ours, the old file still has a name, and is another."""
    file = RegistryFile(path)
    file.write({"builder": record()})
    copy = tmp_path / "backup.yaml"
    copy.hardlink_to(path)
    with path.open("ab") as editor:
        file.write({"builder": record(pid=8)})
        copy.write_text("# my own\n")
        quiet(editor.fileno())
        assert not file.take_up_late_save()
        copy.unlink()
        assert not file.take_up_late_save(), "who removes a copy does not save it"
        editor.write(b"note: mine\n")
        editor.flush()
        quiet(editor.fileno())
        assert file.take_up_late_save(), "without a name, only who has the file open can mean it"
    assert path.read_text().endswith("note: mine\n")
