"""Takes loops through their phases: begins them, gives agents their parts, and ends the loop after the last one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from registry import AgentRecord
from services.handoff.loops import phase_actions as errands
from services.handoff.loops import phases as courses
from services.handoff.loops.branch_files import read_status
from services.handoff.loops.phase_actions import ActionKind, AgentSituation, PhaseAction
from services.handoff.loops.phases import Change, LoopFinished, PhaseBegun, PhaseFinished, PhaseProgress, PhaseRules
from services.handoff.loops.templates import done_marker, names_its_phase, status_path
from services.handoff.memory import LoopTurn, Replies
from services.handoff.messages import MessageSender
from services.handoff.prompts import CannotKickOff, prompt_of
from shared.contract.commands import Command, Restart, Spawn, Stop
from shared.contract.events.loops import (
    KickedOff,
    KickoffFailed,
    LoopEvent,
    PhaseAdvanced,
    PhaseDone,
    SequenceCompleted,
)
from shared.contract.states import Activity
from shared.errors import MusterError
from shared.fleet import AgentKind

BUSY = (Activity.WORKING, Activity.STARTING, Activity.NEEDS_APPROVAL)
LOOKS_EVERY = timedelta(seconds=5)
"""While something is not done. The spawner's own news wake us besides."""
ASKS_FOR = timedelta(days=1)
"""So long the spawner may be away."""


def rules_of(it: LoopTurn) -> PhaseRules:
    """By what a loop's course is decided: its phases, and what its status files say."""
    seen = it.memory.seen(it.name)
    statuses: Mapping[str, str] = seen.statuses if seen is not None else {}

    def read(number: int) -> Sequence[str]:
        path = status_path(it.loop, number)
        return read_status(statuses.get(path, "") if path else "", done_marker(it.loop, number)).markers

    return PhaseRules(it.phases, read, by_name=names_its_phase(it.loop), advance=it.loop.advance)


def expected(it: LoopTurn) -> set[str]:
    """Who is about to be started for a phase: what is said to it now would be lost."""
    starts = [each for each in it.memory.errands(it.name) if each.what is ActionKind.START and not each.done]
    return {each.agent for each in starts if it.loop.enabled or each.asked}


class PhaseRunner:
    def __init__(self, replies: Replies, postman: MessageSender) -> None:
        self._replies = replies
        self._postman = postman

    def advance(self, it: LoopTurn) -> None:
        """Go on to where the branch says that the loop is. Not before the branch was seen."""
        if it.memory.seen(it.name) is not None and it.loop.phases:
            self.go(it, *courses.decide(it.memory.course(it.name), rules_of(it), it.now))

    def go(self, it: LoopTurn, course: PhaseProgress, changes: Sequence[Change]) -> None:
        """Tell what changed, and forget what is over by that."""
        for change in changes:
            it.turn.emit(_event(it, change))
        it.memory.keep_course(it.name, courses.placed(course, it.phases))
        if any(isinstance(change, PhaseBegun | LoopFinished) for change in changes):
            it.memory.keep_errands(it.name, [])
            for agent in it.players():
                self._postman.forget(it.turn, agent, it.name)  # what was said in the phase before is over

    # --- what agents have to do with it ---

    def serve(self, it: LoopTurn, records: Mapping[str, AgentRecord]) -> None:
        """Go one step on with what the phase asks of agents."""
        course = it.memory.course(it.name)
        if not course.number or not it.loop.phases:
            return
        after: list[PhaseAction] = []
        for errand in _wanted(it, course):
            record = records.get(errand.agent)
            running = record if record is not None and record.is_running else None
            seen = AgentSituation(
                now=it.now,
                is_busy=running is not None and running.activity in BUSY,
                is_limited=running is not None and running.limit is not None,
                grace_s=it.loop.grace_s,
                others_done=errand.what is not ActionKind.RUN or all(each.done for each in after),
                reply=self._replies.to(errand.asked),
            )
            after.append(self._meet(it, self._step(it, errand, seen), running))
        it.memory.keep_errands(it.name, after)
        if not all(each.done for each in after):
            it.turn.look_again_at(it.turn.now + LOOKS_EVERY)

    def _step(self, it: LoopTurn, errand: PhaseAction, seen: AgentSituation) -> PhaseAction:
        step = errands.decide(errand, seen)
        if step.act:
            try:
                return self._act(it, errand)
            except MusterError as error:
                step = errands.failed(errands.asked(errand, "", seen.now), str(error), seen.now)
        about = {"loop": it.name, "phase": errand.phase, "number": errand.number, "agent": errand.agent}
        role = errand.roles[0] if errand.roles else errand.what.value
        if step.failure:
            it.turn.emit(KickoffFailed(**about, role=role, reason=step.failure))
        if step.succeeded and errand.what is ActionKind.START:
            it.turn.emit(KickedOff(**about, role=role, model=_model(it, errand)))
        if step.look_at is not None:
            it.turn.look_again_at(datetime.fromtimestamp(step.look_at, UTC))
        return step.after

    def _meet(self, it: LoopTurn, errand: PhaseAction, running: AgentRecord | None) -> PhaseAction:
        """See whether its session is the one that was given its part; one that a person started is told."""
        spawn = running.spawn if running is not None else None
        conversation = running.conversation if running is not None else None
        if errands.is_stranger(errand, spawn, conversation):
            try:
                self._postman.put(it.turn, errand.agent, it.name, prompt_of(it, errand), it.loop.when)
            except CannotKickOff as error:
                it.turn.degrade(str(error))  # and it comes again
                return errand
        return errands.met(errand, spawn, conversation)

    def _act(self, it: LoopTurn, errand: PhaseAction) -> PhaseAction:
        if errand.what is ActionKind.TELL:
            self._postman.put(it.turn, errand.agent, it.name, prompt_of(it, errand), it.loop.when)
            return replace(errand, done=True)
        asked = it.turn.send_command(_command(it, errand), f"loop {it.name}, phase {errand.number}")
        return errands.asked(errand, asked, it.now)


