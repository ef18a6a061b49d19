"""What an agent is told at the beginning of a phase: reads the templates anew each time, for people edit them."""

from pathlib import Path

from services.handoff.loops.phase_actions import PhaseAction
from services.handoff.loops.templates import KICKOFF, kickoff, of_loop
from services.handoff.memory import LoopTurn
from shared.contract.commands import MAX_PAYLOAD
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.fleet.fleet import BadPath
from shared.fleet.launch_needs import read_text

LONGEST = MAX_PAYLOAD // 2


class CannotKickOff(MusterError):
    """An agent's prompt for a phase can't be made."""


def prompt_of(it: LoopTurn, errand: PhaseAction) -> str:
    """The prompt, or CannotKickOff."""
    loop, phase = it.loop, it.loop.phases[errand.number - 1]
    path = phase.kickoff or loop.kickoff
    template = _read(it.fleet, path, "kickoff") if path is not None else KICKOFF
    written = {role: path for role, path in loop.role_prompts.items() if role in errand.roles}
    of_roles = [_read(it.fleet, path, f"role_prompts.{role}") for role, path in written.items()]
    values = {**of_loop(it.name, loop, errand.number), "agent": errand.agent, "role": ", ".join(errand.roles)}
    prompt = kickoff(template, of_roles, values)
    if len(prompt.encode()) > LONGEST:
        raise CannotKickOff(f"the prompt of phase {phase.name!r} has more than {LONGEST} bytes; make it shorter")
    if not prompt:
        raise CannotKickOff(f"the kickoff of phase {phase.name!r} is empty; write what {errand.agent} is to do")
    return prompt


def _read(fleet: Fleet, path: Path, key: str) -> str:
    try:
        return read_text(fleet.resolve(path))
    except (BadPath, OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CannotKickOff(f"the template {fleet.path.parent / path} (`{key}`) can't be read: {why}") from error
