"""What tmux tells of its panes, a row for each, and which of them are worth looking at. Pure, as `control`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from shared.system.tmux.control import Garbled, line
from shared.system.tmux.targets import PANE, exact


@dataclass(frozen=True, slots=True)
class Pane:
    """One pane, as tmux tells it.

    `dead_status` is what the program returned, or minus the signal that ended it; None while it runs and for
    the moment in which tmux has not learned it yet.
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
    """Whether its output goes to a log."""
    in_mode: bool = False
    """Whether somebody scrolls in it: keys would go to tmux and not to the program."""
    pane_only: bool = False
    """Whether the stamps are this pane's alone: the rest of its session is people's, or other agents'."""
    left: str | None = None
    """The fleet that was told to forget it. It is nobody's now, until a person has it adopted again."""
    own: str | None = None
    """Of a stamped session, the pane that is the agent's; None where an earlier version stamped it."""

    @property
    def target(self) -> str:
        """What is the agent's, and is ended with it: the pane or the whole session."""
        return self.pane_id if self.pane_only else self.session_id

    @property
    def is_stamped(self) -> bool:
        return bool(self.agent or self.spawn or self.fleet)


PANE_FORMAT = "\t".join(
    (
        *("#{session_id}", "#{pane_id}", "#{pane_pid}", "#{pane_dead}", "#{pane_dead_status}"),
        *("#{pane_dead_signal}", "#{session_created}", "#{window_activity}", "#{pane_pipe}", "#{pane_in_mode}"),
        # tmux looks for an option at the pane first, then at its window, then at its session.
        *("#{@muster_agent}", "#{@muster_spawn}", "#{@muster_fleet}", "#{@muster_pane}", "#{@muster_left}"),
        "#{@muster_own}",
        *("#{session_name}", "#{pane_current_command}", "#{pane_current_path}", "#{pane_title}"),
    )
)
# A program or directory may have a name with the line end or tab by which the list is read. This has tmux show `?`
# for those, in more than half as much time again. Session names and titles never hold any.
CAREFUL_FORMAT = PANE_FORMAT.replace("#{pane_current_", "#{s/[\x01-\x1f\x7f]/?/:pane_current_")
LIST = line(("list-panes", "-a", "-F", PANE_FORMAT))
# A sixth of the time: of what runs in a pane, and where, tmux has to ask the system.
LIST_STAMPS = line(("list-panes", "-a", "-F", "#{@muster_fleet}\t#{@muster_agent}\t#{@muster_spawn}"))
# In which all else is told: of agents who idle nothing more is asked.
QUICK_FORMAT = PANE_FORMAT.replace("#{pane_current_command}", "").replace("#{pane_current_path}", "")
LIST_QUICKLY = line(("list-panes", "-a", "-F", QUICK_FORMAT))
LIST_CAREFULLY = line(("list-panes", "-a", "-F", CAREFUL_FORMAT))


def left_name(pane: Pane) -> str | None:
    """Another name for a session that is let go of, if it has the one that its agent's next session needs."""
    return f"{pane.session}-left-{(pane.spawn or '')[:6]}" if pane.session == pane.agent else None


def panes_in(lines: Sequence[str]) -> list[Pane]:
    """Read what `list-panes -F` said in PANE_FORMAT; raises Garbled rather than leave a pane out.

    Every session comes with each of its panes, the first one first; but of a stamped one the agent's own comes first,
    and the others, which people opened or moved there, are nobody's. Where the agent's own is gone, the first that is
    nobody's stands for it, as it does where an earlier version did not write down which it is: then it comes alone.
    A pane with stamps of its own comes in any case, and once: a window may be in several sessions, of which the oldest
    counts. What such a session shows of another's agent is left out.
    """
    rows = [_pane(row) for row in lines]
    sessions: dict[str, list[Pane]] = {}
    for pane in rows:
        sessions.setdefault(pane.session_id, []).append(pane)
    if len(sessions) == len({pane.pane_id for pane in rows}) == len(rows):
        return rows  # as where only agents are: there may be hundreds
    for panes in sessions.values():
        panes.sort(key=lambda pane: _number(pane.pane_id))
    agents = {pane.pane_id: pane for pane in _of_agents(sessions)}
    theirs = {pane.pane_id for panes in sessions.values() if _agents_own(panes) is None for pane in panes}
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
            elif pane.own and pane.pane_id not in agents and pane.pane_id not in theirs:
                found.append(replace(pane, agent=None, spawn=None, fleet=None, own=None))
    return found


def _of_agents(sessions: dict[str, list[Pane]]) -> Iterator[Pane]:
    """The panes that stand for agents; of one that is in several sessions, that in the oldest comes last."""
    for session_id in sorted(sessions, key=_number, reverse=True):
        own = _agents_own(sessions[session_id])
        yield from [own] if own is not None else []
        yield from (pane for pane in sessions[session_id] if pane.pane_only)


def _agents_own(panes: Sequence[Pane]) -> Pane | None:
    """What stands for the agent whose the whole session is; None where it is nobody's as a whole.

    Not just the first: people move panes that are older than the agent's into its session.
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
        # A pane beside an agent's own shows the stamps of the session, though it is nobody's.
        is_somebodys = bool(fleet) and (pane_only or own in ("", pane_id))
        return Pane(
            session=name,
            session_id=session_id,
            pane_id=exact(PANE, pane_id),
            pid=int(pid),
            command=command,
            dead=dead == "1",
            # tmux may know how the program ended before it has read the last of what the program wrote.
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
            left=None if is_somebodys else left or None,
            own=None if pane_only else own or None,
        )
    except ValueError as error:
        raise Garbled(f"not a line about a pane: {row!r}") from error


def _status(status: str, signal: str) -> int | None:
    return int(status) if status else -int(signal) if signal else None
