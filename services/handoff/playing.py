"""Takes loops through their phases: begins them, gives agents their parts, and ends the loop after the last one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import ValidationError

from registry import AgentRecord
from services.handoff.loops import course as courses
from services.handoff.loops import errands
from services.handoff.loops.course import Began, Change, Completed, Course, Done, Rules
from services.handoff.loops.errands import Circumstances, Errand, What
from services.handoff.loops.markers import read_status
from services.handoff.loops.wording import KICKOFF, done_marker, kickoff, names_its_phase, of_loop, status_path
from services.handoff.memory import Memory
from services.handoff.postman import Postman
from shared.commands import MAX_PAYLOAD, Command, Reply, Restart, Spawn, Stop
from shared.errors import MusterError
from shared.events import KickedOff, KickoffFailed, PhaseAdvanced, PhaseDone, SequenceCompleted
from shared.fleet import Fleet, Kind
from shared.fleet.fleet import BadPath
from shared.fleet.loops import Loop
from shared.fleet.needs import read_text
from shared.journal import Journal
from shared.states import Activity
from shared.turn import Turn

BUSY = (Activity.WORKING, Activity.STARTING, Activity.NEEDS_APPROVAL)
LOOKS_EVERY = timedelta(seconds=5)
"""While something is not done. The spawner's own news wake us besides."""
ASKS_FOR = timedelta(days=1)
"""So long the spawner may be away."""
SPAWNER = "spawner"


class CannotKickOff(MusterError):
    """An agent's prompt for a phase can't be made."""


class Player:
    def __init__(self, journal: Journal, postman: Postman) -> None:
        self._journal = journal
        self._postman = postman

    def rules(self, memory: Memory, name: str, loop: Loop) -> Rules:
        seen = memory.seen(name)
        statuses: Mapping[str, str] = seen.statuses if seen is not None else {}

        def read(number: int) -> Sequence[str]:
            path = status_path(loop, number)
            return read_status(statuses.get(path, "") if path else "", done_marker(loop, number)).markers

        names = [phase.name for phase in loop.phases]
        return Rules(names, read, by_name=names_its_phase(loop), advance=loop.advance)

    def advance(self, turn: Turn, memory: Memory, fleet: Fleet, name: str, loop: Loop) -> None:
        """Go on to where the branch says that the loop is. Not before the branch was seen."""
        if memory.seen(name) is None or not loop.phases:
            return
        course, changes = courses.decide(memory.course(name), self.rules(memory, name, loop), turn.now.timestamp())
        self.go(turn, memory, fleet, name, loop, course, changes)

    def go(
        self, turn: Turn, memory: Memory, fleet: Fleet, name: str, loop: Loop, course: Course, changes: Sequence[Change]
    ) -> None:
        """Tell what changed, and have done what follows from where the loop is now."""
        for change in changes:
            self._tell(turn, name, loop, change)
        memory.keep_course(name, courses.placed(course, [phase.name for phase in loop.phases]))
        if any(isinstance(change, Began | Completed) for change in changes):
            memory.keep_errands(name, [])
            for agent in _players(fleet, loop, Kind.LOOP):
                self._postman.forget(turn, agent, name)  # what was said in the phase before is over

    def _tell(self, turn: Turn, name: str, loop: Loop, change: Change) -> None:
        match change:
            case Began(number, phase, was, reason):
                turn.tell(
                    PhaseAdvanced(
                        loop=name, phase=phase, number=number, phases=len(loop.phases), was=was, reason=reason
                    )
                )
            case Done(number, phase, reason):
                turn.tell(PhaseDone(loop=name, phase=phase, number=number, reason=reason))
            case Completed(reason):
                turn.tell(
                    SequenceCompleted(loop=name, phases=len(loop.phases), on_complete=loop.on_complete, reason=reason)
                )

    # --- what agents have to do with it ---

    def serve(
        self,
        turn: Turn,
        memory: Memory,
        fleet: Fleet,
        name: str,
        loop: Loop,
        records: Mapping[str, AgentRecord],
    ) -> None:
        """Go one step on with what the phase asks of agents."""
        course = memory.course(name)
        if not course.number or not loop.phases:
            return
        open_ones = _wanted(fleet, loop, course, memory.errands(name))
        after: list[Errand] = []
        for errand in open_ones:
            others_done = errand.what is not What.RUN or all(each.done for each in after)
            record = records.get(errand.agent)
            seen = Circumstances(
                now=turn.now.timestamp(),
                is_busy=record is not None and record.is_running and record.activity in BUSY,
                grace_s=loop.grace_s,
                others_done=others_done,
                reply=self._reply(errand.asked),
            )
            after.append(self._step(turn, fleet, name, loop, errand, seen))
        memory.keep_errands(name, after)
        if not all(each.done for each in after):
            turn.again_at(turn.now + LOOKS_EVERY)

    def is_expected(self, memory: Memory, name: str, agent: str) -> bool:
        """Whether an agent is about to be started for a phase: what is said to it now would be lost."""
        return any(each.agent == agent and each.what is What.START and not each.done for each in memory.errands(name))

    def _step(self, turn: Turn, fleet: Fleet, name: str, loop: Loop, errand: Errand, seen: Circumstances) -> Errand:
        step = errands.decide(errand, seen)
        if step.act:
            try:
                return self._act(turn, fleet, name, loop, errand)
            except MusterError as error:
                step = errands.failed(errands.asked(errand, "", seen.now), str(error), seen.now)
        about = {"loop": name, "phase": errand.phase, "number": errand.number, "agent": errand.agent}
        role = errand.roles[0] if errand.roles else errand.what.value
        if step.failure:
            turn.tell(KickoffFailed(**about, role=role, reason=step.failure))
        if step.succeeded and errand.what is What.START:
            turn.tell(KickedOff(**about, role=role, model=_model(loop, errand)))
        if step.look_at is not None:
            turn.again_at(datetime.fromtimestamp(step.look_at, UTC))
        return step.after

    def _act(self, turn: Turn, fleet: Fleet, name: str, loop: Loop, errand: Errand) -> Errand:
        now = turn.now.timestamp()
        if errand.what is What.TELL:
            self._postman.put(turn, errand.agent, name, _prompt(fleet, name, loop, errand), loop.when)
            return replace(errand, done=True)
        command = self._command(fleet, name, loop, errand, turn.now + ASKS_FOR)
        return errands.asked(errand, turn.ask(command, f"loop {name}, phase {errand.number}"), now)

    def _command(self, fleet: Fleet, name: str, loop: Loop, errand: Errand, expires: datetime) -> Command:
        match errand.what:
            case What.STOP:
                return Stop(agent=errand.agent, expires=expires)
            case What.RUN:
                return Spawn(agent=errand.agent, expires=expires)
        prompt = _prompt(fleet, name, loop, errand)
        try:
            return Restart(agent=errand.agent, fresh=True, prompt=prompt, model=_model(loop, errand), expires=expires)
        except ValidationError as error:
            raise CannotKickOff(f"{errand.agent} can't be given its part: {error.errors()[0]['msg']}") from error

    def _reply(self, command: str) -> Reply | None:
        answer = self._journal.requests.answer_to(command, SPAWNER) if command else None
        return Reply.model_validate_json(answer) if answer is not None else None


