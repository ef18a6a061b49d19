"""Files of other versions: older ones are brought up to date by a write, newer ones are left alone."""

import re
from pathlib import Path

import pytest

from registry import BadRegistry, RegistryFile
from tests.unit.registry.samples import EDITED, record


def test_an_older_file_is_read_as_it_is_and_migrated_by_the_first_write(path: Path) -> None:
    ended = EDITED.partition("agents:\n")[2].partition("after")[0].replace("builder:", "tester:")
    path.write_text(EDITED.replace("after:", ended.replace("status: running", "status: exited") + "after:"))
    before = path.read_text()
    records = RegistryFile(path).records()
    assert (records["builder"].started, records["builder"].ended) == (records["builder"].since, None)
    assert (records["tester"].started, records["tester"].ended) == (None, records["tester"].since)
    assert path.read_text() == before
    file = RegistryFile(path)
    file.records()
    file.write()
    text = path.read_text()
    assert text.replace("    started: '2030-01-01T12:00:00Z'\n", "").replace(
        "    ended: '2030-01-01T12:00:00Z'\n", ""
    ) == before.replace("version: 1", "version: 2")
    assert RegistryFile(path).records() == records


def test_a_file_without_a_version_is_of_the_first(path: Path) -> None:
    path.write_text(EDITED.replace("version: 1\n", ""))
    file = RegistryFile(path)
    assert file.records()["builder"].started is not None
    file.write()
    assert path.read_text().startswith("# mine, at the top\nversion: 2\nnote: kept   # why\n")


def test_a_newer_file_is_refused_and_left_alone(path: Path) -> None:
    path.write_text(EDITED.replace("version: 1", "version: 3"))
    file = RegistryFile(path)
    for refused in (file.records, file.history, file.last_good, file.write):
        with pytest.raises(BadRegistry, match="was written by a newer Muster; upgrade, or set it aside"):
            refused()
    assert path.read_text() == EDITED.replace("version: 1", "version: 3")
    aside = file.set_aside()
    assert aside is not None
    assert re.fullmatch(r"registry\.yaml\.before-\d{8}T\d{6}Z", aside.name)
    assert aside.read_text() == EDITED.replace("version: 1", "version: 3")
    assert file.records() == {}
    assert file.set_aside() is None
    file.write({"builder": record()})
    assert file.records() == {"builder": record()}


@pytest.mark.parametrize("version", ["two", "0", "true", "'2'", "1.5", ""])
def test_a_version_is_a_number(path: Path, version: str) -> None:
    path.write_text(EDITED.replace("version: 1", f"version: {version}"))
    with pytest.raises(BadRegistry, match="line 2, column 1: `version` must be a whole number"):
        RegistryFile(path).records()
