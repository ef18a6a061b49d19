"""Adopting a session, or one pane of it, that somebody else has started. Its processes tell the backend."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from services.spawner.commands.replies import Refusal, spawn_of
from services.spawner.sessions.keeper import SessionKeeper, StartReport
from services.spawner.sessions.memory import Origin, SessionFacts
from services.spawner.sessions.output_logs import is_logged, log_of
from services.spawner.view import SpawnerView
from shared.agents.recognition import agent_in, recognised_by
from shared.contract.commands import Adopt
from shared.contract.events.lifecycle import AgentAdopted
from shared.fleet import Backend
from shared.fleet.faults import allowed
from shared.runtime.turn import PendingCommand
from shared.system.processes import Processes
from shared.system.tmux import Pane, Tmux


def backend_of(backends: Mapping[str, Backend], pane: Pane) -> str | None:
    """The backend whose program runs in the pane; None if no name or several fit."""
    processes = Processes.look()
    if processes.below(pane.pid):
        found = agent_in(processes, backends, pane.pid)
        return found[0] if found is not None else None
    # Where the processes of others are hidden, tmux still has a name for what runs.
    fits = [name for name, backend in backends.items() if pane.command in recognised_by(backend)]
    return fits[0] if len(fits) == 1 else None


class Adoption:
    def __init__(self, tmux: Tmux, keeper: SessionKeeper) -> None:
        self._tmux = tmux
        self._keeper = keeper

    def adopt(self, view: SpawnerView, pending: PendingCommand, command: Adopt) -> None:
        agent, spawn = command.agent, spawn_of(pending.request)
        has = view.panes.get(agent)
        if has is not None and has.spawn != spawn:
            self._confirm(view, pending, command, has)
            return
        if has is None:
            must_be_free(view, command)
        chosen = has or chosen_pane(view, command, lambda pane: backend_of(view.fleet.backends, pane))
        try:
            if chosen.dead:
                raise Refusal(f"the program in {described(chosen, command)} has ended")
            backend = self._backend(view, command, chosen)
        except Refusal:
            if has is not None:  # stamped by this very command, before the spawner was killed
                self._tmux.unstamp(has.target, spawn=spawn)
            raise
        stamped = has or self._tmux.stamp(
            chosen.session, agent=agent, spawn=spawn, fleet=view.fleet.stamp, pane_id=command.pane
        )
        if stamped is None:
            raise Refusal(f"{described(chosen, command)} has just ended")
        view.panes[agent] = stamped
        piped_elsewhere = self._is_piped_elsewhere(view, agent, stamped)
        origin = Origin.FOUND if command.found else Origin.ADOPTED
        session = SessionFacts(origin=origin, backend=backend, piped_elsewhere=piped_elsewhere)
        known = replace(view.known(agent).as_wanted(), session=session, overrides={})
        self._keeper.publish_running(view, agent, stamped, None, known, StartReport(AgentAdopted, pending.request.id))
        said = f"{agent} is {described(stamped, command)} from now on"
        if piped_elsewhere:
            said += "; its output goes where somebody had piped it before, and to no log of Muster's"
        view.turn.reply(pending, said, agent=agent, backend=backend, pane=stamped.pane_id)

    def _confirm(self, view: SpawnerView, pending: PendingCommand, command: Adopt, has: Pane) -> None:
        """A person adopts a session that was only found: from now on it is an agent like the others."""
        agent, known = command.agent, view.known(command.agent)
        meant = command.session == has.session and command.pane in (None, has.pane_id)
        if command.found or not known.is_found or not meant:
            raise Refusal(f"{agent} has a session already, {has.session!r}; stop or forget it first")
        backend = command.backend or known.session.backend
        _must_be_described(view, backend)
        view.remember(agent, known.with_session(origin=Origin.ADOPTED, backend=backend))
        said = f"{agent} was only found, and is yours from now on: it is stopped with all the others"
        view.turn.reply(pending, said, agent=agent, backend=backend, pane=has.pane_id)

    def _backend(self, view: SpawnerView, command: Adopt, pane: Pane) -> str:
        backend = _named_backend(view, command) or backend_of(view.fleet.backends, pane)
        if backend is None:
            raise Refusal(
                f"no backend runs the program {pane.command!r} of {described(pane, command)}; name one:"
                f" {', '.join(sorted(view.fleet.backends))}"
            )
        _must_be_described(view, backend)
        return backend

    def _is_piped_elsewhere(self, view: SpawnerView, agent: str, pane: Pane) -> bool:
        """Whether a pipe is on the pane that is not ours. Ours may be there from before a crash or a `forget`."""
        return pane.piped and not is_logged(self._tmux, log_of(view.fleet.logs, agent))


def must_be_free(view: SpawnerView, command: Adopt) -> None:
    """A found session takes no name that the fleet file gives to something else, or that a running agent has."""
    known = view.known(command.agent)
    given = _is_declared_otherwise(view, command) or (
        command.agent in view.fleet.agents and known.is_adopted and not known.is_found
    )
    if command.found and (given or known.had_session):
        raise Refusal(f"the name {command.agent!r} is in use: what was found needs another one")


def _is_declared_otherwise(view: SpawnerView, command: Adopt) -> bool:
    """Whether the fleet file has the name for something else than what runs in the session of that name."""
    declared = view.fleet.agents.get(command.agent)
    if declared is None:
        return False
    return command.session != command.agent or command.backend not in (None, declared.backend)


def chosen_pane(view: SpawnerView, command: Adopt, runs: Callable[[Pane], str | None]) -> Pane:
    """The pane that is meant, if it may be adopted. `runs` tells which backend's program a pane runs."""
    chosen = _named_pane(view, command, command.pane) if command.pane else _first_pane(view, command, runs)
    if chosen.fleet:
        raise Refusal(f"{described(chosen, command)} belongs to another fleet")
    if command.found and chosen.left:
        raise Refusal(f"{described(chosen, command)} was to be forgotten: only a person has it adopted again")
    return chosen


