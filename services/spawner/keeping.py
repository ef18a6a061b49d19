"""Keeping agents as people want them: starting, claiming, burying, and telling each of it in the same turn."""

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path, PurePath
from typing import Any

from services.spawner.decide import Bury, Claim, Known, LookAgain, NoteDeath, Rules, SayGaveUp, Start, decide
from services.spawner.endings import end_left_over
from services.spawner.environment import to_hide
from services.spawner.parking import parked
from services.spawner.restarts import GiveUp, RestartAt, fleet_restart, fleet_worth_remembering
from services.spawner.scene import SEED, Scene
from services.spawner.sessions import CannotStart, Conversation, Launch, Order, can_resume, plan, workspace_of
from services.spawner.stagger import Stagger
from shared.broker.private import make_directory, write
from shared.errors import MusterError
from shared.events import AgentExited, AgentGaveUp, AgentRestarted, AgentSpawned, Running
from shared.fleet import Backend, Kind
from shared.log import Log
from shared.screen import read_screen, read_signs, unstyle
from shared.states import Trouble
from shared.tmux import Pane, Tmux, WrongSpawn, left_name

LIES_S, LIES_AT_MOST_S = 0.3, 1.5
"""How long a session stays after its program has ended."""
LIVES_ON_S = 2.0
MENDED_BY = {Trouble.LOGIN: "log it in", Trouble.CREDIT: "see to its account's credit"}
"""What a person has to do before an agent can go on: to start it again would be for nothing."""
RESTARTS = "restarts"
"""Remembered: when the fleet restarted agents."""


@dataclass(frozen=True)
class Begun:
    """How a session came to be."""

    event: type[Running] = AgentSpawned
    cause: str | None = None
    more: Mapping[str, Any] | None = None
    """What the event says beside the facts of the session."""


