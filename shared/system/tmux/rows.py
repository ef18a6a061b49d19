"""Reads tmux's list of panes, one row each, and finds the pane of each agent. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from shared.contract.ids import is_id
from shared.system.tmux.control import PANE, Garbled, exact, line


@dataclass(frozen=True, slots=True)
class Pane:
    """One pane. Without stamps, `agent`, `spawn` and `fleet` are None.

    `dead_status` is the program's exit status, or minus the signal that ended it; None while it runs, and while tmux
    does not know it yet.
    """

    session: str
    session_id: str
    pane_id: str
    pid: int
    command: str
    dead: bool
    dead_status: int | None
    path: str
    title: str
    created: int
    activity: int
    agent: str | None
    spawn: str | None
    fleet: str | None
    piped: bool = False
    """Whether its output is piped to a log."""
    in_mode: bool = False
    """Whether somebody scrolls in it: keys would go to tmux, not to the program."""
    pane_only: bool = False
    """Whether the pane itself is stamped, and not its session."""
    left: str | None = None
    """The fleet that has forgotten it; it is not adopted again unless a person asks."""
    own: str | None = None
    """The id of the agent's own pane, if the session is stamped."""

    @property
    def target(self) -> str:
        """The target that belongs to the agent: the pane or the whole session."""
        return self.pane_id if self.pane_only else self.session_id

    @property
    def is_stamped(self) -> bool:
        return bool(self.agent or self.spawn or self.fleet)

    def belongs_to(self, fleet: str) -> bool:
        """Whether it has the stamps of this fleet, complete and valid: anybody can change them."""
        return self.fleet == fleet and is_id(self.agent or "") and is_id(self.spawn or "")


class PaneStamp(NamedTuple):
    """The stamps that one pane shows, and whether its program has ended."""

    agent: str
    spawn: str
    pane_id: str
    dead: bool


PANE_FORMAT = "\t".join(
    (
        *("#{session_id}", "#{pane_id}", "#{pane_pid}", "#{pane_dead}", "#{pane_dead_status}"),
        *("#{pane_dead_signal}", "#{session_created}", "#{window_activity}", "#{pane_pipe}", "#{pane_in_mode}"),
        # tmux looks up an option at the pane, then at its window, then at its session.
        *("#{@muster_agent}", "#{@muster_spawn}", "#{@muster_fleet}", "#{@muster_pane}", "#{@muster_left}"),
        "#{@muster_own}",
        *("#{session_name}", "#{pane_current_command}", "#{pane_current_path}", "#{pane_title}"),
    )
)
# The name of a program or directory may hold a line end or tab, which separate the list. Here tmux replaces them by
# `?`, which takes half as much time again. Session names and titles never hold any.
CAREFUL_FORMAT = PANE_FORMAT.replace("#{pane_current_", "#{s/[\x01-\x1f\x7f]/?/:pane_current_")
LIST = line(("list-panes", "-a", "-F", PANE_FORMAT))
# A sixth of the time: tmux has to ask the system what runs in a pane, and where.
STAMPS_FORMAT = "#{@muster_fleet}\t#{@muster_agent}\t#{@muster_spawn}\t#{pane_id}\t#{pane_dead}"
LIST_STAMPS = line(("list-panes", "-a", "-F", STAMPS_FORMAT))
# Everything but those two.
QUICK_FORMAT = PANE_FORMAT.replace("#{pane_current_command}", "").replace("#{pane_current_path}", "")
LIST_QUICKLY = line(("list-panes", "-a", "-F", QUICK_FORMAT))
LIST_CAREFULLY = line(("list-panes", "-a", "-F", CAREFUL_FORMAT))


def left_name(pane: Pane) -> str | None:
    """A new name for a session that loses its stamps, if its agent's next session needs the old one; else None."""
    return f"{pane.session}-left-{(pane.spawn or '')[:6]}" if pane.session == pane.agent else None


