"""Permission dialogs of real agents, answered from the page; and their texts there."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.browser.visits import VisitedBoard
from tests.real_agents.clis import Claude, Cli, Codex
from tests.real_agents.manned import AGENT, WITHIN_S, Manned, manned
from tests.real_agents.model import Model

pytestmark = [pytest.mark.real_agent, pytest.mark.timeout(600)]

SLOWLY_MS = WITHIN_S * 1000
IMAGE = "<img src=x onerror=window.pwned=1>"


@pytest.mark.parametrize("cli", [Claude(), Codex()], ids=lambda cli: f"{cli.name}-{cli.version}")
def test_a_real_permission_dialog_is_answered_from_the_page(cli: Cli, browser: Browser, tmp_path: Path) -> None:
    with Model().serving() as model, manned(cli, model, tmp_path) as agent:
        agent.wait_until_idle()
        board = VisitedBoard(browser, agent.fleet)
        with board.visit() as visit:
            panel, work = visit.panel(AGENT), agent.place.work
            _ask(agent, "touch made.txt")
            asked = panel.filter(has_text="touch made.txt")
            asked.locator("[data-action=approve]").click(timeout=SLOWLY_MS)
            expect(asked.locator("[data-outcome=done]")).to_contain_text("was told yes", timeout=SLOWLY_MS)
            agent.until((work / "made.txt").exists, "what was allowed")
            agent.wait_until_idle()

            # While the answer is on its way, somebody at the terminal refuses, and it asks for something else.
            _ask(agent, "touch small.txt")

            def change_first(route: Route) -> None:
                agent.keys("Escape")
                agent.wait_until_idle()
                _ask(agent, "touch large.txt")
                route.continue_()

            visit.page.route("**/api/commands", change_first)
            small = panel.filter(has_text="touch small.txt")
            small.locator("[data-action=approve]").click(timeout=SLOWLY_MS)
            refused = small.locator("[data-outcome=refused]")
            expect(refused).to_contain_text("not the one that was meant", timeout=SLOWLY_MS)
            visit.page.unroute("**/api/commands")
            assert agent.reading().dialog is not None
            large = panel.filter(has_text="touch large.txt")
            large.locator("[data-action=deny]").click(timeout=SLOWLY_MS)
            expect(large.locator("[data-outcome=done]")).to_contain_text("was told no", timeout=SLOWLY_MS)
            agent.wait_until_idle()
            assert sorted(each.name for each in work.glob("*.txt")) == ["made.txt"]

            drawer = visit.open(AGENT, "transcript")
            expect(drawer.locator("[data-who=user]").first).to_contain_text("DO-BASH", timeout=SLOWLY_MS)
            drawer.locator("textarea[name=send]").fill(f"read {IMAGE}")
            drawer.locator("[data-action=send]").click()
            expect(drawer.locator("footer [data-outcome=done]")).to_be_visible(timeout=SLOWLY_MS)
            expect(drawer.locator("[data-who=user]").last).to_contain_text(f"read {IMAGE}", timeout=SLOWLY_MS)
            assert visit.page.evaluate("[window.pwned ?? 0, document.querySelectorAll('img').length]") == [0, 0]


def _ask(agent: Manned, command: str) -> None:
    """Let the model want a command, for which the agent needs a person's permission."""
    agent.leave_in_box(f"DO-BASH {command}")
    agent.keys("Enter")
    agent.wait_for_dialog("permission")
    agent.wait_for_words(command)
