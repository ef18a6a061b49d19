"""A whole fleet with one real agent in it: real broker, services as processes, the program in its own HOME."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psutil

from shared.contract.ids import new_id
from shared.fleet import Backend
from shared.screen import ScreenReading, read_screen, unstyle
from tests.fixtures.broker import wait_until
from tests.fixtures.by_hand import run_tmux
from tests.fixtures.fleet import RunningFleet, Watcher
from tests.real_agents.clis import Cli, Place
from tests.real_agents.installs import installed
from tests.real_agents.model import Model

T = TypeVar("T")

AGENT = "coder"
WITHIN_S = 90.0
"""A start takes 1 to 10 s on an idle machine; a loaded one may need many times that."""


@dataclass(frozen=True)
class Manned:
    fleet: RunningFleet
    watcher: Watcher
    model: Model
    place: Place
    backend: Backend

    # --- as a person ---

    def ask(self, verb: str, **arguments: Any) -> str:
        """Send a command; gives its id."""
        ident = new_id()
        self.fleet.command(verb, json.dumps({"id": ident, "agent": AGENT, "by": "the test", **arguments}))
        return ident

    def told(self, verb: str, **arguments: Any) -> dict[str, Any]:
        """Send a command, and give its last word."""
        return self.answer(self.ask(verb, **arguments))

    def answer(self, ident: str) -> dict[str, Any]:
        def final() -> dict[str, Any] | None:
            return next((reply for reply in self.replies(ident) if reply["final"]), None)

        return self.until(final, "an answer")

    def replies(self, ident: str) -> list[dict[str, Any]]:
        return self.watcher.documents(f"reply/{ident}")

    def keys(self, *keys: str) -> None:
        self._tmux("send-keys", "-t", self._pane(), *keys)

    def leave_in_box(self, text: str) -> None:
        """Type a text as somebody would who then goes away."""
        self._tmux("set-buffer", "-b", "left", "--", text)
        self._tmux("paste-buffer", "-p", "-r", "-d", "-b", "left", "-t", self._pane())
        self.wait_for_screen(lambda reading: bool(reading.box), "the text in the box")

    # --- what is there ---

    def screen(self) -> str:
        pane = self.fleet.pane(AGENT)
        return self.fleet.tmux.screens([pane.pane_id], styled=True).get(pane.pane_id, "") if pane else ""

    def reading(self) -> ScreenReading:
        return read_screen(self.backend, self.screen())

    def until(self, says: Callable[[], T | None], what: str) -> T:
        """The first true answer, or a failure that shows how things are then."""
        try:
            return wait_until(says, what, WITHIN_S)
        except AssertionError as error:
            error.add_note(f"{self.watcher.documents(f'{AGENT}/lifecycle')[-3:]}\n{unstyle(self.screen())[0]}")
            raise

    def wait_for_screen(self, says: Callable[[ScreenReading], bool], what: str) -> None:
        self.until(lambda: says(self.reading()), what)

    def wait_for_dialog(self, ident: str) -> None:
        self.wait_for_screen(lambda reading: reading.dialog is not None and reading.dialog.id == ident, ident)

    def wait_until_idle(self) -> None:
        self.wait_for_screen(lambda reading: reading.empty and not reading.working, "an empty input box")

    def wait_for_words(self, words: str) -> None:
        self.until(lambda: words in unstyle(self.screen())[0], f"{words!r} on the screen")

    def wait_for_prompt(self, text: str) -> None:
        self.until(lambda: text in self.model.prompts, f"{text[:60]!r} at the model")

    def sent(self) -> list[dict[str, Any]]:
        """What the fleet said that it had typed."""
        return [doc["data"] for doc in self.watcher.documents("/lifecycle") if doc["data"]["kind"] == "sent"]

    def _pane(self) -> str:
        pane = self.fleet.pane(AGENT)
        assert pane is not None
        return pane.pane_id

    def _tmux(self, *arguments: str) -> None:
        run_tmux(self.fleet.socket, *arguments)


@contextmanager
def manned(
    cli: Cli, model: Model, room: Path, *, trusted: bool = True, prompt: str = "", **agent: Any
) -> Iterator[Manned]:
    """The fleet is up, and the agent is being started; afterwards nothing of either is left."""
    place = Place(room / "home", room / "work", model.url, trusted)
    place.home.mkdir()
    place.work.mkdir()
    cli.prepare(place)
    (room / "prompt.txt").write_text(prompt, encoding="utf-8")
    declared = {
        "backend": cli.name,
        "dir": "work",
        "env": cli.environment(place),
        "prompt_file": "prompt.txt",
        **agent,
    }
    fleet = RunningFleet(room, {AGENT: declared}, backends={cli.name: {"binary": str(installed(cli))}})
    try:
        fleet.up()
        yield Manned(fleet, fleet.watch(), model, place, fleet.fleet.backends[cli.name])
    finally:
        fleet.end()
        end_all_in(place.home)


def living_in(home: Path) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("HOME") == str(home):
                yield process


def end_all_in(home: Path) -> None:
    """End what a program has left behind: Gemini CLI does not mind that its terminal is gone."""
    left = list(living_in(home))
    for process in left:
        with suppress(psutil.Error):
            process.terminate()
    _gone, stubborn = psutil.wait_procs(left, timeout=WITHIN_S)
    assert not stubborn, f"still there: {stubborn}"
