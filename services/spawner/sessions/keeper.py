"""Keeping agents as people want them: carries out what `decision` says, and publishes it in the same turn."""

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import PurePath
from typing import Any

from services.spawner.sessions.conversations import ConversationRecords
from services.spawner.sessions.decision import (
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
from services.spawner.sessions.light_starts import LOOKED_AT_EVERY_S, RecentStarts
from services.spawner.sessions.memory import (
    FLEET_RESTARTS,
    SEED,
    AgentMemory,
    Exited,
    RefusedToResume,
    Running,
    SessionFacts,
)
from services.spawner.sessions.parking import parked
from services.spawner.sessions.restarts import GiveUp, RestartAt, Stagger, fleet_restart, fleet_worth_remembering
from services.spawner.sessions.termination import end_left_over
from services.spawner.view import SpawnerView
from shared.contract.events.lifecycle import AgentExited, AgentGaveUp, AgentRestarted, AgentSpawned, SessionStarted
from shared.contract.states import Trouble
from shared.errors import MusterError
from shared.fleet import AgentKind, Backend
from shared.screen import read_screen, read_signs, unstyle
from shared.system.files import make_directory, write
from shared.system.log import Log
from shared.system.tmux import LogPipe, Pane, Tmux

STARTS_IN_A_TURN = 10
"""More wait for the next turn, which follows at once: what was started is published first, and the broker is heard."""
DEAD_PANE_STAYS_S = 0.3
"""A dead pane stays so long, so that other services can see it too."""
EXIT_STATUS_WITHIN_S = 1.5
"""tmux may not know the exit status at once. After this time it never will."""
UNREADABLE_READY_AFTER_S = 2.0
"""An agent whose input box can't be recognised counts as ready when it has run for so long."""
PERSON_MUST = {Trouble.LOGIN: "log it in", Trouble.CREDIT: "see to its account's credit"}
"""What a person has to do after some troubles; until then a restart would fail again."""


@dataclass(frozen=True)
class StartReport:
    """Which event publishes a new session."""

    event: type[SessionStarted] = AgentSpawned
    cause: str | None = None
    more: Mapping[str, Any] | None = None
    """Fields of the event beside the facts of the session."""


class SessionKeeper:
    def __init__(
        self,
        tmux: Tmux,
        log_of: Callable[[str], LogPipe],
        records: ConversationRecords,
        own: Mapping[str, str] | None = None,
        log: Log | None = None,
    ) -> None:
        self._tmux = tmux
        self._log = log
        self._log_of = log_of
        self._records = records
        self._own = dict(os.environ if own is None else own)  # a copy: the real one decodes each value on each read
        self._stagger = Stagger()
        self._recent_starts = RecentStarts()
        self._dead_since: dict[str, float] = {}
        """When the program of a spawn was first seen to have ended, by the steady clock."""

    # --- keeping what is wanted ---

    def keep(self, view: SpawnerView, agent: str) -> None:
        """Do what the agent needs now, action by action.

        An action whose result must be in the journal, or seen by others, before the next one is the last of this turn:
        the next turn decides anew.
        """
        known = view.known(agent)
        pane = view.panes.get(agent)
        if isinstance(known.phase, Running) and pane is not None and not pane.dead and pane.spawn == known.spawn:
            if view.server not in (None, known.session.server):  # not known while a server's first session starts
                view.remember(agent, known.with_session(server=view.server))
            return  # the usual case, for hundreds of agents
        park = parked(view, agent)
        until = park.until if park is not None else None
        for action in decide(known, view.wish(agent), pane, self.rules(view, agent), view.now, view.server, until):
            match action:
                case ClaimSession(found):
                    self._claim(view, agent, found, known)
                case ClearDeadPane(dead):
                    if not self._clear_once_published(view, agent, dead, known):
                        return
                case NoteDeath(after):
                    self._note_death(view, agent, after)
                    return
                case Start():
                    self._start(view, agent, known, action)
                case ReportGaveUp(reason):
                    self._give_up(view, agent, known, reason)
                case LookAgain(when):
                    view.turn.look_again_at(view.time(when))

    def rules(self, view: SpawnerView, agent: str) -> KeepRules:
        if agent not in view.fleet.agents or view.known(agent).is_found:
            return KeepRules(view.fleet.declared.defaults.restart, once=True)
        declared = view.fleet.agents[agent]
        resume = (view.fleet.backends.get(view.backend_name(agent)) or Backend()).resume
        return KeepRules(declared.restart, declared.kind is AgentKind.TASK, resume.refused_within_s, resume.otherwise)

    def _start(self, view: SpawnerView, agent: str, known: AgentMemory, start: Start) -> None:
        counts = start.replaces is not None and not start.blameless
        if later := (self._fleet_limit(view, agent, known) if counts else None) or self.start_delay(view):
            view.turn.look_again_at(later)
            return
        launch = self._next_launch(view, agent, known, fresh=start.fresh)
        if start.replaces and known.session.pid:
            end_left_over([(known.session.pid, start.replaces)])
        pane = self.launch(view, launch, next_spawn(view, agent, known))
        if counts:
            restarts = [*(view.turn.memory.find(FLEET_RESTARTS) or []), view.now]
            view.turn.memory.put(FLEET_RESTARTS, fleet_worth_remembering(view.fleet.declared.restarts, restarts))
        more = {"replaces": known.spawn, "reason": start.reason, "attempt": start.attempt}
        report = StartReport() if start.replaces is None else StartReport(AgentRestarted, more=more)
        self.publish_running(view, agent, pane, launch, known, report)

    def _clear_once_published(self, view: SpawnerView, agent: str, dead: Pane, known: AgentMemory) -> bool:
        """Whether the pane was cleared. Only it knows how its program ended: that is published in a turn before."""
        if self._must_stay(view, dead):
            return False
        if not _exit_is_published(known, dead):
            needs_person = self._needs_person(view, agent, self._publish_exit(view, agent, dead))
            phase = Exited(dead.spawn or "", needs_person, after_refusal=isinstance(known.phase, RefusedToResume))
            view.remember(agent, replace(known, phase=phase))
            view.turn.look_again_at(view.turn.now)
            return False
        self.clear_dead_pane(view, agent, dead)
        return True

    def _note_death(self, view: SpawnerView, agent: str, after: AgentMemory) -> None:
        """In the journal before the next session starts: that one's id and conversation follow from it."""
        view.remember(agent, replace(after, spawns=after.spawns + 1))
        view.turn.look_again_at(view.turn.now)

    def _fleet_limit(self, view: SpawnerView, agent: str, known: AgentMemory) -> datetime | None:
        """When the fleet's limit allows this restart, if not now. Above the sustained rate the agent is given up."""
        restarts = view.turn.memory.find(FLEET_RESTARTS) or []
        match fleet_restart(view.fleet.declared.restarts, len(view.fleet.agents), restarts, view.now):
            case RestartAt(when, _) if when > view.now:
                return view.time(when)
            case GiveUp(reason):
                self._give_up(view, agent, known, reason)
                return view.turn.now
        return None

    def _give_up(self, view: SpawnerView, agent: str, known: AgentMemory, reason: str) -> None:
        view.remember(agent, known.as_given_up())
        view.turn.emit(AgentGaveUp(agent=agent, reason=reason))

    def _claim(self, view: SpawnerView, agent: str, pane: Pane, known: AgentMemory) -> None:
        """Publish a session that runs and was never published: this process died after it started it."""
        launch = None
        if pane.spawn == next_spawn(view, agent, known):
            launch = self._next_launch(view, agent, known, fresh=isinstance(known.phase, RefusedToResume))
        more = {"replaces": known.spawn, "reason": "found running", "attempt": 0}
        report = StartReport(AgentRestarted, more=more) if known.spawn else StartReport()
        self.publish_running(view, agent, pane, launch, known, report)

    def _next_launch(self, view: SpawnerView, agent: str, known: AgentMemory, *, fresh: bool = False) -> Launch:
        """How the agent is started without being asked for: the same for the same memory."""
        overrides = LaunchOverrides(**known.overrides)
        resume = None if fresh else self.conversation(view, agent, known)
        return plan(view.fleet, agent, next_spawn(view, agent, known), self._own, overrides, resume)

    def conversation(self, view: SpawnerView, agent: str, known: AgentMemory) -> ResumeTarget | None:
        """The conversation that a new session should resume."""
        if known.spawn is None or not view.fleet.agents[agent].resume:
            return None
        name = self.next_backend(view, agent, known)
        if name not in view.fleet.backends or known.session.backend not in ("", name):
            return None  # another program's conversation
        if (conversation := self._records.conversation(view, agent, known)) is not None:
            return ResumeTarget(conversation)
        if known.session.conversation is not None:
            return None  # it was never begun, or is gone
        workspace = workspace_of(view.fleet, agent, LaunchOverrides(**known.overrides))
        if view.shares_workspace(agent, name, workspace):
            return None  # the newest conversation there may be another agent's
        if self._records.is_silent(view, agent):
            return None
        newest = ResumeTarget()
        return newest if can_resume(view.fleet.backends[name], newest) else None

    def next_backend(self, view: SpawnerView, agent: str, known: AgentMemory) -> str:
        """The backend of the next start; the running session may still have another."""
        return known.overrides.get("backend") or view.fleet.agents[agent].backend

    # --- used by commands too ---

    def plan(
        self, view: SpawnerView, agent: str, spawn: str, overrides: LaunchOverrides, resume: ResumeTarget | None
    ) -> Launch:
        return plan(view.fleet, agent, spawn, self._own, overrides, resume)

    def start_delay(self, view: SpawnerView) -> datetime | None:
        """When the next start is allowed, if not now: many starts are spread out, and only a few are in one turn."""
        if view.starts >= STARTS_IN_A_TURN:
            return view.turn.now
        settings, now = view.fleet.declared.start, view.turn.steady
        self._stagger.give_back(settings, self._recent_starts.count_light())
        wait_s = self._stagger.due(settings, now) - now
        if wait_s <= 0:
            return None
        wait_s = min(wait_s, LOOKED_AT_EVERY_S) if self._recent_starts.are_watched else wait_s
        return view.turn.now + timedelta(seconds=wait_s)

    def is_ready(self, view: SpawnerView, pane: Pane, backend: Backend) -> bool:
        """Whether the agent shows its input box."""
        if backend.screen.box is None:
            return view.now - view.known(pane.agent or "").session.started > UNREADABLE_READY_AFTER_S
        screen = self._tmux.screens([pane.pane_id], styled=True).get(pane.pane_id, "")
        return read_screen(backend, screen).box is not None

    def launch(self, view: SpawnerView, launch: Launch, spawn: str) -> Pane:
        if launch.prompt_file is not None:
            make_directory(launch.prompt_file.parent)
            write(launch.prompt_file, launch.prompt)
        launch = self._with_hooks(view, launch)
        env = {**launch.env, "MUSTER_AGENT": launch.agent, "MUSTER_SPAWN": spawn, "MUSTER_FLEET": str(view.fleet.path)}
        try:
            pane = self._tmux.start(
                session=launch.agent,
                argv=launch.argv,
                cwd=launch.workspace,
                env=env,
                unset=to_hide(self._variables(view), env),
                agent=launch.agent,
                spawn=spawn,
                fleet=view.fleet.stamp,
                width=view.fleet.declared.tmux.width,
                height=view.fleet.declared.tmux.height,
                log=self._log_of(launch.agent),
            )
        except ValueError as error:
            raise CannotStart(f"agent {launch.agent!r} can't be started as it is declared: {error}") from error
        self._stagger.started(view.fleet.declared.start, view.turn.steady)
        self._recent_starts.started(pane.pid)
        view.starts += 1
        view.panes[launch.agent] = pane
        return pane

    def _variables(self, view: SpawnerView) -> Set[str]:
        if view.variables is not None:
            return view.variables
        found = self._tmux.variables()
        if view.server is not None:  # a server that is started now may have others
            view.variables = found
        return found

    def _with_hooks(self, view: SpawnerView, launch: Launch) -> Launch:
        """Write the files that the agent's hooks need. If that fails, the agent starts without hooks."""
        reason = launch.hooks.withheld
        try:
            launch.hooks.lay_out(view.fleet.hooks)
        except (OSError, ValueError, MusterError) as error:
            reason = str(error)
            try:
                argv, env = launch.hooks.taken_back(launch.argv, launch.env)
            except ValueError as fault:
                raise CannotStart(
                    f"agent {launch.agent!r} can't be started without hooks ({error}): {fault}"
                ) from error
            launch = replace(launch, argv=argv, env=env)
        if reason and self._log is not None:
            self._log.info("started an agent without hooks", agent=launch.agent, reason=reason)
        return launch

    def clear_dead_pane(self, view: SpawnerView, agent: str, pane: Pane) -> None:
        """Publish how the program in a dead pane ended, and make room for a new session."""
        if not _exit_is_published(view.known(agent), pane):
            self._publish_exit(view, agent, pane)
        if pane.pane_only:  # people keep the pane though its program has ended: it is theirs again
            self._tmux.unstamp(pane.target, spawn=pane.spawn)
        else:
            self._tmux.kill(pane.target, spawn=pane.spawn)
        view.panes.pop(agent, None)
        self._dead_since.pop(pane.spawn or "", None)

    def _publish_exit(self, view: SpawnerView, agent: str, pane: Pane) -> str:
        """Returns what the program left on its screen, unless it ended well.

        tmux may never learn how it ended, and may lose what it wrote in its last milliseconds.
        """
        ended_well = pane.dead_status == 0
        screen = "" if ended_well else self._tmux.screens([pane.pane_id], styled=True).get(pane.pane_id, "")
        words = last_line(unstyle(screen)[0])
        view.turn.emit(
            AgentExited(agent=agent, spawn=pane.spawn or "unknown", exit_status=pane.dead_status, last_words=words)
        )
        return screen

    def _needs_person(self, view: SpawnerView, agent: str, screen: str) -> str:
        """Why a restart would fail again, by what the program left on its screen; empty if it may work."""
        if agent not in view.fleet.agents or view.backend_name(agent) not in view.fleet.backends:
            return ""
        seen = read_signs(view.backend(agent), screen) if screen else None
        if seen is None or seen.trouble not in PERSON_MUST:
            return ""
        return f"its program ended: {seen.why}; {PERSON_MUST[seen.trouble]}, then start it again"

    def _must_stay(self, view: SpawnerView, pane: Pane) -> bool:
        """Whether a dead pane is left for a moment."""
        since = self._dead_since.setdefault(pane.spawn or "", view.turn.steady)
        stays_s = DEAD_PANE_STAYS_S if pane.dead_status is not None else EXIT_STATUS_WITHIN_S
        if view.turn.steady < since + stays_s:
            view.turn.look_again_at(view.turn.now + timedelta(seconds=stays_s))
            return True
        return False

    def publish_running(
        self, view: SpawnerView, agent: str, pane: Pane, launch: Launch | None, known: AgentMemory, report: StartReport
    ) -> None:
        """Publish and remember a session. Without a launch it was not planned by us: what is known of it stays."""
        if launch is not None:
            session = SessionFacts(
                backend=launch.backend,
                workspace=str(launch.workspace),
                conversation=launch.conversation,
                resumed=launch.resumed,
                prompt=launch.paste,
            )
        else:
            backend = known.session.backend or view.backend_name(agent)
            session = replace(known.session, backend=backend, workspace=pane.path, resumed=False, prompt="")
        server = self._tmux.server or ""
        session = replace(session, spawn=pane.spawn, started=view.now, pid=pane.pid, pane=pane.pane_id, server=server)
        event = report.event(
            agent=agent,
            spawn=session.spawn,
            backend=session.backend,
            workspace=session.workspace,
            session=pane.session,
            pane=session.pane,
            pid=session.pid,
            command=PurePath(launch.argv[0]).name if launch else pane.command,
            conversation=session.conversation,
            role=view.fleet.agents[agent].role if agent in view.fleet.agents else "",
            **(report.more or {}),
        )
        view.turn.emit(event, cause=report.cause)
        view.remember(agent, replace(known, session=session, spawns=known.spawns + 1, phase=Running()))


def next_spawn(view: SpawnerView, agent: str, known: AgentMemory) -> str:
    """The spawn id of the next start that nobody asks for. After a crash the session is recognised by it."""
    seed = view.turn.memory.find(SEED)
    return hashlib.sha256(f"{seed}:{agent}:{known.spawns}".encode()).hexdigest()[:19]


def last_line(screen: str) -> str:
    """The last line that a program wrote, in which it often says why it ended."""
    lines = [" ".join(line.split()) for line in screen.splitlines() if line.strip()]
    return re.sub(r"[\x00-\x1f\x7f]", "", lines[-1])[:300] if lines else ""


def _exit_is_published(known: AgentMemory, pane: Pane) -> bool:
    if isinstance(known.phase, Exited):
        return known.phase.spawn == (pane.spawn or "")
    return known.spawn == pane.spawn and not isinstance(known.phase, Running)
