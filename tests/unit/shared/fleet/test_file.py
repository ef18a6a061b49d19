"""Finding the fleet file, and living with its edits: the last good one stays in force."""

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.fleet import BadFleetFile, Fleet, FleetFile, find_fleet_file, load_fleet
from shared.fleet import file as fleet_module
from tests.unit.shared.fleet.test_fleet import write

# --- finding it ---


def test_a_named_file_goes_before_the_environment_and_that_before_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, named, environment, config = (tmp_path / name for name in ("here", "named", "environment", "config"))
    for directory in (here, named, environment, config / "muster"):
        directory.mkdir(parents=True)
        write(directory, "")
    monkeypatch.chdir(here)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config))
    monkeypatch.setenv("MUSTER_FLEET", str(environment / "fleet.yaml"))
    assert find_fleet_file(str(named / "fleet.yaml")) == named / "fleet.yaml"
    assert find_fleet_file(None) == environment / "fleet.yaml"
    monkeypatch.delenv("MUSTER_FLEET")
    assert find_fleet_file(None) == here / "fleet.yaml"
    (here / "fleet.yaml").unlink()
    assert find_fleet_file(None) == config / "muster" / "fleet.yaml"


def test_a_named_file_that_is_not_there_is_not_looked_for_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadFleetFile, match=r"there is no fleet file nowhere\.yaml; make one with"):
        find_fleet_file("nowhere.yaml")
    with pytest.raises(BadFleetFile, match="there is no fleet file"):
        find_fleet_file(str(tmp_path))
    with pytest.raises(BadFleetFile, match="there is no fleet file ~nobody-of-that-name/x"):
        find_fleet_file("~nobody-of-that-name/x")


def test_without_any_file_the_places_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("MUSTER_FLEET", raising=False)
    with pytest.raises(BadFleetFile) as caught:
        find_fleet_file(None)
    assert f"{tmp_path / 'fleet.yaml'} or {tmp_path / 'config' / 'muster' / 'fleet.yaml'}" in str(caught.value)


# --- while it is edited ---


def test_an_unchanged_file_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = FleetFile(write(tmp_path, "host: a\n"))
    monkeypatch.setattr(fleet_module, "load_fleet", lambda _: pytest.fail("read again"))
    assert not file.refresh()


def test_an_edit_is_taken_up(tmp_path: Path) -> None:
    path = write(tmp_path, "host: a\n")
    file = FleetFile(path)
    write(path, "host: bb\n")
    assert file.refresh()
    assert (file.fleet.space.host, file.fault) == ("bb", "")
    assert not file.refresh()


def test_an_edit_of_the_same_length_by_renaming_is_taken_up(tmp_path: Path) -> None:
    path = write(tmp_path, "host: a\n")
    file = FleetFile(path)
    before = path.stat()
    fresh = write(tmp_path / "new", "host: b\n")
    os.utime(fresh, ns=(before.st_atime_ns, before.st_mtime_ns))
    fresh.replace(path)
    assert file.refresh()
    assert file.fleet.space.host == "b"


def test_an_edit_in_place_that_keeps_length_and_times_is_taken_up(tmp_path: Path) -> None:
    """As `rsync --inplace --times` and editors with a backup make it."""
    path = write(tmp_path, "host: a\n")
    os.utime(path, ns=(1, 1))
    file = FleetFile(path)
    write(path, "host: b\n")
    os.utime(path, ns=(1, 1))
    assert file.refresh()
    assert file.fleet.space.host == "b"


@pytest.mark.parametrize(
    "broken", [b"hots: bad\n", b"host: [\n", b"\xff\xfe", b"agents: {a: {backend: nobody}}\n", b"\0"]
)
def test_the_last_good_file_stays_in_force(tmp_path: Path, broken: bytes) -> None:
    path = write(tmp_path, "host: good\n")
    file = FleetFile(path)
    path.write_bytes(broken)
    assert not file.refresh()
    assert file.fleet.space.host == "good"
    assert f"{path}, line " in file.fault
    assert not file.refresh()
    assert file.fault
    write(path, "host: better\n")
    assert file.refresh()
    assert (file.fleet.space.host, file.fault) == ("better", "")


def test_a_removed_file_is_a_fault_and_the_last_good_one_stays(tmp_path: Path) -> None:
    path = write(tmp_path, "host: good\n")
    file = FleetFile(path)
    path.unlink()
    assert not file.refresh()
    assert file.fleet.space.host == "good"
    assert file.fault == f"{path} can't be read: No such file or directory"
    path.mkdir()
    assert not file.refresh()
    assert "Is a directory" in file.fault
    path.rmdir()
    write(path, "host: good\n")
    assert file.refresh()
    assert not file.fault


def test_the_same_file_put_back_ends_the_fault(tmp_path: Path) -> None:
    path = write(tmp_path, "host: good\n")
    file = FleetFile(path)
    path.rename(tmp_path / "away")
    file.refresh()
    (tmp_path / "away").rename(path)
    assert file.refresh()
    assert not file.fault


def test_an_edit_while_the_file_is_first_read_is_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "host: before\n")

    def load_and_edit(which: Path) -> Fleet:
        fleet = load_fleet(which)
        write(path, "host: afterwards\n")
        return fleet

    with monkeypatch.context() as patch:
        patch.setattr(fleet_module, "load_fleet", load_and_edit)
        file = FleetFile(path)
    file.refresh()
    assert file.fleet.space.host == "afterwards"


def test_a_watcher_is_called_after_an_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.system.files.CHECKED_EVERY_S", 0.01)
    path = write(tmp_path, "host: a\n")
    told = threading.Event()
    FleetFile(path).watch(told.set)
    assert not told.wait(0.1)
    write(path, "host: bb\n")
    assert told.wait(10)


WHOLE = "host: after\nagents:\n  builder: {role: builds}\n  reviewer:\n    prompt: look\n    env: {A: b}\n"


@given(st.lists(st.integers(0, len(WHOLE)), max_size=6).map(sorted))
@settings(max_examples=60, deadline=None)
def test_a_file_seen_while_it_is_being_written_ends_as_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, moments: list[int]
) -> None:
    """Half a file may be a good one, or none; neither may crash, and the whole one always comes."""
    path = tmp_path_factory.getbasetemp() / "written-fleet.yaml"
    path.write_text("host: before\n")
    file = FleetFile(path)
    path.unlink()
    for length in moments:
        path.write_text(WHOLE[:length])
        file.refresh()
        assert all("builder".startswith(name) or "reviewer".startswith(name) for name in file.fleet.agents)
    path.write_text(WHOLE)
    file.refresh()
    assert (list(file.fleet.agents), file.fault) == (["builder", "reviewer"], "")
