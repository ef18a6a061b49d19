"""Keeping agents as people want them: starting, claiming, burying, and telling each of it in the same turn."""

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path, PurePath
from typing import Any

from services.spawner.sessions.decision import (
    AgentMemory,
    ClaimSession,
    ClearDeadPane,
    KeepRules,
    LookAgain,
    NoteDeath,
    ReportGaveUp,
    Start,
    decide,
)
from services.spawner.sessions.launch import (
    CannotStart,
    Launch,
    LaunchOverrides,
    ResumeTarget,
    can_resume,
    plan,
    to_hide,
    workspace_of,
)
from services.spawner.sessions.parking import parked
from services.spawner.sessions.restarts import GiveUp, RestartAt, Stagger, fleet_restart, fleet_worth_remembering
from services.spawner.sessions.termination import end_left_over
from services.spawner.view import SEED, SpawnerView
from shared.contract.events.lifecycle import AgentExited, AgentGaveUp, AgentRestarted, AgentSpawned, SessionStarted
from shared.contract.states import Trouble
from shared.errors import MusterError
from shared.fleet import AgentKind, Backend
from shared.screen import read_screen, read_signs, unstyle
from shared.system.files import make_directory, write
from shared.system.log import Log
from shared.system.tmux import Pane, Tmux, WrongSpawn, left_name

LIES_S, LIES_AT_MOST_S = 0.3, 1.5
"""How long a session stays after its program has ended."""
LIVES_ON_S = 2.0
MENDED_BY = {Trouble.LOGIN: "log it in", Trouble.CREDIT: "see to its account's credit"}
"""What a person has to do before an agent can go on: to start it again would be for nothing."""
RESTARTS = "restarts"
"""Remembered: when the fleet restarted agents."""


@dataclass(frozen=True)
class StartReport:
    """How a session came to be."""

    event: type[SessionStarted] = AgentSpawned
    cause: str | None = None
    more: Mapping[str, Any] | None = None
    """What the event says beside the facts of the session."""


