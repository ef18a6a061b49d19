"""What `muster phase` and `muster poll` ask: shown, or done, and answered with a sentence."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from services.handoff.looking.looker import Standing
from services.handoff.loops import course as courses
from services.handoff.loops.course import NoSuchPhase
from services.handoff.memory import Memory
from services.handoff.playing import Player
from services.handoff.postman import Postman
from shared.commands import PhaseNext, PhaseSet, PhaseShow, Poll
from shared.fleet import Fleet
from shared.fleet.faults import allowed
from shared.fleet.loops import Loop, shown_remote
from shared.turn import Asked, Turn

LoopsCommand = PhaseShow | PhaseNext | PhaseSet | Poll


class LoopDesk:
    def __init__(
        self,
        player: Player,
        postman: Postman,
        standing: Callable[[str], Standing | None],
        look_now: Callable[[str], None],
    ) -> None:
        self._player = player
        self._postman = postman
        self._standing = standing
        self._look_now = look_now

    def answer(
        self,
        turn: Turn,
        memory: Memory,
        fleet: Fleet,
        asked: Asked,
        command: LoopsCommand,
        addresses: Mapping[str, str],
    ) -> None:
        loops = fleet.declared.loops
        if command.loop is not None and command.loop not in loops:
            said = f"there is no loop {command.loop!r} in {fleet.path.name}; {allowed(command.loop, sorted(loops))}"
            turn.answer(asked, said, code="unknown_loop")
            return
        match command:
            case PhaseShow():
                chosen = [command.loop] if command.loop is not None else list(loops)
                shown = {name: self._show(turn, memory, name, loops[name], addresses) for name in chosen}
                turn.answer(asked, _summary(shown), loops=shown)
            case Poll():
                chosen = [command.loop] if command.loop is not None else list(addresses)
                remotes = sorted({addresses[name] for name in chosen if name in addresses})
                for remote in remotes:
                    self._look_now(remote)
                said = f"{len(remotes)} remotes are asked now" if remotes else "no loop is watched"
                turn.answer(asked, said, loops=[name for name in chosen if name in addresses])
            case PhaseNext() | PhaseSet():
                self._change(turn, memory, fleet, asked, command)

    def _change(self, turn: Turn, memory: Memory, fleet: Fleet, asked: Asked, command: PhaseNext | PhaseSet) -> None:
        loops = fleet.declared.loops
        phased = [name for name, loop in loops.items() if loop.phases]
        if command.loop is None and len(phased) != 1:
            which = f"name one of them: {', '.join(phased)}" if phased else "no loop has phases"
            turn.answer(asked, f"{which}; the fleet file has {len(phased)} loops with phases", code="refused")
            return
        name = command.loop or phased[0]
        loop, course, who = loops[name], memory.course(name), command.by or "somebody"
        if not loop.enabled:
            turn.answer(asked, f"the loop {name} is not enabled", code="refused")
            return
        rules, now = self._player.rules(memory, name, loop), turn.now.timestamp()
        try:
            if isinstance(command, PhaseSet):
                after, changes = courses.set_phase(course, rules, command.phase, now, who)
            else:
                after, changes = courses.next_phase(course, rules, now, who)
        except NoSuchPhase as error:
            turn.answer(asked, f"{name}: {error}", code="refused")
            return
        self._player.go(turn, memory, fleet, name, loop, after, changes)
        said = (
            f"the loop {name} is complete" if after.complete else f"{name}: phase {after.number}, {after.phase}, begins"
        )
        turn.answer(asked, said, loop=name, phase=after.phase, number=after.number, complete=after.complete)

    def _show(self, turn: Turn, memory: Memory, name: str, loop: Loop, addresses: Mapping[str, str]) -> dict[str, Any]:
        course, seen = memory.course(name), memory.seen(name)
        course = courses.placed(course, [phase.name for phase in loop.phases])
        standing = self._standing(addresses[name]) if name in addresses else None
        agents = list(dict.fromkeys([*loop.roles.values(), *([loop.on_complete] if loop.on_complete else [])]))
        boxes = {agent: self._postman.box(turn, agent) for agent in agents}
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
                for each in memory.errands(name)
            ],
            "messages": [
                {"agent": agent, "waiting": len(box.letters), "reason": box.reason or "it is being said"}
                for agent, box in boxes.items()
                if box.letters
            ],
        }


def _phase(number: int, name: str, course: courses.Course) -> dict[str, Any]:
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
