"""The ground under the tests of delivery: a real program takes a pasted prompt, and the model gets it once.

The two that start quickly are enough for it: what all of them take is shown by `test_delivery`.
"""

from pathlib import Path

import pytest

from tests.real_agents.clis import CLIS, Cli
from tests.real_agents.installs import installed
from tests.real_agents.model import Model
from tests.real_agents.workbench import started

pytestmark = [pytest.mark.real_agent, pytest.mark.timeout(600)]

PROMPT = """Say "done", it's `so` $(false) \\n #{pane_id} --flag
second line: é 漢字 🙂"""


QUICK = [cli for cli in CLIS if cli.name in ("claude", "codex")]


@pytest.mark.parametrize("cli", QUICK, ids=lambda cli: f"{cli.name}-{cli.version}")
def test_a_pasted_prompt_reaches_the_model_once(cli: Cli, model: Model, tmp_path: Path) -> None:
    with started(cli, installed(cli), model, tmp_path) as bench:
        bench.wait_until_ready()
        bench.paste(PROMPT)
        bench.wait_for("second line")
        bench.wait_until_still()
        bench.keys("Enter")
        bench.wait_for("All done")
        assert model.prompts == [PROMPT]
        assert model.unknown == []