class SessionKeeper:
    def __init__(
        self,
        tmux: Tmux,
        log_of: Callable[[str], Path],
        last_conversation: Callable[[SpawnerView, str, AgentMemory], str | None],
        own: Mapping[str, str] | None = None,
        log: Log | None = None,
    ) -> None:
        self._tmux = tmux
        self._log = log
        self._log_of = log_of
        self._last_conversation = last_conversation
        self._own = dict(os.environ if own is None else own)  # a copy: asking the real one decodes it each time
        self._stagger = Stagger()
        self._dead_since: dict[str, float] = {}
        """When the program of a spawn was first seen to have ended."""

    # --- keeping what is wanted ---

    def keep(self, view: SpawnerView, agent: str) -> None:
        """Do what the agent needs now."""
        known = view.known(agent)
        pane = view.panes.get(agent)
        if known.alive and pane is not None and not pane.dead and pane.spawn == known.spawn:
            if view.server not in (None, known.server):
                view.remember(agent, replace(known, server=view.server))  # an earlier version kept none
            return  # as nearly always; there may be hundreds
        rules, park = self.rules(view, agent), parked(view, agent)
        until = park.until if park is not None else None
        for action in decide(known, view.wish(agent), pane, rules, view.now, view.server, until):
            match action:
                case ClaimSession(found):
                    self._claim(view, agent, found, known)
                case ClearDeadPane(dead):
                    if self._lies_too_short(view, dead):
                        return
                    if known.buried != dead.spawn:
                        # Told before the session, which alone knows how it ended, is cleared away.
                        screen = self._tell_exit(view, agent, dead)
                        held = self._cannot_go_on(view, agent, screen)
                        view.remember(agent, replace(known, buried=dead.spawn, held=held))
                        view.turn.look_again_at(view.turn.now)
                        return
                    self._clear_away(dead)
                    view.panes.pop(agent, None)
                    self._dead_since.pop(dead.spawn or "", None)
                case NoteDeath(known):
                    # In the journal before a new one is started, whose id and conversation follow from it.
                    view.remember(agent, replace(known, spawns=known.spawns + 1))
                    view.turn.look_again_at(view.turn.now)
                    return
                case Start():
                    self._start_by_itself(view, agent, known, action)
                case ReportGaveUp(reason):
                    view.remember(agent, replace(known, gave_up=True))
                    view.turn.emit(AgentGaveUp(agent=agent, reason=reason))
                case LookAgain(when):
                    view.turn.look_again_at(view.turn.now.fromtimestamp(when, view.turn.now.tzinfo))

    def rules(self, view: SpawnerView, agent: str) -> KeepRules:
        if agent not in view.fleet.agents or view.known(agent).found:
            return KeepRules(view.fleet.declared.defaults.restart, once=True)
        declared = view.fleet.agents[agent]
        resume = (view.fleet.backends.get(view.backend_name(agent)) or Backend()).resume
        return KeepRules(declared.restart, declared.kind is AgentKind.TASK, resume.refused_within_s, resume.otherwise)

    def _start_by_itself(self, view: SpawnerView, agent: str, known: AgentMemory, start: Start) -> None:
        counts = start.replaces and not start.blameless
        if counts and (waits := self._fleet_limit(view, agent, known)):
            view.turn.look_again_at(waits)
            return
        if waits := self.waits_for_turn(view):
            view.turn.look_again_at(waits)
            return
        launch = self._next_launch(view, agent, known, fresh=start.fresh)
        if start.replaces and known.pid:
            end_left_over(known.pid, start.replaces)
        pane = self.launch(view, launch, next_spawn(view, agent, known))
        if start.replaces is None:
            self.tell_running(view, agent, pane, launch, known, StartReport())
            return
        if counts:
            restarts = [*(view.turn.recall(RESTARTS) or []), view.now]
            view.turn.remember(RESTARTS, fleet_worth_remembering(view.fleet.declared.restarts, restarts))
        more = {"replaces": known.spawn, "reason": start.reason, "attempt": start.attempt}
        self.tell_running(view, agent, pane, launch, known, StartReport(AgentRestarted, more=more))

    def _fleet_limit(self, view: SpawnerView, agent: str, known: AgentMemory) -> Any:
        """When a restart has to wait for the fleet's sake; after too many for too long, the agent is given up."""
        agents = len(view.fleet.agents)
        match fleet_restart(view.fleet.declared.restarts, agents, view.turn.recall(RESTARTS) or [], view.now):
            case RestartAt(when, _) if when > view.now:
                return view.turn.now.fromtimestamp(when, view.turn.now.tzinfo)
            case GiveUp(reason):
                view.remember(agent, replace(known, gave_up=True))
                view.turn.emit(AgentGaveUp(agent=agent, reason=reason))
                return view.turn.now
        return None

    def _claim(self, view: SpawnerView, agent: str, pane: Pane, known: AgentMemory) -> None:
        """Tell of a session that runs though it was never told: this process died after it was started."""
        launch = None
        if pane.spawn == next_spawn(view, agent, known):
            launch = self._next_launch(view, agent, known, fresh=known.refused == known.spawn)
        begun = StartReport(AgentRestarted, more=_found(known)) if known.spawn else StartReport()
        self.tell_running(view, agent, pane, launch, replace(known, gave_up=False), begun)

    def _next_launch(self, view: SpawnerView, agent: str, known: AgentMemory, *, fresh: bool = False) -> Launch:
        """What the agent is started with when nobody asks for it: the same for the same memory."""
        order = LaunchOverrides(**known.order)
        resume = None if fresh else self.conversation(view, agent, known)
        return plan(view.fleet, agent, next_spawn(view, agent, known), self._own, order, resume)

    def conversation(self, view: SpawnerView, agent: str, known: AgentMemory) -> ResumeTarget | None:
        """What a new session should take up again."""
        if known.spawn is None or not view.fleet.agents[agent].resume:
            return None
        name = self.next_backend(view, agent, known)
        if name not in view.fleet.backends or known.backend not in ("", name):
            return None  # what another program has written is nothing to this one
        if (conversation := self._last_conversation(view, agent, known)) is not None:
            return ResumeTarget(conversation)
        if known.conversation is not None:
            return None  # it was never begun, or is gone
        workspace = workspace_of(view.fleet, agent, LaunchOverrides(**known.order))
        if view.shares_workspace(agent, name, workspace):
            return None  # the newest conversation there may be another agent's
        newest = ResumeTarget()
        return newest if can_resume(view.fleet.backends[name], newest) else None

    def next_backend(self, view: SpawnerView, agent: str, known: AgentMemory) -> str:
        """What the agent is started with next; what runs may still be something else."""
        return known.order.get("backend") or view.fleet.agents[agent].backend

    # --- what commands use as well ---

    def plan(
        self, view: SpawnerView, agent: str, spawn: str, order: LaunchOverrides, resume: ResumeTarget | None
    ) -> Launch:
        return plan(view.fleet, agent, spawn, self._own, order, resume)

    def waits_for_turn(self, view: SpawnerView) -> Any:
        """When the next start may be, if not now: many at once are spread out."""
        due = self._stagger.due(view.fleet.declared.start, view.now)
        return view.turn.now.fromtimestamp(due, view.turn.now.tzinfo) if due > view.now else None

    def is_ready(self, view: SpawnerView, pane: Pane, backend: Backend) -> bool:
        """Whether the agent shows its input box; one whose box is not known is taken to be, if it lives on a little."""
        if backend.screen.box is None:
            return view.now - view.known(pane.agent or "").started > LIVES_ON_S
        screen = self._tmux.screens([pane.pane_id], styled=True).get(pane.pane_id, "")
        return read_screen(backend, screen).box is not None

    def launch(self, view: SpawnerView, order: Launch, spawn: str) -> Pane:
        if order.prompt_file is not None:
            make_directory(order.prompt_file.parent)
            write(order.prompt_file, order.prompt)
        order = self._with_hooks(view, order)
        env = {**order.env, "MUSTER_AGENT": order.agent, "MUSTER_SPAWN": spawn, "MUSTER_FLEET": str(view.fleet.path)}
        try:
            pane = self._tmux.start(
                session=order.agent,
                argv=order.argv,
                cwd=order.workspace,
                env=env,
                unset=to_hide(self._tmux.variables(), env),
                agent=order.agent,
                spawn=spawn,
                fleet=view.fleet.stamp,
                width=view.fleet.declared.tmux.width,
                height=view.fleet.declared.tmux.height,
                log=self._log_of(order.agent),
            )
        except ValueError as error:
            raise CannotStart(f"agent {order.agent!r} can't be started as it is declared: {error}") from error
        self._stagger.started(view.fleet.declared.start, view.now)
        view.panes[order.agent] = pane
        return pane

    def _with_hooks(self, view: SpawnerView, order: Launch) -> Launch:
        """Make what the agent's hooks rely on. Where that fails it is started all the same, without them."""
        reason = order.hooks.withheld
        try:
            order.hooks.lay_out(view.fleet.hooks)
        except (OSError, ValueError, MusterError) as error:
            reason = str(error)
            try:
                argv, env = order.hooks.taken_back(order.argv, order.env)
            except ValueError as fault:
                raise CannotStart(f"agent {order.agent!r} can't be started without hooks ({error}): {fault}") from error
            order = replace(order, argv=argv, env=env)
        if reason and self._log is not None:
            self._log.info("started an agent without hooks", agent=order.agent, reason=reason)
        return order

    def bury(self, view: SpawnerView, agent: str, pane: Pane) -> None:
        """Tell how the program in a dead pane ended, and clear the session away for a new one."""
        if view.known(agent).buried != pane.spawn:
            self._tell_exit(view, agent, pane)
        self._clear_away(pane)
        view.panes.pop(agent, None)

    def _clear_away(self, pane: Pane) -> None:
        """Make room for a new session. A pane that people keep though its program has ended is theirs again."""
        if pane.pane_only:
            self._tmux.unstamp(pane.target, spawn=pane.spawn)
        else:
            self._tmux.kill(pane.target, spawn=pane.spawn)

    def _tell_exit(self, view: SpawnerView, agent: str, pane: Pane) -> str:
        """Tell it, and give what the program left on its screen where it did not end well."""
        screen = self._tmux.screens([pane.pane_id], styled=True).get(pane.pane_id, "") if pane.dead_status else ""
        words = last_words(unstyle(screen)[0])
        view.turn.emit(
            AgentExited(agent=agent, spawn=pane.spawn or "unknown", exit_status=pane.dead_status, last_words=words)
        )
        return screen

    def _cannot_go_on(self, view: SpawnerView, agent: str, screen: str) -> str:
        """Why a program that has ended would only end again, by what it left on its screen; empty where it may do."""
        if agent not in view.fleet.agents or view.backend_name(agent) not in view.fleet.backends:
            return ""
        seen = read_signs(view.backend(agent), screen) if screen else None
        if seen is None or seen.trouble not in MENDED_BY:
            return ""
        return f"its program ended: {seen.why}; {MENDED_BY[seen.trouble]}, then start it again"

    def tell_running(
        self, view: SpawnerView, agent: str, pane: Pane, launch: Launch | None, known: AgentMemory, begun: StartReport
    ) -> None:
        """Say that a session is there, and remember it."""
        conversation = launch.conversation if launch else known.conversation
        facts: dict[str, Any] = {
            "agent": agent,
            "spawn": pane.spawn,
            "backend": launch.backend if launch else known.backend or view.backend_name(agent),
            "workspace": str(launch.workspace) if launch else pane.path,
            "session": pane.session,
            "pane": pane.pane_id,
            "pid": pane.pid,
            "command": PurePath(launch.argv[0]).name if launch else pane.command,
            "conversation": conversation,
            "role": view.fleet.agents[agent].role if agent in view.fleet.agents else "",
        }
        view.turn.emit(begun.event(**facts, **(begun.more or {})), cause=begun.cause)
        view.remember(
            agent,
            replace(
                known,
                spawn=pane.spawn,
                spawns=known.spawns + 1,
                alive=True,
                started=view.now,
                conversation=conversation,
                workspace=facts["workspace"],
                backend=facts["backend"],
                pid=pane.pid,
                pane=pane.pane_id,
                adopted=launch is None and known.adopted,
                found=launch is None and known.found,
                piped_elsewhere=launch is None and known.piped_elsewhere,
                server=self._tmux.server or "",
                lost=False,
                ended_for="",
                held="",
                resumed=bool(launch and launch.resumed),
                prompt=launch.paste if launch else "",
            ),
        )

    def settle(self, view: SpawnerView, agent: str, pane_id: str) -> None:
        """Write down which pane is the agent's in a session that an earlier version stamped."""
        shown = view.panes[agent]
        if (own := self._tmux.own(shown.session_id, pane_id, spawn=shown.spawn or "")) is not None:
            view.panes[agent] = own
        elif not self.follow(view, agent):
            self.let_go(view, agent, view.panes.pop(agent))

    def follow(self, view: SpawnerView, agent: str) -> bool:
        """Stay with an agent whose pane a person has moved into another session: from then on only the pane is its own.

        False if it is nowhere in this server. What an agent's session has become otherwise is people's.
        """
        known, before = view.known(agent), view.panes.get(agent)
        if known.spawn is None or view.server is None or known.server not in ("", view.server):
            return False
        # Two agents' panes may have changed places: then each stands for the other.
        stand_ins = [pane for pane in view.panes.values() if pane.own not in (None, pane.pane_id)]
        theirs = [pane for pane in view.others if not (pane.fleet or pane.left)]
        found = [pane for pane in (*theirs, *stand_ins) if (pane.pane_id, pane.pid) == (known.pane, known.pid)]
        if not found or (before is None and (known.adopted or found[0].session == agent)):
            return False
        stamps = {"agent": agent, "spawn": known.spawn, "fleet": view.fleet.stamp}
        stamped = self._tmux.stamp(found[0].session, **stamps, pane_id=known.pane)
        if stamped is None:
            return False
        others = [pane for pane in view.others if pane.pane_id != known.pane]
        if before is not None:
            name = left_name(before)
            try:
                self._tmux.unstamp(before.target, spawn=before.spawn, rename=name)
            except WrongSpawn:  # in every pane of it is another agent, with stamps of its own
                self._tmux.unstamp(before.target, rename=name)
            others.append(replace(before, agent=None, spawn=None, fleet=None, own=None, session=name or before.session))
        view.panes[agent] = stamped
        view.others = others
        return True

    def let_go(self, view: SpawnerView, agent: str, pane: Pane) -> None:
        """The agent's own pane was closed, and somebody else's is left in its session: that one is theirs."""
        self._tmux.unstamp(pane.target, spawn=pane.spawn, rename=left_name(pane))
        view.turn.emit(AgentExited(agent=agent, spawn=pane.spawn or "unknown", last_words="its pane was closed"))

    def _lies_too_short(self, view: SpawnerView, pane: Pane) -> bool:
        """A dead pane is left for a moment: tmux may not know its status yet, and others want to see it."""
        since = self._dead_since.setdefault(pane.spawn or "", view.now)
        waits_s = LIES_S if pane.dead_status is not None else LIES_AT_MOST_S
        if view.now < since + waits_s:
            view.turn.look_again_at(view.turn.now + timedelta(seconds=waits_s))
            return True
        return False


def next_spawn(view: SpawnerView, agent: str, known: AgentMemory) -> str:
    """The id of the session that is started next without being asked for. After a crash it is recognised by it."""
    seed = view.turn.recall(SEED)
    return hashlib.sha256(f"{seed}:{agent}:{known.spawns}".encode()).hexdigest()[:19]


def last_words(screen: str) -> str:
    """The last line that a program wrote, in which it often says why it ended."""
    lines = [" ".join(line.split()) for line in screen.splitlines() if line.strip()]
    return re.sub(r"[\x00-\x1f\x7f]", "", lines[-1])[:300] if lines else ""


def _found(known: AgentMemory) -> dict[str, Any]:
    return {"replaces": known.spawn, "reason": "found running", "attempt": 0}
