"""Asking a fleet: who can't be reached at all is said at once."""

from pathlib import Path

import pytest

from shared.client.request import ask
from shared.contract.commands import PhaseShow
from shared.errors import MusterError
from shared.fleet import load_fleet


def test_a_service_that_is_switched_off_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text("handoff: {enabled: false}\n")
    with pytest.raises(MusterError, match=r"phase_show needs the handoff, which .* switches off"):
        ask(load_fleet(tmp_path / "fleet.yaml"), PhaseShow())
    assert not (tmp_path / ".muster").exists()
