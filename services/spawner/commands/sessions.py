"""Commands about sessions. After a crash, a command that was begun continues where it was."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from services.spawner.commands.adoption import Adoption
from services.spawner.commands.replies import ANSWERED_WITHIN_S, Overtaken, Refusal, by, defer, spawn_of
from services.spawner.commands.stops import Stops
from services.spawner.sessions.decision import after_death
from services.spawner.sessions.keeper import SessionKeeper, StartReport
from services.spawner.sessions.launch import LaunchOverrides, ResumeTarget, can_resume
from services.spawner.sessions.memory import AGENTS, AgentMemory, Ended, GivenUp
from services.spawner.sessions.output_logs import is_logged, log_of
from services.spawner.sessions.parking import parked
from services.spawner.sessions.termination import end_sessions
from services.spawner.typing.queue import forget_typing
from services.spawner.view import SpawnerView
from shared.contract.commands import (
    Adopt,
    AgentCommand,
    Delete,
    Forget,
    Restart,
    Resume,
    Spawn,
    SpawnAll,
    Stop,
    StopAll,
)
from shared.contract.events.lifecycle import AgentDeleted, AgentRestarted, AgentResumed, AgentStopped
from shared.contract.states import Desired
from shared.fleet import AgentKind
from shared.fleet.faults import allowed
from shared.runtime.turn import PendingCommand
from shared.system.tmux import Pane, Tmux


class SessionCommands:
    """Spawn, stop, restart, resume, delete, forget, adopt."""

    def __init__(
        self,
        tmux: Tmux,
        keeper: SessionKeeper,
        purge: Callable[[SpawnerView, str, str], Path | None],
        is_silent: Callable[[SpawnerView, str], bool],
    ) -> None:
        self._tmux = tmux
        self._keeper = keeper
        self._purge = purge
        self._is_silent = is_silent
        self._adoption = Adoption(tmux, keeper)
        self.waiting: set[str] = set()
        """Requests that wait for an account. Other commands for their agents may be carried out meanwhile."""
        self.stops = Stops(tmux)

    def carry_out(self, view: SpawnerView, pending: PendingCommand) -> None:
        command = pending.command
        with view.turn.answering(pending):
            match command:
                case Spawn():
                    self._spawn(view, pending, command)
                case Restart():
                    self._restart(view, pending, command)
                case Resume():
                    self._resume(view, pending, command)
                case Stop(agent=agent, for_now=for_now):
                    if command.spawn is not None:
                        must_be_session(view, agent, command.spawn)
                    self.stops.stop(view, pending, agent, for_now=for_now)
                case SpawnAll():
                    self._spawn_all(view, pending)
                case StopAll():
                    self.stops.stop_all(view, pending, command)
                case Delete():
                    self._delete(view, pending, command)
                case Forget():
                    self._forget(view, pending, command)
                case Adopt():
                    self._adoption.adopt(view, pending, command)
                    self.stops.down_for_now.discard(command.agent)
                case _:
                    raise Refusal(f"the spawner has no handler for {command.verb}")

    # --- starting ---

    def _spawn(self, view: SpawnerView, pending: PendingCommand, command: Spawn) -> None:
        agent, spawn = command.agent, spawn_of(pending.request)
        self._must_be_declared(view, agent)
        self.stops.down_for_now.discard(agent)
        known = view.known(agent).as_wanted()
        pane = _begun(view, agent, spawn)
        overrides = LaunchOverrides(command.prompt, command.model, command.backend, command.dir)
        if pane is not None and pane.spawn != spawn:
            view.remember(agent, known)
            otherwise = ", as it was started: what was asked otherwise is not taken up"
            said = f"{agent} runs already{otherwise if overrides.differences() else ''}"
            view.turn.reply(pending, said, agent=agent, spawn=pane.spawn, already=True)
            return
        launch = self._keeper.plan(view, agent, spawn, overrides, None)
        known = replace(known, overrides=overrides.differences())
        if pane is None and self._is_parked(view, pending, agent, known.overrides):
            view.remember(agent, known)  # it is wanted, even if the command expires meanwhile
            return
        if pane is None and self._must_queue(view, pending, agent):
            return
        pane = pane or self._start_anew(view, agent, lambda: self._keeper.launch(view, launch, spawn))
        self._keeper.publish_running(view, agent, pane, launch, known, StartReport(cause=pending.request.id))
        view.turn.reply(pending, f"{agent} was started", agent=agent, spawn=pane.spawn, session=pane.session)

    def _spawn_all(self, view: SpawnerView, pending: PendingCommand) -> None:
        """Make all agents wanted; the keeper starts them, a few at a time."""
        wanted = [name for name in view.fleet.agents if view.fleet.starts_by_itself(name) and not _has_run(view, name)]
        started = [name for name in wanted if view.running(name) is None]
        for agent in started:
            self.stops.down_for_now.discard(agent)
            view.remember(agent, view.known(agent).as_wanted())
        said = f"{len(started)} are being started" if started else "all run already"
        view.turn.reply(pending, said, agents=started)

    def _restart(self, view: SpawnerView, pending: PendingCommand, command: Restart) -> None:
        agent, spawn = command.agent, spawn_of(pending.request)
        self._must_be_declared(view, agent)
        if command.spawn is not None and view.known(agent).spawn != spawn:
            must_be_session(view, agent, command.spawn)
        if command.counts:
            self._end_as_dead(view, pending, agent)
            return
        self.stops.down_for_now.discard(agent)
        known = view.known(agent).as_wanted()
        resume = None if command.fresh else self._keeper.conversation(view, agent, known)
        # Planned before anything is ended: a session that can't be started again is left alone.
        overrides = LaunchOverrides(command.prompt, command.model)
        launch = self._keeper.plan(view, agent, spawn, overrides, resume)
        pane = view.panes.get(agent)
        if pane is None or pane.spawn != spawn:
            if view.running(agent) is not None and not command.anyway and (park := parked(view, agent)) is not None:
                raise Refusal(f"{agent} runs, and {park.says}: to restart it now, say --anyway")
            if self._is_parked(view, pending, agent):
                return
            if pane is not None:
                end_sessions(self._tmux, [pane])
            pane = self._keeper.launch(view, launch, spawn)
        more = {"replaces": known.spawn, "reason": by(pending), "attempt": 0}
        report = StartReport(AgentRestarted, pending.request.id, more)
        known = replace(known, overrides=overrides.differences())
        self._keeper.publish_running(view, agent, pane, launch, known, report)
        how = "; it takes up its conversation" if launch.resumed else ""
        view.turn.reply(pending, f"{agent} was restarted{how}", agent=agent, spawn=pane.spawn, session=pane.session)

    def _resume(self, view: SpawnerView, pending: PendingCommand, command: Resume) -> None:
        agent, spawn = command.agent, spawn_of(pending.request)
        self._must_be_declared(view, agent)
        known, pane = view.known(agent), _begun(view, agent, spawn)
        if pending.request.id == known.resume_request:
            self._watch_resume(view, pending, agent, known)
            return
        self.stops.down_for_now.discard(agent)
        if pane is not None and pane.spawn != spawn:
            view.remember(agent, known.as_wanted())
            conversation = known.session.conversation
            of = f", with the conversation {conversation}" if conversation else ""
            view.turn.reply(pending, f"{agent} runs already{of}", agent=agent, spawn=pane.spawn, already=True)
            return
        name = self._keeper.next_backend(view, agent, known)
        last = known.session.conversation if known.session.backend in ("", name) else None
        wanted = ResumeTarget(command.conversation or last)
        if command.conversation is None and self._is_silent(view, agent):
            raise Refusal(f"nothing was said in {agent}'s conversation yet, so there is nothing to take up; spawn it")
        if name not in view.fleet.backends or not can_resume(view.fleet.backends[name], wanted):
            raise Refusal(f"the backend {name!r} has no way to take up a conversation")
        launch = self._keeper.plan(view, agent, spawn, LaunchOverrides(**known.overrides), wanted)
        if pane is None and (self._is_parked(view, pending, agent) or self._must_queue(view, pending, agent)):
            return
        pane = pane or self._start_anew(view, agent, lambda: self._keeper.launch(view, launch, spawn))
        report = StartReport(AgentResumed, pending.request.id, {"reason": by(pending)})
        known = replace(known.as_wanted(), resume_request=pending.request.id)
        self._keeper.publish_running(view, agent, pane, launch, known, report)
        self._wait(view, pending, f"{agent} was started, and takes up its conversation")

    def _watch_resume(self, view: SpawnerView, pending: PendingCommand, agent: str, known: AgentMemory) -> None:
        """Answer once it is clear whether the agent took its conversation up."""
        pane, backend = view.running(agent), view.backend(agent)
        overtaken = pending.request.id in view.overtaken
        resumed = known.session.resumed
        result = {"agent": agent, "spawn": known.spawn, "conversation": known.session.conversation}
        if isinstance(known.phase, GivenUp) and known.phase.refused:
            answer = (f"{agent} refused to take up its conversation, and stays down", "refused")
        elif known.gave_up:
            answer = (f"{agent} did not stay up, and was given up", "refused")
        elif not resumed:
            answer = (f"{agent} refused to take up its conversation and began a new one", "ok")
        elif pane is not None and self._keeper.is_ready(view, pane, backend):
            answer = (f"{agent} took up its conversation", "ok")
        elif overtaken or view.now - known.session.started > backend.ready_within_s:
            answer = (f"{agent} was started to take up its conversation; it does not show yet that it did", "ok")
        else:
            self._wait(view, pending, f"{agent} was started, and takes up its conversation")
            return
        view.remember(agent, replace(known, resume_request=None))
        view.turn.reply(pending, answer[0], code=answer[1], fresh=not resumed, **result)

    def _wait(self, view: SpawnerView, pending: PendingCommand, said: str) -> None:
        defer(view, pending, said)
        view.turn.look_again_at(view.turn.now + timedelta(seconds=0.2))

    def _end_as_dead(self, view: SpawnerView, pending: PendingCommand, agent: str) -> None:
        """End its session as if it had died: the keeper starts it again, or gives it up."""
        known, rules = view.known(agent), self._keeper.rules(view, agent)
        if known.is_found or rules.once:
            raise Refusal(f"{agent} is not started again by itself, so it is not ended for that")
        if agent in self.stops.down_for_now or not known.had_session:
            raise Refusal(f"{agent} has ended already")
        if (pane := view.panes.pop(agent, None)) is not None:
            end_sessions(self._tmux, [pane])
        died = after_death(known, rules, view.now).with_session(prompt="")
        phase = Ended(by(pending)) if isinstance(died.phase, Ended) else died.phase
        view.remember(agent, replace(died, spawns=known.spawns + 1, phase=phase))
        stopped = AgentStopped(agent=agent, spawn=known.spawn, reason=by(pending), for_now=True)
        view.turn.emit(stopped, cause=pending.request.id)
        view.turn.look_again_at(view.turn.now)
        said = f"{agent} was ended, and is started again within its restart limits"
        view.turn.reply(pending, said, agent=agent, spawn=known.spawn)

    def _is_parked(
        self, view: SpawnerView, pending: PendingCommand, agent: str, overrides: Mapping[str, str] | None = None
    ) -> bool:
        """Whether a start has to wait because its account's usage limit is reached, and the sender does not insist."""
        park = parked(view, agent, overrides)
        if park is None or getattr(pending.command, "anyway", False):
            return False
        if pending.request.id in view.overtaken:
            raise Overtaken(f"{agent} waited for a usage limit to lift, and something else was asked of it meanwhile")
        until = view.time(park.until)
        view.turn.defer(pending, f"{agent} waits: {park.says}", until + timedelta(seconds=ANSWERED_WITHIN_S))
        self.waiting.add(pending.request.id)
        view.turn.look_again_at(until)
        return True

    def _must_queue(self, view: SpawnerView, pending: PendingCommand, agent: str) -> bool:
        due = self._keeper.start_delay(view)
        if due is None:
            return False
        if pending.request.id in view.overtaken:
            raise Overtaken(f"{agent} waited for its turn to be started, and something else was asked of it meanwhile")
        defer(view, pending, f"{agent} waits for its turn: a few agents are started at a time")
        view.turn.look_again_at(due)
        return True

    def _start_anew(self, view: SpawnerView, agent: str, launch: Callable[[], Pane]) -> Pane:
        dead = view.panes.get(agent)
        if dead is not None:
            self._keeper.clear_dead_pane(view, agent, dead)
        return launch()

    def _must_be_declared(self, view: SpawnerView, agent: str) -> None:
        if agent not in view.fleet.agents:
            raise Refusal(f"{agent!r} was adopted and is not in {view.fleet.path.name}: it can't be started from there")

    # --- ending ---

    def _delete(self, view: SpawnerView, pending: PendingCommand, command: Delete) -> None:
        agent, known, pane = command.agent, view.known(command.agent), view.panes.pop(command.agent, None)
        if pane is not None:
            end_sessions(self._tmux, [pane])
        purged: Path | None = None
        kept = ""
        if command.purge_conversation:
            conversation = known.session.conversation
            purged = self._purge(view, agent, conversation) if conversation else None
            kept = "" if purged else "; no file of its conversation was found, so none was removed"
        self._drop(view, agent, known)
        spawn = pane.spawn if pane is not None else known.spawn
        removed = str(purged) if purged else None
        deleted = AgentDeleted(agent=agent, spawn=spawn, reason=by(pending), purged=removed)
        view.turn.emit(deleted, cause=pending.request.id)
        said = f"{agent} was deleted" + (", and its conversation with it" if purged else kept)
        view.turn.reply(pending, said, agent=agent, purged=removed)

    def _forget(self, view: SpawnerView, pending: PendingCommand, command: Forget) -> None:
        agent, known, pane = command.agent, view.known(command.agent), view.panes.get(command.agent)
        went_on = ""
        if command.spawn is not None:
            must_have_ended(view, agent, command.spawn)
            if pane is not None:
                self._keeper.clear_dead_pane(view, agent, pane)  # it is over: nothing goes on that could be found again
                pane = None
        view.panes.pop(agent, None)
        if pane is not None:
            if pane.piped and is_logged(self._tmux, log_of(view.fleet.logs, agent)):
                self._tmux.unpipe(pane.pane_id)
            self._tmux.unstamp(pane.target, spawn=pane.spawn, left=view.fleet.stamp)
            what = f"the pane {pane.pane_id} of the tmux session" if pane.pane_only else "the tmux session"
            went_on = f"; {what} {pane.session!r} goes on without Muster"
        self._drop(view, agent, known)
        spawn = pane.spawn if pane is not None else known.spawn
        deleted = AgentDeleted(agent=agent, spawn=spawn, reason=by(pending), session_left=pane is not None)
        view.turn.emit(deleted, cause=pending.request.id)
        view.turn.reply(pending, f"{agent} was forgotten{went_on}", agent=agent)

    def _drop(self, view: SpawnerView, agent: str, known: AgentMemory) -> None:
        """Remember nothing of the agent but that it is not wanted, and how many sessions it had."""
        forget_typing(view.turn, agent)
        dropped = AgentMemory(wish=Desired.STOPPED, spawns=known.spawns + 1)
        view.turn.memory.put(AGENTS, dropped if agent in view.fleet.agents else None, agent)


