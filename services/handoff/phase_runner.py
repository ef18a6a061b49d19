"""Takes a loop through its phases: begins and ends them, and has agents started, prompted and stopped."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from registry import AgentRecord
from services.handoff.loop_turn import LoopTurn
from services.handoff.loops import phase_actions, phases
from services.handoff.loops.branch_files import read_status
from services.handoff.loops.phase_actions import ACTIONS, ActionKind, AgentSituation, PhaseAction
from services.handoff.loops.phases import (
    PROGRESS,
    Change,
    LoopFinished,
    PhaseBegun,
    PhaseFinished,
    PhaseProgress,
    PhaseRules,
)
from services.handoff.loops.templates import (
    KICKOFF,
    done_pattern,
    kickoff,
    names_its_phase,
    status_path,
    values_of,
)
from services.handoff.messages import forget_messages, queue_message
from shared.contract.commands import MAX_PAYLOAD, Command, Restart, Spawn, Stop
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
from shared.fleet import AgentKind, Fleet
from shared.fleet.fleet import BadPath
from shared.fleet.launch_needs import read_text

BUSY = (Activity.WORKING, Activity.STARTING, Activity.NEEDS_APPROVAL)
LOOKS_EVERY = timedelta(seconds=5)
"""While an action is not done. Events of the spawner wake us too."""
COMMAND_EXPIRES_AFTER = timedelta(days=1)
PROMPT_BYTES_AT_MOST = MAX_PAYLOAD // 2


class CannotKickOff(MusterError):
    """An agent's prompt for a phase can't be made."""


# --- phases ---


def rules_of(loop: LoopTurn) -> PhaseRules:
    """The loop's phases, and the done lines in its status files."""
    statuses = loop.branch.statuses if loop.branch is not None else {}

    def done_lines(number: int) -> Sequence[str]:
        path = status_path(loop.declared, number)
        return read_status(statuses.get(path, "") if path else "", done_pattern(loop.declared, number)).done_lines

    return PhaseRules(loop.phases, done_lines, names_its_phase(loop.declared), loop.declared.advance)


def advance(loop: LoopTurn) -> None:
    """Go on to the phase that the branch shows, once the branch was observed."""
    if loop.branch is not None and loop.declared.phases:
        change_phase(loop, *phases.decide(loop.progress, rules_of(loop), loop.now))


def change_phase(loop: LoopTurn, progress: PhaseProgress, changes: Sequence[Change]) -> None:
    """Report the changes, and forget the actions and messages of a phase that is over."""
    for change in changes:
        loop.turn.emit(_event(loop, change))
    loop.put(PROGRESS, phases.renumbered(progress, loop.phases))
    if any(isinstance(change, PhaseBegun | LoopFinished) for change in changes):
        loop.put(ACTIONS, ())
        for agent in loop.agents():
            forget_messages(loop.turn, agent, loop.name)


def _event(loop: LoopTurn, change: Change) -> LoopEvent:
    name, count = loop.name, len(loop.declared.phases)
    match change:
        case PhaseBegun(number, phase, was, reason):
            return PhaseAdvanced(loop=name, phase=phase, number=number, phases=count, was=was, reason=reason)
        case PhaseFinished(number, phase, reason):
            return PhaseDone(loop=name, phase=phase, number=number, reason=reason)
        case LoopFinished(reason):
            return SequenceCompleted(loop=name, phases=count, on_complete=loop.declared.on_complete, reason=reason)


# --- actions ---


def starting_agents(loop: LoopTurn) -> set[str]:
    """The agents that are about to be started for a phase: a message to their sessions of now would be lost."""
    starts = [action for action in loop.actions if action.kind is ActionKind.START and not action.done]
    return {action.agent for action in starts if loop.declared.enabled or action.command_id}


def run_actions(loop: LoopTurn, records: Mapping[str, AgentRecord]) -> None:
    """Take the next step of each action of the phase."""
    progress = loop.progress
    if not progress.number or not loop.declared.phases:
        return
    after: list[PhaseAction] = []
    for action in _wanted(loop, progress):
        record = records.get(action.agent)
        running = record if record is not None and record.is_running else None
        situation = AgentSituation(
            now=loop.now,
            is_busy=running is not None and running.activity in BUSY,
            is_limited=running is not None and running.limit is not None,
            grace_s=loop.declared.grace_s,
            others_done=action.kind is not ActionKind.RUN or all(each.done for each in after),
            reply=loop.turn.reply_for(action.command_id),
        )
        after.append(_check_session(loop, _step(loop, action, situation), running))
    loop.put(ACTIONS, tuple(after))
    if not all(action.done for action in after):
        loop.turn.look_again_at(loop.turn.now + LOOKS_EVERY)


