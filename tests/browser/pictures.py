"""The pictures of the board in docs/pictures, taken of the demo's fleet: `python -m tests.browser.pictures`.

They are what a browser shows, a minute after the start, when every agent is in the situation that it is there for.
"""

import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page, ViewportSize, expect

from services.cli import supervision
from services.cli.demo import demo_fleet
from services.cli.demo_story import STOPPED, VICTIM
from services.cli.down import bring_down
from services.cli.request import ask
from services.cli.up import bring_up
from shared.client.board_access import new_link
from shared.contract.commands import Stop
from shared.fleet import Fleet
from shared.system.tmux import Tmux
from shared.system.tmux.server import end_server
from tests.fixtures.broker import wait_until
from tests.fixtures.chromium import chromium

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
NAME = "shop"
DESKTOP, PHONE = ViewportSize(width=1440, height=900), ViewportSize(width=390, height=844)
SHOWN_WITHIN_MS = 120_000
LARGEST_BYTES = 300_000
OPENED = "deployer"

SITUATIONS = (
    "[data-question=deployer]",
    "[data-question=architect]",
    "[data-column=limited] [data-card=writer]",
    "[data-column=working] [data-card=builder], [data-column=working] [data-card=reviewer]",
    "[data-column=trouble] [data-card=importer]",
    "[data-column=done] [data-card=changelog]",
    f"[data-column=stopped] [data-card={STOPPED}]",
    f"[data-card={VICTIM}] .unread",
)
"""What is seen when every agent is where the demo brings it."""


def main() -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    with running_demo() as fleet, chromium() as browser:
        session = _log_in(browser, fleet)
        for theme in ("light", "dark"):
            for name, size, scale in (("board", DESKTOP, 1), ("card", DESKTOP, 1), ("phone", PHONE, 2)):
                target = PICTURES / f"{name}-{theme}.png"
                context = browser.new_context(
                    viewport=size,
                    device_scale_factor=scale,
                    is_mobile=size is PHONE,
                    has_touch=size is PHONE,
                    color_scheme=theme,
                    reduced_motion="reduce",
                    storage_state=session,
                )
                page = context.new_page()
                page.goto(_address(fleet, name))
                _show(page, name)
                page.screenshot(path=target)
                context.close()
                _compress(target)
                print(f"{target.relative_to(PICTURES.parents[1])}: {target.stat().st_size // 1000} kB")


@contextlib.contextmanager
def running_demo() -> Iterator[Fleet]:
    """The demo's fleet, with its accident and its person; afterwards nothing of it is left."""
    with tempfile.TemporaryDirectory(prefix="muster-pictures-") as room:
        directory = Path(room) / NAME
        directory.mkdir()
        fleet = demo_fleet(directory)
        socket = fleet.declared.tmux.socket
        tmux = Tmux(socket)
        try:
            bring_up(fleet)
            found = wait_until(
                lambda: next((pane for pane in tmux.look() if pane.agent == VICTIM), None), f"{VICTIM} runs", 60
            )
            tmux.kill(found.session_id)
            wait_until(lambda: any(pane.agent == STOPPED for pane in tmux.look()), f"{STOPPED} runs", 60)
            ask(fleet, Stop(agent=STOPPED))
            yield fleet
        finally:
            bring_down(fleet, agents=True)
            supervision.stop(fleet)
            tmux.close()
            end_server(socket)


def _log_in(browser: Browser, fleet: Fleet) -> str:
    """The file of a session that may act, once every situation has been seen."""
    link = wait_until(lambda: new_link(fleet, acts=True), "the board serves")
    kept = fleet.home / "pictures.json"
    with browser.new_context(viewport=DESKTOP) as context:
        page = context.new_page()
        page.goto(link)
        for situation in SITUATIONS:
            expect(page.locator(situation).first).to_be_visible(timeout=SHOWN_WITHIN_MS)
        context.storage_state(path=kept)
    return str(kept)


def _address(fleet: Fleet, name: str) -> str:
    link = new_link(fleet, acts=False)
    assert link is not None
    base = link.partition("#")[0]
    return f"{base}#/agent/{OPENED}/screen" if name == "card" else base


def _show(page: Page, name: str) -> None:
    """Wait until all of it is drawn."""
    expect(page.locator("[data-question]").first.locator("button").first).to_be_enabled(timeout=SHOWN_WITHIN_MS)
    if name == "card":
        expect(page.locator(f"[data-screen={OPENED}] .terminal-row").first).to_be_visible()
        expect(page.locator(".drawer table.evidence")).to_be_visible()
    page.evaluate("document.fonts.ready")


def _compress(target: Path) -> None:
    """With what is there; a picture in the repository is not to be large."""
    if pngquant := shutil.which("pngquant"):
        subprocess.run([pngquant, "--force", "--strip", "--output", str(target), str(target)], check=False)
    elif optipng := shutil.which("optipng"):
        subprocess.run([optipng, "-quiet", "-strip", "all", str(target)], check=False)
    size = target.stat().st_size
    if size > LARGEST_BYTES:
        sys.exit(f"{target.name} has {size} bytes, more than {LARGEST_BYTES}: install pngquant")


if __name__ == "__main__":
    main()
