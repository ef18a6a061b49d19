"""The agents' screens, read while somebody looks at the page: each one's current line, and one screen as a whole."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from services.board.feed import BoardFeed
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.fleet.backend import Backend
from shared.screen import current_line, grid
from shared.system.log import Log
from shared.system.tmux import Pane, Tmux

LOOKS_EVERY_S = 1.0
MOST_LINES_PER_LOOK = 40
"""How many screens one look reads: it bounds what hundreds of busy agents cost. The others come next."""
LONGEST_LINE = 200


class PageScreens:
    """Reads screens on a thread of its own. Without watchers it has no connection to tmux, and costs nothing."""

    def __init__(
        self,
        fleet: Callable[[], Fleet],
        backend_of: Callable[[str], str | None],
        feed: BoardFeed,
        on_fault: Callable[[], None],
        log: Log,
    ) -> None:
        """`on_fault` is called, from another thread, when `fault` has changed."""
        self._fleet, self._backend_of, self._feed, self._log = fleet, backend_of, feed, log
        self._on_fault = on_fault
        self._tmux: Tmux | None = None
        self._panes: Mapping[str, Pane] = {}
        self._read: dict[str, tuple[str, float]] = {}
        """When the line of each agent's session was read."""
        self._lined: set[str] = set()
        """The agents whose lines pages show, also from before the connection was closed."""
        self._closed = threading.Event()
        self.fault = ""
        """Why screens can't be read."""

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True, name="reads screens").start()

    def close(self) -> None:
        self._closed.set()

    def screen(self, agent: str) -> dict[str, Any]:
        """An agent's screen as the page draws it; `said` tells why there is none."""
        document: dict[str, Any] = {"agent": agent, "spawn": None, "width": 0, "height": 0, "styles": [], "rows": []}
        pane = self._panes.get(agent)
        tmux = self._tmux
        if pane is None or tmux is None:
            return {**document, "said": self.fault or f"{agent} does not run, so it has no screen"}
        try:
            screen = tmux.screens([pane.pane_id], styled=True).get(pane.pane_id)
        except MusterError as error:
            return {**document, "said": str(error)}
        if screen is None:
            return {**document, "said": f"the session of {agent} has just ended"}
        drawn = grid(screen)
        shown = {"width": drawn.width, "height": len(drawn.rows), "styles": drawn.styles, "rows": drawn.rows}
        return {**document, **shown, "spawn": pane.spawn, "said": ""}

    # --- the thread ---

    def _run(self) -> None:
        while not self._closed.wait(LOOKS_EVERY_S):
            fault = ""
            try:
                self._look()
            except MusterError as error:
                fault = str(error)
                self._close_tmux()
            except Exception as error:  # noqa: BLE001 - whatever one screen holds, the next look is tried
                self._log.failure("could not read screens", error)
            if fault != self.fault:
                self.fault = fault
                self._on_fault()
        self._close_tmux()

    def _look(self) -> None:
        if not self._feed.watchers:
            self._close_tmux()
            return
        fleet = self._fleet()
        if self._tmux is None:
            self._tmux = Tmux(fleet.declared.tmux.socket)
        self._panes = self._tmux.agent_panes(fleet.stamp)
        self._read_lines(fleet, self._tmux)

    def _read_lines(self, fleet: Fleet, tmux: Tmux) -> None:
        """Read the screens that changed since they were read, those that waited longest first."""
        now = time.time()
        living = {agent: pane for agent, pane in self._panes.items() if not pane.dead}
        due = [agent for agent, pane in living.items() if self._is_due(agent, pane, now)]
        due.sort(key=lambda agent: self._read.get(agent, ("", 0.0))[1])
        chosen = {living[agent].pane_id: agent for agent in due[:MOST_LINES_PER_LOOK]}
        lines = dict.fromkeys(self._lined - living.keys(), "")
        for pane_id, screen in tmux.screens(list(chosen), styled=True).items() if chosen else ():
            agent = chosen[pane_id]
            lines[agent] = current_line(self._rules(fleet, agent), screen)[:LONGEST_LINE]
            self._read[agent] = (living[agent].spawn or "", now)
        self._read = {agent: read for agent, read in self._read.items() if agent in living}
        self._lined = {agent for agent in self._lined | lines.keys() if agent in living}
        self._feed.put_lines(lines)

    def _is_due(self, agent: str, pane: Pane, now: float) -> bool:
        spawn, at = self._read.get(agent, ("", 0.0))
        # tmux tells the second of the last output: what came later in the same second is seen one look later.
        # A screen that was read later than now was read before the clock was set back.
        return spawn != pane.spawn or pane.activity + 1 >= at or at > now

    def _rules(self, fleet: Fleet, agent: str) -> Backend:
        return fleet.backends.get(self._backend_of(agent) or "", Backend())

    def _close_tmux(self) -> None:
        if self._tmux is not None:
            self._tmux.close()
            self._tmux, self._panes = None, {}
            self._feed.put_lines(dict.fromkeys(self._read, ""))  # nobody knows how long they will be true
            self._read = {}
