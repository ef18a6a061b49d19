"""Carrying out what is asked about sessions. After a crash, a command that was begun goes on where it was."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from services.spawner.adopting import Adopting
from services.spawner.asking import HELD_FOR_S, by, hold, sentence, spawn_of
from services.spawner.decide import Known, after_death
from services.spawner.endings import end_sessions
from services.spawner.keeping import Begun, Keeper
from services.spawner.logs import is_logged, log_of
from services.spawner.parking import parked
from services.spawner.refusal import Overtaken, Refusal
from services.spawner.scene import Scene
from services.spawner.sessions import Conversation, Order, can_resume
from shared.commands import Adopt, AgentCommand, Delete, Forget, Restart, Resume, Spawn, SpawnAll, Stop, StopAll
from shared.errors import Retryable
from shared.events import AgentDeleted, AgentRestarted, AgentResumed, AgentStopped
from shared.fleet import Kind
from shared.fleet.faults import allowed
from shared.states import Desired
from shared.tmux import Pane, Tmux
from shared.turn import Asked


class SessionCommands:
    """Spawn, stop, restart, resume, delete, forget, adopt."""

    def __init__(self, tmux: Tmux, keeper: Keeper, purge: Callable[[Scene, str, str], Path | None]) -> None:
        self._tmux = tmux
        self._keeper = keeper
        self._purge = purge
        self._adopting = Adopting(tmux, keeper)
        self.waiting: set[str] = set()
        """Requests that wait for an account: meanwhile nothing is done about their agents, and others may be."""
        self.resting: set[str] = set()
        """Agents that were ended only for as long as this process lives: the fleet goes down, the wish stays."""

    def carry_out(self, scene: Scene, asked: Asked) -> None:
        command = asked.command
        try:
            match command:
                case Spawn():
                    self._spawn(scene, asked, command)
                case Restart():
                    self._restart(scene, asked, command)
                case Resume():
                    self._resume(scene, asked, command)
                case Stop(agent=agent, for_now=for_now):
                    if command.spawn is not None:
                        must_be_session(scene, agent, command.spawn)
                    self._stop(scene, asked, agent, for_now=for_now)
                case SpawnAll():
                    self._spawn_all(scene, asked)
                case StopAll(for_now=for_now):
                    self._stop_all(scene, asked, for_now=for_now)
                case Delete():
                    self._delete(scene, asked, command)
                case Forget():
                    self._forget(scene, asked, command)
                case Adopt():
                    self._adopting.adopt(scene, asked, command)
                    self.resting.discard(command.agent)
        except Retryable:
            raise
        except Exception as error:  # noqa: BLE001 - a command that fails is answered: else it would come again for ever
            scene.turn.answer(asked, sentence(error), code=getattr(error, "code", "refused"))

    # --- starting ---

    def _spawn(self, scene: Scene, asked: Asked, command: Spawn) -> None:
        agent, fresh = command.agent, spawn_of(asked.request)
        self._must_be_declared(scene, agent)
        self.resting.discard(agent)
        known = scene.known(agent).as_wanted()
        pane = _begun(scene, agent, fresh)
        if pane is not None and pane.spawn != fresh:
            scene.remember(agent, known)
            said = f"{agent} runs already" + (
                ", as it was started: what was asked otherwise is not taken up" * _differs(command)
            )
            scene.turn.answer(asked, said, agent=agent, spawn=pane.spawn, already=True)
            return
        order = Order(command.prompt, command.model, command.backend, command.dir)
        launch = self._keeper.plan(scene, agent, fresh, order, None)
        known = replace(known, order=order.differences())
        if pane is None and self._is_parked(scene, asked, agent, known.order):
            scene.remember(agent, known)  # it is wanted, whatever becomes of the command meanwhile
            return
        if pane is None and self._queues(scene, asked, agent):
            return
        pane = pane or self._start_anew(scene, agent, lambda: self._keeper.launch(scene, launch, fresh))
        self._keeper.tell_running(scene, agent, pane, launch, known, Begun(cause=asked.request.id))
        scene.turn.answer(asked, f"{agent} was started", agent=agent, spawn=pane.spawn, session=pane.session)

    def _spawn_all(self, scene: Scene, asked: Asked) -> None:
        """The keeper does the work, a few at a time; this only makes it wanted."""
        wanted = [
            name for name in scene.fleet.agents if scene.fleet.starts_by_itself(name) and not _has_run(scene, name)
        ]
        started = [name for name in wanted if scene.running(name) is None]
        for agent in started:
            self.resting.discard(agent)
            scene.remember(agent, scene.known(agent).as_wanted())
        said = f"{len(started)} are being started" if started else "all run already"
        scene.turn.answer(asked, said, agents=started)

    def _restart(self, scene: Scene, asked: Asked, command: Restart) -> None:
        agent, fresh = command.agent, spawn_of(asked.request)
        self._must_be_declared(scene, agent)
        if command.spawn is not None and scene.known(agent).spawn != fresh:
            must_be_session(scene, agent, command.spawn)
        if command.counts:
            self._end_as_dead(scene, asked, agent)
            return
        self.resting.discard(agent)
        known = scene.known(agent).as_wanted()
        resume = None if command.fresh else self._keeper.conversation(scene, agent, known)
        # Planned before anything is ended: a session that can't be made again is left alone.
        order = Order(command.prompt, command.model)
        launch = self._keeper.plan(scene, agent, fresh, order, resume)
        pane = scene.panes.get(agent)
        if pane is None or pane.spawn != fresh:
            if scene.running(agent) is not None and not command.anyway and (park := parked(scene, agent)) is not None:
                raise Refusal(f"{agent} runs, and {park.says}: to restart it now, say --anyway")
            if self._is_parked(scene, asked, agent):
                return
            if pane is not None:
                end_sessions(self._tmux, [pane])
            pane = self._keeper.launch(scene, launch, fresh)
        more = {"replaces": known.spawn, "reason": by(asked), "attempt": 0}
        begun = Begun(AgentRestarted, asked.request.id, more)
        self._keeper.tell_running(scene, agent, pane, launch, replace(known, order=order.differences()), begun)
        how = "; it takes up its conversation" if launch.resumed else ""
        scene.turn.answer(asked, f"{agent} was restarted{how}", agent=agent, spawn=pane.spawn, session=pane.session)

    def _resume(self, scene: Scene, asked: Asked, command: Resume) -> None:
        agent, fresh = command.agent, spawn_of(asked.request)
        self._must_be_declared(scene, agent)
        known, pane = scene.known(agent), _begun(scene, agent, fresh)
        if asked.request.id == known.resuming:
            self._watch_resume(scene, asked, agent, known)
            return
        self.resting.discard(agent)
        if pane is not None and pane.spawn != fresh:
            scene.remember(agent, known.as_wanted())
            of = f", with the conversation {known.conversation}" if known.conversation else ""
            scene.turn.answer(asked, f"{agent} runs already{of}", agent=agent, spawn=pane.spawn, already=True)
            return
        name = self._keeper.next_backend(scene, agent, known)
        wanted = Conversation(command.conversation or (known.conversation if known.backend in ("", name) else None))
        if name not in scene.fleet.backends or not can_resume(scene.fleet.backends[name], wanted):
            raise Refusal(f"the backend {name!r} has no way to take up a conversation")
        launch = self._keeper.plan(scene, agent, fresh, Order(**known.order), wanted)
        if pane is None and (self._is_parked(scene, asked, agent) or self._queues(scene, asked, agent)):
            return
        pane = pane or self._start_anew(scene, agent, lambda: self._keeper.launch(scene, launch, fresh))
        begun = Begun(AgentResumed, asked.request.id, {"reason": by(asked)})
        known = replace(known.as_wanted(), resuming=asked.request.id)
        self._keeper.tell_running(scene, agent, pane, launch, known, begun)
        self._wait(scene, asked, f"{agent} was started, and takes up its conversation")

    def _watch_resume(self, scene: Scene, asked: Asked, agent: str, known: Known) -> None:
        """Answer once it is clear whether the agent took its conversation up."""
        pane, backend = scene.running(agent), scene.backend(agent)
        overtaken = asked.request.id in scene.overtaken
        result = {"agent": agent, "spawn": known.spawn, "conversation": known.conversation}
        if known.gave_up and known.refused == known.spawn:
            answer = (f"{agent} refused to take up its conversation, and stays down", "refused")
        elif known.gave_up:
            answer = (f"{agent} did not stay up, and was given up", "refused")
        elif not known.resumed:
            answer = (f"{agent} refused to take up its conversation and began a new one", "ok")
        elif pane is not None and self._keeper.is_ready(scene, pane, backend):
            answer = (f"{agent} took up its conversation", "ok")
        elif overtaken or scene.now - known.started > backend.ready_within_s:
            answer = (f"{agent} was started to take up its conversation; it does not show yet that it did", "ok")
        else:
            self._wait(scene, asked, f"{agent} was started, and takes up its conversation")
            return
        scene.remember(agent, replace(known, resuming=None))
        scene.turn.answer(asked, answer[0], code=answer[1], fresh=not known.resumed, **result)

    def _wait(self, scene: Scene, asked: Asked, said: str) -> None:
        hold(scene, asked, said)
        scene.turn.again_at(scene.turn.now + timedelta(seconds=0.2))

    def _end_as_dead(self, scene: Scene, asked: Asked, agent: str) -> None:
        """End its session as if it had died: the keeper starts it again, or gives it up."""
        known, rules = scene.known(agent), self._keeper.rules(scene, agent)
        if known.found or rules.once:
            raise Refusal(f"{agent} is not started again by itself, so it is not ended for that")
        if agent in self.resting or not known.alive:
            raise Refusal(f"{agent} has ended already")
        if (pane := scene.panes.pop(agent, None)) is not None:
            end_sessions(self._tmux, [pane])
        died = after_death(known, rules, scene.now)
        scene.remember(agent, replace(died, spawns=known.spawns + 1, ended_for=by(asked), prompt=""))
        stopped = AgentStopped(agent=agent, spawn=known.spawn, reason=by(asked), for_now=True)
        scene.turn.tell(stopped, cause=asked.request.id)
        scene.turn.again_at(scene.turn.now)
        said = f"{agent} was ended, and is started again within its restart limits"
        scene.turn.answer(asked, said, agent=agent, spawn=known.spawn)

    def _is_parked(self, scene: Scene, asked: Asked, agent: str, order: Mapping[str, str] | None = None) -> bool:
        """Whether a start has to wait because its account's usage limit is reached; who asked may insist."""
        park = parked(scene, agent, order)
        if park is None or getattr(asked.command, "anyway", False):
            return False
        if asked.request.id in scene.overtaken:
            raise Overtaken(f"{agent} waited for a usage limit to lift, and something else was asked of it meanwhile")
        until = scene.turn.now.fromtimestamp(park.until, scene.turn.now.tzinfo)
        scene.turn.hold(asked, f"{agent} waits: {park.says}", until + timedelta(seconds=HELD_FOR_S))
        self.waiting.add(asked.request.id)
        scene.turn.again_at(until)
        return True

    def _queues(self, scene: Scene, asked: Asked, agent: str) -> bool:
        due = self._keeper.waits_for_turn(scene)
        if due is None:
            return False
        if asked.request.id in scene.overtaken:
            raise Overtaken(f"{agent} waited for its turn to be started, and something else was asked of it meanwhile")
        hold(scene, asked, f"{agent} waits for its turn: a few agents are started at a time")
        scene.turn.again_at(due)
        return True

    def _start_anew(self, scene: Scene, agent: str, launch: Callable[[], Pane]) -> Pane:
        dead = scene.panes.get(agent)
        if dead is not None:
            self._keeper.bury(scene, agent, dead)
        return launch()

    def _must_be_declared(self, scene: Scene, agent: str) -> None:
        if agent not in scene.fleet.agents:
            raise Refusal(
                f"{agent!r} was adopted and is not in {scene.fleet.path.name}: it can't be started from there"
            )

    # --- ending ---

    def _stop(self, scene: Scene, asked: Asked, agent: str, *, for_now: bool) -> None:
        ran = scene.running(agent) is not None
        end_sessions(self._tmux, [scene.panes[agent]] if agent in scene.panes else [])
        self._tell_ended(scene, asked, agent, for_now=for_now)
        said = f"{agent} was stopped" if ran else f"{agent} was not running, and stays down"
        scene.turn.answer(asked, said, agent=agent)

    def _stop_all(self, scene: Scene, asked: Asked, *, for_now: bool) -> None:
        found = [agent for agent in scene.panes if scene.known(agent).found]
        ours = {agent: pane for agent, pane in scene.panes.items() if agent not in found}
        ended = [agent for agent in ours if scene.running(agent)]
        end_sessions(self._tmux, list(ours.values()))
        for agent in {**dict.fromkeys(scene.fleet.agents), **ours}:
            if agent not in found:
                self._tell_ended(scene, asked, agent, for_now=for_now)
        said = f"{', '.join(ended)}: stopped" if ended else "no agent was running"
        if len(found) == 1:
            said += f"; {found[0]}, which was only found, was left alone: name it to stop it"
        elif found:
            said += f"; {len(found)} that were only found were left alone: name them to stop them"
        scene.turn.answer(asked, said, agents=ended, left_alone=found)

    def _tell_ended(self, scene: Scene, asked: Asked, agent: str, *, for_now: bool) -> None:
        known, pane = scene.known(agent), scene.panes.pop(agent, None)
        if for_now:
            self.resting.add(agent)
        wish = known.wish if for_now else Desired.STOPPED
        order = known.order if for_now else {}
        ended = replace(known, wish=wish, alive=False, gave_up=False, deaths=[], prompt="", order=order, resuming=None)
        scene.remember(agent, replace(ended, lost=False, held="", ended_for=""))
        if pane is not None or known.alive or not (for_now or known.wish is Desired.STOPPED):
            spawn = pane.spawn if pane is not None else known.spawn
            stopped = AgentStopped(agent=agent, spawn=spawn, reason=by(asked), for_now=for_now)
            scene.turn.tell(stopped, cause=asked.request.id)

    def _delete(self, scene: Scene, asked: Asked, command: Delete) -> None:
        agent, known, pane = command.agent, scene.known(command.agent), scene.panes.pop(command.agent, None)
        if pane is not None:
            end_sessions(self._tmux, [pane])
        purged: Path | None = None
        kept = ""
        if command.purge_conversation:
            purged = self._purge(scene, agent, known.conversation) if known.conversation else None
            kept = "" if purged else "; no file of its conversation was found, so none was removed"
        self._drop(scene, agent, known)
        spawn = pane.spawn if pane is not None else known.spawn
        removed = str(purged) if purged else None
        deleted = AgentDeleted(agent=agent, spawn=spawn, reason=by(asked), purged=removed)
        scene.turn.tell(deleted, cause=asked.request.id)
        said = f"{agent} was deleted" + (", and its conversation with it" if purged else kept)
        scene.turn.answer(asked, said, agent=agent, purged=removed)

    def _forget(self, scene: Scene, asked: Asked, command: Forget) -> None:
        agent, known, pane = command.agent, scene.known(command.agent), scene.panes.get(command.agent)
        went_on = ""
        if command.spawn is not None:
            must_have_ended(scene, agent, command.spawn)
            if pane is not None:
                self._keeper.bury(scene, agent, pane)  # it is over: nothing goes on that could be found again
                pane = None
        scene.panes.pop(agent, None)
        if pane is not None:
            if pane.piped and is_logged(self._tmux, log_of(scene.fleet.logs, agent)):
                self._tmux.unpipe(pane.pane_id)
            self._tmux.unstamp(pane.target, spawn=pane.spawn, left=scene.fleet.stamp)
            what = f"the pane {pane.pane_id} of the tmux session" if pane.pane_only else "the tmux session"
            went_on = f"; {what} {pane.session!r} goes on without Muster"
        self._drop(scene, agent, known)
        spawn = pane.spawn if pane is not None else known.spawn
        deleted = AgentDeleted(agent=agent, spawn=spawn, reason=by(asked), session_left=pane is not None)
        scene.turn.tell(deleted, cause=asked.request.id)
        scene.turn.answer(asked, f"{agent} was forgotten{went_on}", agent=agent)

    def _drop(self, scene: Scene, agent: str, known: Known) -> None:
        """Keep nothing of the agent but that it is not wanted, and how many sessions it had."""
        scene.forget(agent)
        if agent in scene.fleet.agents:
            scene.remember(agent, Known(wish=Desired.STOPPED, spawns=known.spawns + 1))


