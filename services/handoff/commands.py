"""What `muster phase` and `muster poll` ask: shown, or done, and answered with a sentence."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from services.handoff.loops import phases as courses
from services.handoff.loops.phases import NoSuchPhase
from services.handoff.memory import LoopTurn
from services.handoff.messages import MessageSender
from services.handoff.phase_runner import PhaseRunner, rules_of
from services.handoff.remotes.watcher import RemoteStatus
from shared.contract.commands import PhaseNext, PhaseSet, PhaseShow, Poll
from shared.fleet import Fleet
from shared.fleet.faults import allowed
from shared.fleet.loops import shown_remote
from shared.runtime.turn import PendingCommand, Turn


class LoopCommands:
    def __init__(
        self,
        player: PhaseRunner,
        postman: MessageSender,
        standing: Callable[[str], RemoteStatus | None],
        look_now: Callable[[str], None],
    ) -> None:
        self._player = player
        self._postman = postman
        self._standing = standing
        self._look_now = look_now

    def answer(
        self,
        rounds: Mapping[str, LoopTurn],
        fleet: Fleet,
        turn: Turn,
        pending: PendingCommand,
        addresses: Mapping[str, str],
    ) -> None:
        """`rounds`: of all loops; `addresses`: the remotes of those that are watched."""
        command, loops = pending.command, fleet.declared.loops
        if not isinstance(command, PhaseShow | PhaseNext | PhaseSet | Poll):
            return
        if command.loop is not None and command.loop not in loops:
            said = f"there is no loop {command.loop!r} in {fleet.path.name}; {allowed(command.loop, sorted(loops))}"
            turn.reply(pending, said, code="unknown_loop")
            return
        match command:
            case PhaseShow():
                chosen = [command.loop] if command.loop is not None else list(loops)
                shown = {name: self._show(rounds[name], addresses.get(name)) for name in chosen}
                turn.reply(pending, _summary(shown), loops=shown)
            case Poll():
                chosen = [command.loop] if command.loop is not None else list(addresses)
                remotes = sorted({addresses[name] for name in chosen if name in addresses})
                for remote in remotes:
                    self._look_now(remote)
                said = f"{len(remotes)} remotes are asked now" if remotes else "no loop is watched"
                turn.reply(pending, said, loops=[name for name in chosen if name in addresses])
            case PhaseNext() | PhaseSet():
                self._change(rounds, turn, pending, command)

    def _change(
        self, rounds: Mapping[str, LoopTurn], turn: Turn, pending: PendingCommand, command: PhaseNext | PhaseSet
    ) -> None:
        phased = [name for name, it in rounds.items() if it.loop.phases]
        if command.loop is None and len(phased) != 1:
            which = f"name one of them: {', '.join(phased)}" if phased else "no loop has phases"
            turn.reply(pending, f"{which}; the fleet file has {len(phased)} loops with phases", code="refused")
            return
        it = rounds[command.loop or phased[0]]
        name, course, rules, who = it.name, it.memory.course(it.name), rules_of(it), command.by or "somebody"
        if not it.loop.enabled:
            turn.reply(pending, f"the loop {name} is not enabled", code="refused")
            return
        try:
            if isinstance(command, PhaseSet):
                after, changes = courses.set_phase(course, rules, command.phase, it.now, who)
            else:
                after, changes = courses.next_phase(course, rules, it.now, who)
        except NoSuchPhase as error:
            turn.reply(pending, f"{name}: {error}", code="refused")
            return
        self._player.go(it, after, changes)
        said = (
            f"the loop {name} is complete" if after.complete else f"{name}: phase {after.number}, {after.phase}, begins"
        )
        turn.reply(pending, said, loop=name, phase=after.phase, number=after.number, complete=after.complete)

    def _show(self, it: LoopTurn, address: str | None) -> dict[str, Any]:
        loop, seen = it.loop, it.memory.seen(it.name)
        course = courses.placed(it.memory.course(it.name), it.phases)
        standing = self._standing(address) if address is not None else None
        agents = list(dict.fromkeys([*loop.roles.values(), *([loop.on_complete] if loop.on_complete else [])]))
        boxes = {agent: self._postman.box(it.turn, agent) for agent in agents}
        return {
            "enabled": loop.enabled,
            "remote": shown_remote(loop),
            "branch": loop.branch,
            "tip": seen.tip if seen is not None else None,
            "gone": seen.is_gone if seen is not None else False,
            "asked": _time(standing.asked_at) if standing is not None else None,
            "answered": _time(standing.answered_at) if standing is not None else None,
            "next": _time(standing.next_at) if standing is not None else None,
            "failure": standing.failure if standing is not None else "",
            "roles": dict(loop.roles),
            "phases": [_phase(number, phase.name, course) for number, phase in enumerate(loop.phases, start=1)],
            "number": course.number,
            "since": _time(course.since),
            "complete": course.complete,
            "on_complete": loop.on_complete,
            "errands": [
                {"agent": each.agent, "what": each.what.value, "done": each.done, "failure": each.told}
                for each in it.memory.errands(it.name)
            ],
            "messages": [
                {"agent": agent, "waiting": len(box.letters), "reason": box.reason or "it is being said"}
                for agent, box in boxes.items()
                if box.letters
            ],
        }


def _phase(number: int, name: str, course: courses.PhaseProgress) -> dict[str, Any]:
    if number < course.number or (course.complete and number == course.number):
        state = "done"
    elif number == course.number:
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