def _event(it: LoopTurn, change: Change) -> LoopEvent:
    count = len(it.loop.phases)
    match change:
        case PhaseBegun(number, phase, was, reason):
            return PhaseAdvanced(loop=it.name, phase=phase, number=number, phases=count, was=was, reason=reason)
        case PhaseFinished(number, phase, reason):
            return PhaseDone(loop=it.name, phase=phase, number=number, reason=reason)
        case LoopFinished(reason):
            return SequenceCompleted(loop=it.name, phases=count, on_complete=it.loop.on_complete, reason=reason)


def _wanted(it: LoopTurn, course: PhaseProgress) -> list[PhaseAction]:
    """What the phase asks of each agent: as far as it was begun, as it was; and for who plays since, anew."""
    known = it.memory.errands(it.name)
    begun = {(each.what, each.agent): each for each in known if each.since == course.since}
    wanted: list[PhaseAction] = []

    def want(what: ActionKind, agent: str, roles: tuple[str, ...] = ()) -> None:
        new = PhaseAction(what, agent, roles, course.number, course.phase, course.since, course.at_once)
        found = begun.get((what, agent), new)
        # The phase may have another number or name by now.
        wanted.append(replace(found, number=course.number, phase=course.phase, roles=roles))

    if course.complete:
        for agent in it.players(AgentKind.LOOP):
            want(ActionKind.STOP, agent)
        if it.loop.on_complete is not None and it.loop.on_complete in it.fleet.agents:
            want(ActionKind.RUN, it.loop.on_complete)
        return wanted
    for errand in known:  # who played until the fleet file gave its role to another; who is taken out is not ended
        played = errand.since == course.since and errand.what is not ActionKind.TELL
        if played and errand.agent in it.fleet.agents and errand.agent not in it.players():
            want(ActionKind.STOP, errand.agent)
    for agent in it.players():
        roles = tuple(role for role, player in it.loop.roles.items() if player == agent)
        want(ActionKind.START if it.fleet.agents[agent].kind is AgentKind.LOOP else ActionKind.TELL, agent, roles)
    return wanted


def _command(it: LoopTurn, errand: PhaseAction) -> Command:
    agent, expires = errand.agent, it.turn.now + ASKS_FOR
    if errand.what is ActionKind.STOP:
        return Stop(agent=agent, expires=expires)
    if errand.what is ActionKind.RUN:
        return Spawn(agent=agent, expires=expires)
    return Restart(agent=agent, fresh=True, prompt=prompt_of(it, errand), model=_model(it, errand), expires=expires)


def _model(it: LoopTurn, errand: PhaseAction) -> str | None:
    models = it.loop.phases[errand.number - 1].models
    return next((models[role] for role in errand.roles if role in models), None)
