"""What the processes of a fleet were started with, and what its file says since."""

from pathlib import Path

from shared.client.processes import last_good, switched_on_since
from tests.fakes.fleets import WrittenFleet


def test_a_service_that_was_switched_on_after_the_start_is_named(tmp_path: Path) -> None:
    written = WrittenFleet(tmp_path, {}, handoff={"enabled": False})
    started = last_good(written.file.fleet)
    started.parent.mkdir()
    started.write_text(written.path.read_text())
    assert switched_on_since(written.file.fleet) == []
    written.declare({}, handoff={"enabled": True})
    assert switched_on_since(written.opened().fleet) == ["handoff"]
    started.unlink()
    assert switched_on_since(written.opened().fleet) == [], "what was started is not known"