def panes_in(lines: Sequence[str]) -> list[Pane]:
    """The panes in the output of `list-panes` with PANE_FORMAT. Raises Garbled rather than leave one out.

    - The panes of a session come in the order of their ids. Of a stamped session, the agent's own comes first.
    - The other panes of a stamped session come without stamps. If the agent's own is gone, the first of them stands for
      it; without `@muster_own` that comes alone.
    - A pane with stamps of its own always comes.
    - A window may be linked to several sessions: an agent's pane then comes once, with the oldest session.
    """
    rows = [_pane(row) for row in lines]
    sessions: dict[str, list[Pane]] = {}
    for pane in rows:
        sessions.setdefault(pane.session_id, []).append(pane)
    if len(sessions) == len({pane.pane_id for pane in rows}) == len(rows):
        return rows  # one pane per session: the usual case, and there may be hundreds
    for panes in sessions.values():
        panes.sort(key=lambda pane: _number(pane.pane_id))
    agents = {pane.pane_id: pane for pane in _of_agents(sessions)}
    unstamped = {pane.pane_id for panes in sessions.values() if _agents_own(panes) is None for pane in panes}
    found: list[Pane] = []
    for panes in sessions.values():
        own = _agents_own(panes)
        if own is None:
            found += (pane for pane in panes if pane is agents.get(pane.pane_id, pane))
            continue
        found += [own] if own is agents[own.pane_id] else []
        for pane in panes:
            if pane.pane_only and pane is agents[pane.pane_id]:
                found.append(pane)
            elif pane.own and pane.pane_id not in agents and pane.pane_id not in unstamped:
                found.append(replace(pane, agent=None, spawn=None, fleet=None, own=None))
    return found


def _of_agents(sessions: dict[str, list[Pane]]) -> Iterator[Pane]:
    """The panes that stand for agents. Of one in several sessions, that of the oldest session comes last."""
    for session_id in sorted(sessions, key=_number, reverse=True):
        own = _agents_own(sessions[session_id])
        yield from [own] if own is not None else []
        yield from (pane for pane in sessions[session_id] if pane.pane_only)


def _agents_own(panes: Sequence[Pane]) -> Pane | None:
    """The pane that stands for the agent of a stamped session; None if the session is not stamped.

    Not simply the first: people may move older panes into the session.
    """
    stamped = [pane for pane in panes if pane.is_stamped and not pane.pane_only]
    return next((pane for pane in stamped if pane.own == pane.pane_id), stamped[0] if stamped else None)


def _number(identifier: str) -> int:
    return int(identifier[1:])


def _pane(row: str) -> Pane:
    try:
        session_id, pane_id, pid, dead, status, signal, created, activity, *more, name, command, path, title = (
            row.split("\t")
        )
        piped, in_mode, agent, spawn, fleet, stamped_pane, left, own = more
        pane_only = stamped_pane == pane_id
        # A pane beside an agent's own shows the stamps of the session, though they are not its own.
        is_agents = bool(fleet) and (pane_only or own in ("", pane_id))
        return Pane(
            session=name,
            session_id=session_id,
            pane_id=exact(PANE, pane_id),
            pid=int(pid),
            command=command,
            dead=dead == "1",
            # tmux may know the exit status before it has read the last output: the pane is not dead yet.
            dead_status=_status(status, signal) if dead == "1" else None,
            path=path,
            title=title,
            created=int(created),
            activity=int(activity),
            piped=piped == "1",
            in_mode=bool(int(in_mode)),
            agent=agent or None,
            spawn=spawn or None,
            fleet=fleet or None,
            pane_only=pane_only,
            left=None if is_agents else left or None,
            own=None if pane_only else own or None,
        )
    except ValueError as error:
        raise Garbled(f"not a line about a pane: {row!r}") from error


def _status(status: str, signal: str) -> int | None:
    return int(status) if status else -int(signal) if signal else None