def must_be_session(scene: Scene, agent: str, spawn: str) -> None:
    """Whoever asks means the session that it saw, and no later one."""
    pane = scene.panes.get(agent)
    if (newest := pane.spawn if pane is not None else scene.known(agent).spawn) != spawn:
        raise Refusal(f"{agent} has another session since, {newest}: {spawn} was meant")


def must_have_ended(scene: Scene, agent: str, spawn: str) -> None:
    """Whoever has it forgotten meant a session that was over: not one that was started since."""
    pane = scene.panes.get(agent)
    if scene.running(agent) is not None:
        raise Refusal(f"{agent} runs, and is not forgotten: only its session {spawn}, once ended, was to be")
    if newest := {scene.known(agent).spawn, pane.spawn if pane else None} - {None, spawn}:
        raise Refusal(f"{agent} had another session since, {newest.pop()}, and is not forgotten: {spawn} was meant")


def _begun(scene: Scene, agent: str, spawn: str) -> Pane | None:
    """The session that runs, or the one that this very command has begun, though its program may have ended since."""
    pane = scene.panes.get(agent)
    return pane if pane is not None and (pane.spawn == spawn or not pane.dead) else None


def _has_run(scene: Scene, agent: str) -> bool:
    """Whether it is a task that was done, or begun: it is run again only when it is asked for by name."""
    return scene.fleet.agents[agent].kind is Kind.TASK and scene.known(agent).spawn is not None


def no_such_agent(scene: Scene, agent: str) -> str:
    return f"there is no agent {agent!r} in {scene.fleet.path.name}; {allowed(agent, sorted(scene.fleet.agents))}"


def is_about_sessions(command: Any) -> bool:
    return isinstance(command, SpawnAll | StopAll) or (isinstance(command, AgentCommand) and command.changes_session)


def _differs(command: Spawn) -> bool:
    return any(each is not None for each in (command.prompt, command.model, command.backend, command.dir))
