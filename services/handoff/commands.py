"""Answers `muster phase` and `muster poll`."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from services.handoff.loop_turn import LoopTurn
from services.handoff.loops import phases
from services.handoff.loops.phases import NoSuchPhase, PhaseProgress
from services.handoff.messages import mailbox_of
from services.handoff.phase_runner import change_phase, rules_of
from services.handoff.remotes.watcher import RemoteWatcher
from shared.contract.commands import PhaseNext, PhaseSet, PhaseShow, Poll
from shared.fleet import Fleet
from shared.fleet.faults import allowed
from shared.fleet.loops import shown_remote
from shared.runtime.turn import PendingCommand, Turn


def answer(
    turn: Turn, pending: PendingCommand, fleet: Fleet, loops: Mapping[str, LoopTurn], watcher: RemoteWatcher
) -> None:
    command = pending.command
    if not isinstance(command, PhaseShow | PhaseNext | PhaseSet | Poll):
        return
    if command.loop is not None and command.loop not in loops:
        said = f"there is no loop {command.loop!r} in {fleet.path.name}; {allowed(command.loop, sorted(loops))}"
        turn.reply(pending, said, code="unknown_loop")
        return
    chosen = [loops[command.loop]] if command.loop is not None else list(loops.values())
    match command:
        case PhaseShow():
            shown = {loop.name: _show(loop, watcher) for loop in chosen}
            turn.reply(pending, _summary(shown), loops=shown)
        case Poll():
            watched = [loop for loop in chosen if loop.address]
            addresses = sorted({loop.address for loop in watched})
            for address in addresses:
                watcher.ask_now(address)
            said = f"{len(addresses)} remotes are asked now" if addresses else "no loop is watched"
            turn.reply(pending, said, loops=[loop.name for loop in watched])
        case PhaseNext() | PhaseSet():
            _change_phase(turn, pending, command, [loop for loop in chosen if command.loop or loop.declared.phases])


def _change_phase(
    turn: Turn, pending: PendingCommand, command: PhaseNext | PhaseSet, candidates: list[LoopTurn]
) -> None:
    if len(candidates) != 1:
        names = [loop.name for loop in candidates]
        which = f"name one of them: {', '.join(names)}" if names else "no loop has phases"
        turn.reply(pending, f"{which}; the fleet file has {len(names)} loops with phases", code="refused")
        return
    (loop,) = candidates
    name, progress, rules, who = loop.name, loop.progress, rules_of(loop), command.by or "somebody"
    if not loop.declared.enabled:
        turn.reply(pending, f"the loop {name} is not enabled", code="refused")
        return
    try:
        if isinstance(command, PhaseSet):
            after, changes = phases.set_phase(progress, rules, command.phase, loop.now, who)
        else:
            after, changes = phases.next_phase(progress, rules, loop.now, who)
    except NoSuchPhase as error:
        turn.reply(pending, f"{name}: {error}", code="refused")
        return
    change_phase(loop, after, changes)
    said = f"the loop {name} is complete" if after.complete else f"{name}: phase {after.number}, {after.phase}, begins"
    turn.reply(pending, said, loop=name, phase=after.phase, number=after.number, complete=after.complete)


def _show(loop: LoopTurn, watcher: RemoteWatcher) -> dict[str, Any]:
    declared, branch = loop.declared, loop.branch
    progress = phases.renumbered(loop.progress, loop.phases)
    status = watcher.status(loop.address) if loop.address else None
    agents = dict.fromkeys([*declared.roles.values(), *([declared.on_complete] if declared.on_complete else [])])
    mailboxes = {agent: mailbox_of(loop.turn, agent) for agent in agents}
    return {
        "enabled": declared.enabled,
        "remote": shown_remote(declared),
        "branch": declared.branch,
        "tip": branch.tip if branch is not None else None,
        "gone": branch.is_gone if branch is not None else False,
        "asked": _time(status.asked_at) if status is not None else None,
        "answered": _time(status.answered_at) if status is not None else None,
        "next": _time(status.next_at) if status is not None else None,
        "failure": status.failure if status is not None else "",
        "roles": dict(declared.roles),
        "phases": [_phase(number, phase.name, progress) for number, phase in enumerate(declared.phases, start=1)],
        "number": progress.number,
        "since": _time(progress.since),
        "complete": progress.complete,
        "on_complete": declared.on_complete,
        "errands": [
            {"agent": each.agent, "what": each.kind.value, "done": each.done, "failure": each.failure}
            for each in loop.actions
        ],
        "messages": [
            {"agent": agent, "waiting": len(mailbox.messages), "reason": mailbox.reason or "it is being said"}
            for agent, mailbox in mailboxes.items()
            if mailbox.messages
        ],
    }


def _phase(number: int, name: str, progress: PhaseProgress) -> dict[str, Any]:
    if number < progress.number or (progress.complete and number == progress.number):
        state = "done"
    elif number == progress.number:
        state = "current"
    else:
        state = "to come"
    return {"number": number, "name": name, "state": state}


def _summary(shown: Mapping[str, Mapping[str, Any]]) -> str:
    if not shown:
        return "the fleet file has no loops"
    return "; ".join(f"{name}: {_how_far(loop)}" for name, loop in shown.items())


def _how_far(loop: Mapping[str, Any]) -> str:
    phases = loop["phases"]
    if not phases:
        return "no phases"
    if loop["complete"]:
        return "complete"
    if not loop["number"]:
        return "not begun"
    return f"phase {loop['number']} of {len(phases)}, {phases[loop['number'] - 1]['name']}"


def _time(seconds: float) -> str | None:
    return datetime.fromtimestamp(seconds, UTC).isoformat() if seconds else None