def _wanted(loop: LoopTurn, progress: PhaseProgress) -> list[PhaseAction]:
    """The actions of the phase: those that were begun as they are, and new ones for agents that joined since."""
    begun = {(each.kind, each.agent): each for each in loop.actions if each.since == progress.since}
    wanted: list[PhaseAction] = []

    def want(kind: ActionKind, agent: str, roles: tuple[str, ...] = ()) -> None:
        new = PhaseAction(kind, agent, roles, progress.number, progress.phase, progress.since, progress.at_once)
        action = begun.get((kind, agent), new)
        # The fleet file may have given the phase another number or name.
        wanted.append(replace(action, number=progress.number, phase=progress.phase, roles=roles))

    if progress.complete:
        for agent in loop.agents(AgentKind.LOOP):
            want(ActionKind.STOP, agent)
        if loop.declared.on_complete is not None and loop.declared.on_complete in loop.fleet.agents:
            want(ActionKind.RUN, loop.declared.on_complete)
        return wanted
    for kind, agent in begun:  # an agent whose role went to another is stopped, unless it is no longer declared
        if kind is not ActionKind.TELL and agent in loop.fleet.agents and agent not in loop.agents():
            want(ActionKind.STOP, agent)
    for agent in loop.agents():
        roles = tuple(role for role, holder in loop.declared.roles.items() if holder == agent)
        is_own = loop.fleet.agents[agent].kind is AgentKind.LOOP
        want(ActionKind.START if is_own else ActionKind.TELL, agent, roles)
    return wanted


def _step(loop: LoopTurn, action: PhaseAction, situation: AgentSituation) -> PhaseAction:
    step = phase_actions.decide(action, situation)
    if step.act:
        try:
            return _act(loop, action)
        except MusterError as error:
            step = phase_actions.failed(phase_actions.asked(action, "", loop.now), str(error), loop.now)
    about = {"loop": loop.name, "phase": action.phase, "number": action.number, "agent": action.agent}
    role = action.roles[0] if action.roles else action.kind.value
    if step.failure:
        loop.turn.emit(KickoffFailed(**about, role=role, reason=step.failure))
    if step.succeeded and action.kind is ActionKind.START:
        loop.turn.emit(KickedOff(**about, role=role, model=_model(loop, action)))
    if step.look_at is not None:
        loop.turn.look_again_at(datetime.fromtimestamp(step.look_at, UTC))
    return step.after


def _act(loop: LoopTurn, action: PhaseAction) -> PhaseAction:
    if action.kind is ActionKind.TELL:
        queue_message(loop.turn, action.agent, loop.name, _prompt(loop, action), loop.declared.when)
        return replace(action, done=True)
    command_id = loop.turn.send_command(_command(loop, action), f"loop {loop.name}, phase {action.number}")
    return phase_actions.asked(action, command_id, loop.now)


def _command(loop: LoopTurn, action: PhaseAction) -> Command:
    agent, expires = action.agent, loop.turn.now + COMMAND_EXPIRES_AFTER
    if action.kind is ActionKind.STOP:
        return Stop(agent=agent, expires=expires)
    if action.kind is ActionKind.RUN:
        return Spawn(agent=agent, expires=expires)
    prompt, model = _prompt(loop, action), _model(loop, action)
    return Restart(agent=agent, fresh=True, prompt=prompt, model=model, expires=expires)


def _model(loop: LoopTurn, action: PhaseAction) -> str | None:
    models = loop.declared.phases[action.number - 1].models
    return next((models[role] for role in action.roles if role in models), None)


def _check_session(loop: LoopTurn, action: PhaseAction, running: AgentRecord | None) -> PhaseAction:
    """Send the phase's prompt to an agent that a person has started without it."""
    spawn = running.spawn if running is not None else None
    conversation = running.conversation if running is not None else None
    if phase_actions.lacks_prompt(action, spawn, conversation):
        try:
            queue_message(loop.turn, action.agent, loop.name, _prompt(loop, action), loop.declared.when)
        except CannotKickOff as error:
            loop.turn.degrade(str(error))
            return action  # unchanged: the next turn tries again
    return phase_actions.with_session(action, spawn, conversation)


# --- prompts: the templates are read each time, since people edit them ---


def _prompt(loop: LoopTurn, action: PhaseAction) -> str:
    """The prompt of a phase for one agent, or CannotKickOff."""
    declared, phase = loop.declared, loop.declared.phases[action.number - 1]
    path = phase.kickoff or declared.kickoff
    template = _read(loop.fleet, path, "kickoff") if path is not None else KICKOFF
    role_prompts = [
        _read(loop.fleet, path, f"role_prompts.{role}")
        for role, path in declared.role_prompts.items()
        if role in action.roles
    ]
    values = values_of(loop.name, declared, action.number)
    prompt = kickoff(template, role_prompts, {**values, "agent": action.agent, "role": ", ".join(action.roles)})
    limit = PROMPT_BYTES_AT_MOST
    if len(prompt.encode()) > limit:
        raise CannotKickOff(f"the prompt of phase {phase.name!r} has more than {limit} bytes; make it shorter")
    if not prompt:
        raise CannotKickOff(f"the kickoff of phase {phase.name!r} is empty; write what {action.agent} is to do")
    return prompt


def _read(fleet: Fleet, path: Path, key: str) -> str:
    try:
        return read_text(fleet.resolve(path))
    except (BadPath, OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CannotKickOff(f"the template {fleet.path.parent / path} (`{key}`) can't be read: {why}") from error