def must_be_session(view: SpawnerView, agent: str, spawn: str) -> None:
    """The sender meant the session that it saw, not a later one."""
    pane = view.panes.get(agent)
    if (newest := pane.spawn if pane is not None else view.known(agent).spawn) != spawn:
        raise Refusal(f"{agent} has another session since, {newest}: {spawn} was meant")


def must_have_ended(view: SpawnerView, agent: str, spawn: str) -> None:
    """The sender meant a session that was over, not one that was started since."""
    pane = view.panes.get(agent)
    if view.running(agent) is not None:
        raise Refusal(f"{agent} runs, and is not forgotten: only its session {spawn}, once ended, was to be")
    if newest := {view.known(agent).spawn, pane.spawn if pane else None} - {None, spawn}:
        raise Refusal(f"{agent} had another session since, {newest.pop()}, and is not forgotten: {spawn} was meant")


def _begun(view: SpawnerView, agent: str, spawn: str) -> Pane | None:
    """The session that runs, or the one that this very command has started, even if its program has ended since."""
    pane = view.panes.get(agent)
    return pane if pane is not None and (pane.spawn == spawn or not pane.dead) else None


def _has_run(view: SpawnerView, agent: str) -> bool:
    """Whether it is a task that was started before: it runs again only when it is asked for by name."""
    return view.fleet.agents[agent].kind is AgentKind.TASK and view.known(agent).spawn is not None


def no_such_agent(view: SpawnerView, agent: str) -> str:
    return f"there is no agent {agent!r} in {view.fleet.path.name}; {allowed(agent, sorted(view.fleet.agents))}"


def is_about_sessions(command: Any) -> bool:
    return isinstance(command, SpawnAll | StopAll) or (isinstance(command, AgentCommand) and command.changes_session)