def _players(fleet: Fleet, loop: Loop, kind: Kind | None = None) -> list[str]:
    """Who plays in a loop, of those that the fleet file has."""
    agents = [agent for agent in dict.fromkeys(loop.roles.values()) if agent in fleet.agents]
    return [agent for agent in agents if kind is None or fleet.agents[agent].kind is kind]


def _wanted(fleet: Fleet, loop: Loop, course: Course, known: Sequence[Errand]) -> list[Errand]:
    """What the phase asks of each agent: as far as it was begun, as it was; and for who plays since, anew."""
    begun = {(each.what, each.agent): each for each in known if each.since == course.since}
    wanted: list[Errand] = []

    def want(what: What, agent: str, roles: tuple[str, ...] = ()) -> None:
        new = Errand(what, agent, roles, course.number, course.phase, course.since, course.at_once)
        # The phase may have another number or name by now.
        found = begun.get((what, agent), new)
        wanted.append(replace(found, number=course.number, phase=course.phase, roles=roles))

    if course.complete:
        for agent in _players(fleet, loop, Kind.LOOP):
            want(What.STOP, agent)
        if loop.on_complete is not None and loop.on_complete in fleet.agents:
            want(What.RUN, loop.on_complete)
        return wanted
    for agent in _players(fleet, loop):
        roles = tuple(role for role, player in loop.roles.items() if player == agent)
        want(What.START if fleet.agents[agent].kind is Kind.LOOP else What.TELL, agent, roles)
    return wanted


def _model(loop: Loop, errand: Errand) -> str | None:
    if not 0 < errand.number <= len(loop.phases):
        return None
    models = loop.phases[errand.number - 1].models
    return next((models[role] for role in errand.roles if role in models), None)


def _prompt(fleet: Fleet, name: str, loop: Loop, errand: Errand) -> str:
    """What an agent is told at the beginning of a phase."""
    phase = loop.phases[errand.number - 1]
    path = phase.kickoff or loop.kickoff
    template = _read(fleet, path, "kickoff") if path is not None else KICKOFF
    of_roles = [
        _read(fleet, loop.role_prompts[role], f"role_prompts.{role}")
        for role in errand.roles
        if role in loop.role_prompts
    ]
    values = {**of_loop(name, loop, errand.number), "agent": errand.agent, "role": ", ".join(errand.roles)}
    prompt = kickoff(template, of_roles, values)
    if len(prompt.encode()) > MAX_PAYLOAD // 2:
        raise CannotKickOff(
            f"the prompt of phase {phase.name!r} has more than {MAX_PAYLOAD // 2} bytes; make it shorter"
        )
    if not prompt:
        raise CannotKickOff(f"the kickoff of phase {phase.name!r} is empty; write what {errand.agent} is to do")
    return prompt


def _read(fleet: Fleet, path: Path, key: str) -> str:
    try:
        return read_text(fleet.resolve(path))
    except (BadPath, OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CannotKickOff(f"the template {fleet.path.parent / path} (`{key}`) can't be read: {why}") from error
