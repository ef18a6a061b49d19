"""Half a minute of random faults, always the same ones; `python -m tests.chaos` plays them for longer."""

from pathlib import Path

import pytest

from tests.chaos.campaign import Campaign
from tests.chaos.promises import broken
from tests.chaos.report import report

SECONDS, SEED, AGENTS, PEOPLE = 25.0, 7, 12, 2


@pytest.mark.long
@pytest.mark.real_broker_down
@pytest.mark.timeout(400)
def test_random_faults_break_no_promise(tmp_path: Path) -> None:
    timeline: list[str] = []
    campaign = Campaign(tmp_path, SEED, AGENTS, PEOPLE, timeline.append)
    evidence = campaign.run(SECONDS)
    findings = broken(evidence)
    assert not findings, report(evidence, findings, campaign.played) + "\n" + "\n".join(timeline)
    assert len(evidence.acts) > 5
    assert len(evidence.all_events()) > 50