def described(pane: Pane, command: Adopt) -> str:
    """What is adopted, in words."""
    return (
        f"the pane {pane.pane_id} of the session {pane.session!r}" if command.pane else f"the session {pane.session!r}"
    )


def _named_pane(view: SpawnerView, command: Adopt, pane_id: str) -> Pane:
    for agent, pane in view.panes.items():
        if pane.pane_id == pane_id:
            raise Refusal(f"the pane {pane_id} is the agent {agent} already")
    chosen = view.stranger(pane_id, command.session)
    if chosen is None:
        panes = (*view.others, *view.panes.values())
        there = sorted(pane.pane_id for pane in panes if pane.session == command.session)
        has = (
            f"the session {command.session!r} has: {', '.join(there)}"
            if there
            else f"nor a session {command.session!r}"
        )
        raise Refusal(f"tmux has no pane {pane_id}; {has}")
    if chosen.session != command.session:
        raise Refusal(f"the pane {pane_id} is in the session {chosen.session!r} and not in {command.session!r}")
    return chosen


def _first_pane(view: SpawnerView, command: Adopt, runs: Callable[[Pane], str | None]) -> Pane:
    for agent, pane in view.panes.items():
        if pane.session == command.session and pane.pane_only:
            raise Refusal(
                f"the pane {pane.pane_id} of the session {command.session!r} is the agent {agent} already; name the"
                " `pane` that is meant"
            )
        if pane.session == command.session:
            raise Refusal(f"the session {command.session!r} is the agent {agent} already")
    first = view.strangers.get(command.session)
    if first is None:
        known = allowed(command.session, sorted(view.strangers))
        raise Refusal(f"tmux has no session {command.session!r}; {known}")
    if elsewhere := _where_it_runs(view, command, first, runs):
        where = " and ".join(elsewhere)
        raise Refusal(
            f"no such agent runs in the first pane of the session {command.session!r}, but in {where}; name the"
            " `pane`, and only that is taken over"
        )
    return first


def _where_it_runs(view: SpawnerView, command: Adopt, first: Pane, runs: Callable[[Pane], str | None]) -> list[str]:
    """The panes beside the first one in which the agent runs, if it does not run there."""
    beside = [pane for pane in view.others if pane.session == command.session and pane is not first and not pane.dead]
    wanted = _named_backend(view, command)
    if not beside or ((here := runs(first)) is not None and wanted in (None, here)):
        return []
    found = {pane.pane_id: runs(pane) for pane in beside}
    return [f"{pane_id} ({each})" for pane_id, each in found.items() if each is not None and wanted in (None, each)]


def _named_backend(view: SpawnerView, command: Adopt) -> str | None:
    if command.backend or command.agent not in view.fleet.declared.agents:
        return command.backend
    return view.fleet.agents[command.agent].backend


def _must_be_described(view: SpawnerView, backend: str) -> None:
    if backend not in view.fleet.backends:
        raise Refusal(f"there is no backend {backend!r}; {allowed(backend, sorted(view.fleet.backends))}")
