"""People move panes between tmux sessions: an agent is where its own pane is.

From the move on only the pane is the agent's, and the session that it was in belongs to the person.
"""

from dataclasses import replace

from services.spawner.view import SpawnerView
from shared.contract.events.lifecycle import AgentExited
from shared.system.tmux import Pane, Tmux, WrongSpawn, left_name


def follow_moved_panes(view: SpawnerView, tmux: Tmux) -> None:
    """Find every agent whose pane was moved. One whose pane was closed has exited; what is left there is a person's."""
    for agent, pane in list(view.panes.items()):
        known = view.known(agent)
        if known.spawn != pane.spawn or pane.pane_only or not known.session.pane:
            continue
        if known.session.pane != pane.pane_id and not _follow(view, tmux, agent):
            _release(view, tmux, agent, view.panes.pop(agent))
    for agent in view.fleet.agents:
        if agent not in view.panes and view.known(agent).had_session:
            _follow(view, tmux, agent)


def _follow(view: SpawnerView, tmux: Tmux, agent: str) -> bool:
    """Stamp the agent's pane where it is now; False if it is nowhere in this server."""
    known, before = view.known(agent), view.panes.get(agent)
    session = known.session
    if session.spawn is None or view.server is None or session.server not in ("", view.server):
        return False
    # Two agents' panes may have changed places: then each stands for the other.
    stand_ins = [pane for pane in view.panes.values() if pane.own not in (None, pane.pane_id)]
    unowned = [pane for pane in view.others if not (pane.fleet or pane.left)]
    found = [pane for pane in (*unowned, *stand_ins) if (pane.pane_id, pane.pid) == (session.pane, session.pid)]
    if not found or (before is None and (known.is_adopted or found[0].session == agent)):
        return False
    stamps = {"agent": agent, "spawn": session.spawn, "fleet": view.fleet.stamp}
    stamped = tmux.stamp(found[0].session, **stamps, pane_id=session.pane)
    if stamped is None:
        return False
    others = [pane for pane in view.others if pane.pane_id != session.pane]
    if before is not None:
        name = left_name(before)
        try:
            tmux.unstamp(before.target, spawn=before.spawn, rename=name)
        except WrongSpawn:  # every pane of it belongs to another agent, with stamps of its own
            tmux.unstamp(before.target, rename=name)
        others.append(replace(before, agent=None, spawn=None, fleet=None, own=None, session=name or before.session))
    view.panes[agent] = stamped
    view.others = others
    return True


def _release(view: SpawnerView, tmux: Tmux, agent: str, pane: Pane) -> None:
    """The agent's own pane was closed, and a person's pane is left in its session."""
    tmux.unstamp(pane.target, spawn=pane.spawn, rename=left_name(pane))
    view.turn.emit(AgentExited(agent=agent, spawn=pane.spawn or "unknown", last_words="its pane was closed"))
