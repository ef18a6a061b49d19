"""Taking over what somebody else has started: a whole session, or one pane of it."""

from collections.abc import Callable
from dataclasses import replace

from services.spawner.adoption import backend_of
from services.spawner.asking import spawn_of
from services.spawner.keeping import Begun, Keeper
from services.spawner.logs import is_logged, log_of
from services.spawner.refusal import Refusal
from services.spawner.scene import Scene
from shared.commands import Adopt
from shared.events import AgentAdopted
from shared.fleet.faults import allowed
from shared.tmux import Pane, Tmux
from shared.turn import Asked


class Adopting:
    def __init__(self, tmux: Tmux, keeper: Keeper) -> None:
        self._tmux = tmux
        self._keeper = keeper

    def adopt(self, scene: Scene, asked: Asked, command: Adopt) -> None:
        agent, fresh = command.agent, spawn_of(asked.request)
        has = scene.panes.get(agent)
        if has is not None and has.spawn != fresh:
            self._confirm(scene, asked, command, has)
            return
        if has is None:
            must_be_free(scene, command)
        chosen = has or chosen_pane(scene, command, lambda pane: backend_of(scene.fleet.backends, pane))
        try:
            if chosen.dead:
                raise Refusal(f"the program in {described(chosen, command)} has ended")
            backend = self._backend(scene, command, chosen)
        except Refusal:
            if has is not None:  # marked by this very command, before the spawner was killed
                self._tmux.unstamp(has.target, spawn=fresh)
            raise
        stamped = has or self._tmux.stamp(
            chosen.session, agent=agent, spawn=fresh, fleet=scene.fleet.stamp, pane_id=command.pane
        )
        if stamped is None:
            raise Refusal(f"{described(chosen, command)} has just ended")
        scene.panes[agent] = stamped
        theirs = self._is_piped_elsewhere(scene, agent, stamped)
        known = replace(
            scene.known(agent).as_wanted(),
            adopted=True,
            found=command.found,
            piped_elsewhere=theirs,
            backend=backend,
            conversation=None,
            order={},
        )
        self._keeper.tell_running(scene, agent, stamped, None, known, Begun(AgentAdopted, asked.request.id))
        said = f"{agent} is {described(stamped, command)} from now on"
        if theirs:
            said += "; its output goes where somebody had piped it before, and to no log of Muster's"
        scene.turn.answer(asked, said, agent=agent, backend=backend, pane=stamped.pane_id)

    def _confirm(self, scene: Scene, asked: Asked, command: Adopt, has: Pane) -> None:
        """A person wants what was only found: from now on it is an agent like the others."""
        agent, known = command.agent, scene.known(command.agent)
        meant = command.session == has.session and command.pane in (None, has.pane_id)
        if command.found or not known.found or not meant:
            raise Refusal(f"{agent} has a session already, {has.session!r}; stop or forget it first")
        backend = command.backend or known.backend
        _must_be_described(scene, backend)
        scene.remember(agent, replace(known, found=False, backend=backend))
        said = f"{agent} was only found, and is yours from now on: it is stopped with all the others"
        scene.turn.answer(asked, said, agent=agent, backend=backend, pane=has.pane_id)

    def _backend(self, scene: Scene, command: Adopt, pane: Pane) -> str:
        backend = _named_backend(scene, command) or backend_of(scene.fleet.backends, pane)
        if backend is None:
            raise Refusal(
                f"no backend runs the program {pane.command!r} of {described(pane, command)}; name one:"
                f" {', '.join(sorted(scene.fleet.backends))}"
            )
        _must_be_described(scene, backend)
        return backend

    def _is_piped_elsewhere(self, scene: Scene, agent: str, pane: Pane) -> bool:
        """Whether somebody else's pipe is on the pane. Ours may be: from before a crash, or before it was forgotten."""
        return pane.piped and not is_logged(self._tmux, log_of(scene.fleet.logs, agent))