class Keeper:
    def __init__(
        self,
        tmux: Tmux,
        log_of: Callable[[str], Path],
        last_conversation: Callable[[Scene, str, Known], str | None],
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

    def keep(self, scene: Scene, agent: str) -> None:
        """Do what the agent needs now."""
        known = scene.known(agent)
        pane = scene.panes.get(agent)
        if known.alive and pane is not None and not pane.dead and pane.spawn == known.spawn:
            if scene.server not in (None, known.server):
                scene.remember(agent, replace(known, server=scene.server))  # an earlier version kept none
            return  # as nearly always; there may be hundreds
        rules, park = self.rules(scene, agent), parked(scene, agent)
        until = park.until if park is not None else None
        for action in decide(known, scene.wish(agent), pane, rules, scene.now, scene.server, until):
            match action:
                case Claim(found):
                    self._claim(scene, agent, found, known)
                case Bury(dead):
                    if self._lies_too_short(scene, dead):
                        return
                    if known.buried != dead.spawn:
                        # Told before the session, which alone knows how it ended, is cleared away.
                        screen = self._tell_exit(scene, agent, dead)
                        held = self._cannot_go_on(scene, agent, screen)
                        scene.remember(agent, replace(known, buried=dead.spawn, held=held))
                        scene.turn.again_at(scene.turn.now)
                        return
                    self._clear_away(dead)
                    scene.panes.pop(agent, None)
                    self._dead_since.pop(dead.spawn or "", None)
                case NoteDeath(known):
                    # In the journal before a new one is started, whose id and conversation follow from it.
                    scene.remember(agent, replace(known, spawns=known.spawns + 1))
                    scene.turn.again_at(scene.turn.now)
                    return
                case Start():
                    self._start_by_itself(scene, agent, known, action)
                case SayGaveUp(reason):
                    scene.remember(agent, replace(known, gave_up=True))
                    scene.turn.tell(AgentGaveUp(agent=agent, reason=reason))
                case LookAgain(when):
                    scene.turn.again_at(scene.turn.now.fromtimestamp(when, scene.turn.now.tzinfo))

    def rules(self, scene: Scene, agent: str) -> Rules:
        if agent not in scene.fleet.agents or scene.known(agent).found:
            return Rules(scene.fleet.declared.defaults.restart, once=True)
        declared = scene.fleet.agents[agent]
        resume = (scene.fleet.backends.get(scene.backend_name(agent)) or Backend()).resume
        return Rules(declared.restart, declared.kind is Kind.TASK, resume.refused_within_s, resume.otherwise)

    def _start_by_itself(self, scene: Scene, agent: str, known: Known, start: Start) -> None:
        counts = start.replaces and not start.blameless
        if counts and (waits := self._fleet_limit(scene, agent, known)):
            scene.turn.again_at(waits)
            return
        if waits := self.waits_for_turn(scene):
            scene.turn.again_at(waits)
            return
        launch = self._next_launch(scene, agent, known, fresh=start.fresh)
        if start.replaces and known.pid:
            end_left_over(known.pid, start.replaces)
        pane = self.launch(scene, launch, next_spawn(scene, agent, known))
        if start.replaces is None:
            self.tell_running(scene, agent, pane, launch, known, Begun())
            return
        if counts:
            restarts = [*(scene.turn.recall(RESTARTS) or []), scene.now]
            scene.turn.remember(RESTARTS, fleet_worth_remembering(scene.fleet.declared.restarts, restarts))
        more = {"replaces": known.spawn, "reason": start.reason, "attempt": start.attempt}
        self.tell_running(scene, agent, pane, launch, known, Begun(AgentRestarted, more=more))

    def _fleet_limit(self, scene: Scene, agent: str, known: Known) -> Any:
        """When a restart has to wait for the fleet's sake; after too many for too long, the agent is given up."""
        agents = len(scene.fleet.agents)
        match fleet_restart(scene.fleet.declared.restarts, agents, scene.turn.recall(RESTARTS) or [], scene.now):
            case RestartAt(when, _) if when > scene.now:
                return scene.turn.now.fromtimestamp(when, scene.turn.now.tzinfo)
            case GiveUp(reason):
                scene.remember(agent, replace(known, gave_up=True))
                scene.turn.tell(AgentGaveUp(agent=agent, reason=reason))
                return scene.turn.now
        return None

    def _claim(self, scene: Scene, agent: str, pane: Pane, known: Known) -> None:
        """Tell of a session that runs though it was never told: this process died after it was started."""
        launch = None
        if pane.spawn == next_spawn(scene, agent, known):
            launch = self._next_launch(scene, agent, known, fresh=known.refused == known.spawn)
        begun = Begun(AgentRestarted, more=_found(known)) if known.spawn else Begun()
        self.tell_running(scene, agent, pane, launch, replace(known, gave_up=False), begun)

    def _next_launch(self, scene: Scene, agent: str, known: Known, *, fresh: bool = False) -> Launch:
        """What the agent is started with when nobody asks for it: the same for the same memory."""
        order = Order(**known.order)
        resume = None if fresh else self.conversation(scene, agent, known)
        return plan(scene.fleet, agent, next_spawn(scene, agent, known), self._own, order, resume)

    def conversation(self, scene: Scene, agent: str, known: Known) -> Conversation | None:
        """What a new session should take up again."""
        if known.spawn is None or not scene.fleet.agents[agent].resume:
            return None
        name = self.next_backend(scene, agent, known)
        if name not in scene.fleet.backends or known.backend not in ("", name):
            return None  # what another program has written is nothing to this one
        if (conversation := self._last_conversation(scene, agent, known)) is not None:
            return Conversation(conversation)
        if known.conversation is not None:
            return None  # it was never begun, or is gone
        workspace = workspace_of(scene.fleet, agent, Order(**known.order))
        if scene.shares_workspace(agent, name, workspace):
            return None  # the newest conversation there may be another agent's
        newest = Conversation()
        return newest if can_resume(scene.fleet.backends[name], newest) else None

    def next_backend(self, scene: Scene, agent: str, known: Known) -> str:
        """What the agent is started with next; what runs may still be something else."""
        return known.order.get("backend") or scene.fleet.agents[agent].backend

    # --- what commands use as well ---

    def plan(self, scene: Scene, agent: str, spawn: str, order: Order, resume: Conversation | None) -> Launch:
        return plan(scene.fleet, agent, spawn, self._own, order, resume)

    def waits_for_turn(self, scene: Scene) -> Any:
        """When the next start may be, if not now: many at once are spread out."""
        due = self._stagger.due(scene.fleet.declared.start, scene.now)
        return scene.turn.now.fromtimestamp(due, scene.turn.now.tzinfo) if due > scene.now else None

    def is_ready(self, scene: Scene, pane: Pane, backend: Backend) -> bool:
        """Whether the agent shows its input box; one whose box is not known is taken to be, if it lives on a little."""
        if backend.screen.box is None:
            return scene.now - scene.known(pane.agent or "").started > LIVES_ON_S
        screen = self._tmux.screens([pane.pane_id], styled=True).get(pane.pane_id, "")
        return read_screen(backend, screen).box is not None

    def launch(self, scene: Scene, order: Launch, spawn: str) -> Pane:
        if order.prompt_file is not None:
            make_directory(order.prompt_file.parent)
            write(order.prompt_file, order.prompt)
        order = self._with_hooks(scene, order)
        env = {**order.env, "MUSTER_AGENT": order.agent, "MUSTER_SPAWN": spawn, "MUSTER_FLEET": str(scene.fleet.path)}
        try:
            pane = self._tmux.start(
                session=order.agent,
                argv=order.argv,
                cwd=order.workspace,
                env=env,
                unset=to_hide(self._tmux.variables(), env),
                agent=order.agent,
                spawn=spawn,
                fleet=scene.fleet.stamp,
                width=scene.fleet.declared.tmux.width,
                height=scene.fleet.declared.tmux.height,
                log=self._log_of(order.agent),
            )
        except ValueError as error:
            raise CannotStart(f"agent {order.agent!r} can't be started as it is declared: {error}") from error
        self._stagger.started(scene.fleet.declared.start, scene.now)
        scene.panes[order.agent] = pane
        return pane

    def _with_hooks(self, scene: Scene, order: Launch) -> Launch:
        """Make what the agent's hooks rely on. Where that fails it is started all the same, without them."""
        reason = order.hooks.withheld
        try:
            order.hooks.lay_out(scene.fleet.hooks)
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

    def bury(self, scene: Scene, agent: str, pane: Pane) -> None:
        """Tell how the program in a dead pane ended, and clear the session away for a new one."""
        if scene.known(agent).buried != pane.spawn:
            self._tell_exit(scene, agent, pane)
        self._clear_away(pane)
        scene.panes.pop(agent, None)

    def _clear_away(self, pane: Pane) -> None:
        """Make room for a new session. A pane that people keep though its program has ended is theirs again."""
        if pane.pane_only:
            self._tmux.unstamp(pane.target, spawn=pane.spawn)
        else:
            self._tmux.kill(pane.target, spawn=pane.spawn)

    def _tell_exit(self, scene: Scene, agent: str, pane: Pane) -> str:
        """Tell it, and give what the program left on its screen where it did not end well."""
        screen = self._tmux.screens([pane.pane_id], styled=True).get(pane.pane_id, "") if pane.dead_status else ""
        words = last_words(unstyle(screen)[0])
        scene.turn.tell(
            AgentExited(agent=agent, spawn=pane.spawn or "unknown", exit_status=pane.dead_status, last_words=words)
        )
        return screen

    def _cannot_go_on(self, scene: Scene, agent: str, screen: str) -> str:
        """Why a program that has ended would only end again, by what it left on its screen; empty where it may do."""
        if agent not in scene.fleet.agents or scene.backend_name(agent) not in scene.fleet.backends:
            return ""
        seen = read_signs(scene.backend(agent), screen) if screen else None
        if seen is None or seen.trouble not in MENDED_BY:
            return ""
        return f"its program ended: {seen.why}; {MENDED_BY[seen.trouble]}, then start it again"

    def tell_running(
        self, scene: Scene, agent: str, pane: Pane, launch: Launch | None, known: Known, begun: Begun
    ) -> None:
        """Say that a session is there, and remember it."""
        conversation = launch.conversation if launch else known.conversation
        facts: dict[str, Any] = {
            "agent": agent,
            "spawn": pane.spawn,
            "backend": launch.backend if launch else known.backend or scene.backend_name(agent),
            "workspace": str(launch.workspace) if launch else pane.path,
            "session": pane.session,
            "pane": pane.pane_id,
            "pid": pane.pid,
            "command": PurePath(launch.argv[0]).name if launch else pane.command,
            "conversation": conversation,
            "role": scene.fleet.agents[agent].role if agent in scene.fleet.agents else "",
        }
        scene.turn.tell(begun.event(**facts, **(begun.more or {})), cause=begun.cause)
        scene.remember(
            agent,
            replace(
                known,
                spawn=pane.spawn,
                spawns=known.spawns + 1,
                alive=True,
                started=scene.now,
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

    def settle(self, scene: Scene, agent: str, pane_id: str) -> None:
        """Write down which pane is the agent's in a session that an earlier version stamped."""
        shown = scene.panes[agent]
        if (own := self._tmux.own(shown.session_id, pane_id, spawn=shown.spawn or "")) is not None:
            scene.panes[agent] = own
        elif not self.follow(scene, agent):
            self.let_go(scene, agent, scene.panes.pop(agent))

    def follow(self, scene: Scene, agent: str) -> bool:
        """Stay with an agent whose pane a person has moved into another session: from then on only the pane is its own.

        False if it is nowhere in this server. What an agent's session has become otherwise is people's.
        """
        known, before = scene.known(agent), scene.panes.get(agent)
        if known.spawn is None or scene.server is None or known.server not in ("", scene.server):
            return False
        # Two agents' panes may have changed places: then each stands for the other.
        stand_ins = [pane for pane in scene.panes.values() if pane.own not in (None, pane.pane_id)]
        theirs = [pane for pane in scene.others if not (pane.fleet or pane.left)]
        found = [pane for pane in (*theirs, *stand_ins) if (pane.pane_id, pane.pid) == (known.pane, known.pid)]
        if not found or (before is None and (known.adopted or found[0].session == agent)):
            return False
        stamps = {"agent": agent, "spawn": known.spawn, "fleet": scene.fleet.stamp}
        stamped = self._tmux.stamp(found[0].session, **stamps, pane_id=known.pane)
        if stamped is None:
            return False
        others = [pane for pane in scene.others if pane.pane_id != known.pane]
        if before is not None:
            name = left_name(before)
            try:
                self._tmux.unstamp(before.target, spawn=before.spawn, rename=name)
            except WrongSpawn:  # in every pane of it is another agent, with stamps of its own
                self._tmux.unstamp(before.target, rename=name)
            others.append(replace(before, agent=None, spawn=None, fleet=None, own=None, session=name or before.session))
        scene.panes[agent] = stamped
        scene.others = others
        return True

    def let_go(self, scene: Scene, agent: str, pane: Pane) -> None:
        """The agent's own pane was closed, and somebody else's is left in its session: that one is theirs."""
        self._tmux.unstamp(pane.target, spawn=pane.spawn, rename=left_name(pane))
        scene.turn.tell(AgentExited(agent=agent, spawn=pane.spawn or "unknown", last_words="its pane was closed"))

    def _lies_too_short(self, scene: Scene, pane: Pane) -> bool:
        """A dead pane is left for a moment: tmux may not know its status yet, and others want to see it."""
        since = self._dead_since.setdefault(pane.spawn or "", scene.now)
        waits_s = LIES_S if pane.dead_status is not None else LIES_AT_MOST_S
        if scene.now < since + waits_s:
            scene.turn.again_at(scene.turn.now + timedelta(seconds=waits_s))
            return True
        return False


def next_spawn(scene: Scene, agent: str, known: Known) -> str:
    """The id of the session that is started next without being asked for. After a crash it is recognised by it."""
    seed = scene.turn.recall(SEED)
    return hashlib.sha256(f"{seed}:{agent}:{known.spawns}".encode()).hexdigest()[:19]


def last_words(screen: str) -> str:
    """The last line that a program wrote, in which it often says why it ended."""
    lines = [" ".join(line.split()) for line in screen.splitlines() if line.strip()]
    return re.sub(r"[\x00-\x1f\x7f]", "", lines[-1])[:300] if lines else ""


def _found(known: Known) -> dict[str, Any]:
    return {"replaces": known.spawn, "reason": "found running", "attempt": 0}