def must_be_free(scene: Scene, command: Adopt) -> None:
    """What is only found takes no name that is another's: of the fleet file, or of an agent that runs."""
    known = scene.known(command.agent)
    given = _is_declared_otherwise(scene, command) or (
        command.agent in scene.fleet.agents and known.adopted and not known.found
    )
    if command.found and (given or known.alive):
        raise Refusal(f"the name {command.agent!r} is in use: what was found needs another one")


def _is_declared_otherwise(scene: Scene, command: Adopt) -> bool:
    """Whether the fleet file has the name for something else than what runs in the session of that name."""
    declared = scene.fleet.agents.get(command.agent)
    if declared is None:
        return False
    return command.session != command.agent or command.backend not in (None, declared.backend)


def chosen_pane(scene: Scene, command: Adopt, runs: Callable[[Pane], str | None]) -> Pane:
    """The pane that is meant, if it may be taken over. `runs` tells which backend's program a pane runs."""
    chosen = _named_pane(scene, command, command.pane) if command.pane else _first_pane(scene, command, runs)
    if chosen.fleet:
        raise Refusal(f"{described(chosen, command)} belongs to another fleet")
    if command.found and chosen.left:
        raise Refusal(f"{described(chosen, command)} was to be forgotten: only a person has it adopted again")
    return chosen


def described(pane: Pane, command: Adopt) -> str:
    """What is taken over, in words."""
    return (
        f"the pane {pane.pane_id} of the session {pane.session!r}" if command.pane else f"the session {pane.session!r}"
    )


def _named_pane(scene: Scene, command: Adopt, pane_id: str) -> Pane:
    for agent, pane in scene.panes.items():
        if pane.pane_id == pane_id:
            raise Refusal(f"the pane {pane_id} is the agent {agent} already")
    chosen = scene.stranger(pane_id, command.session)
    if chosen is None:
        panes = (*scene.others, *scene.panes.values())
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


def _first_pane(scene: Scene, command: Adopt, runs: Callable[[Pane], str | None]) -> Pane:
    for agent, pane in scene.panes.items():
        if pane.session == command.session and pane.pane_only:
            raise Refusal(
                f"the pane {pane.pane_id} of the session {command.session!r} is the agent {agent} already; name the"
                " `pane` that is meant"
            )
        if pane.session == command.session:
            raise Refusal(f"the session {command.session!r} is the agent {agent} already")
    first = scene.strangers.get(command.session)
    if first is None:
        known = allowed(command.session, sorted(scene.strangers))
        raise Refusal(f"tmux has no session {command.session!r}; {known}")
    if elsewhere := _where_it_runs(scene, command, first, runs):
        where = " and ".join(elsewhere)
        raise Refusal(
            f"no such agent runs in the first pane of the session {command.session!r}, but in {where}; name the"
            " `pane`, and only that is taken over"
        )
    return first


def _where_it_runs(scene: Scene, command: Adopt, first: Pane, runs: Callable[[Pane], str | None]) -> list[str]:
    """The panes beside the first one in which the agent runs, if it does not run there."""
    beside = [pane for pane in scene.others if pane.session == command.session and pane is not first and not pane.dead]
    wanted = _named_backend(scene, command)
    if not beside or ((here := runs(first)) is not None and wanted in (None, here)):
        return []
    found = {pane.pane_id: runs(pane) for pane in beside}
    return [f"{pane_id} ({each})" for pane_id, each in found.items() if each is not None and wanted in (None, each)]


def _named_backend(scene: Scene, command: Adopt) -> str | None:
    if command.backend or command.agent not in scene.fleet.declared.agents:
        return command.backend
    return scene.fleet.agents[command.agent].backend


def _must_be_described(scene: Scene, backend: str) -> None:
    if backend not in scene.fleet.backends:
        raise Refusal(f"there is no backend {backend!r}; {allowed(backend, sorted(scene.fleet.backends))}")
