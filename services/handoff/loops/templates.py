"""The templates of a loop: the values for them, its status files and done lines, and the prompt of a phase. Pure."""

import re
from collections.abc import Mapping, Sequence

from shared.contract.ids import as_id
from shared.fleet.launch_needs import fill
from shared.fleet.loops import Loop, shown_remote

KICKOFF = "Phase {number} of {phases}: {phase}."
"""The prompt where neither the phase nor its loop has a template."""
ROLE_PROMPT = "{role_prompt}"


def values_of(name: str, loop: Loop, number: int) -> dict[str, str]:
    """The values for every template of a loop; `number` is that of its phase, 0 for none."""
    return {
        "loop": name,
        "branch": loop.branch,
        "remote": shown_remote(loop),
        "phase": _phase_name(loop, number),
        "number": str(number) if number else "",
        "phases": str(len(loop.phases)),
        "status_file": status_path(loop, number) or "",
    }


def status_path(loop: Loop, number: int) -> str | None:
    """The path of a phase's status file."""
    phase = _phase_name(loop, number)
    if loop.status_file is None or not phase:
        return None
    return fill(loop.status_file, {"phase": as_id(phase), "number": str(number)})


def done_pattern(loop: Loop, number: int) -> str:
    """The regular expression of the line that ends a phase."""
    phase = _phase_name(loop, number)

    def filled(found: re.Match[str]) -> str:
        if found[1] == "number":
            return rf"(?<!\d){number}(?!\d)"  # 1 is not in 12
        # Not as part of a longer word, unless the expression itself continues it.
        before, after = loop.done[: found.start()][-1:], loop.done[found.end() :][:1]
        begins = r"(?<!\w)" * (phase[:1].isalnum() and not (before.isalnum() or before == "_"))
        ends = r"(?!\w)" * (phase[-1:].isalnum() and not (after.isalnum() or after == "_"))
        return f"{begins}{re.escape(phase)}{ends}"

    return re.sub(r"\{(phase|number)\}", filled, loop.done)


def names_its_phase(loop: Loop) -> bool:
    """Whether the done line or its file names the phase, and no two phases share both."""
    is_named = any(f"{{{key}}}" in text for key in ("phase", "number") for text in (loop.done, loop.status_file or ""))
    count = len(loop.phases)
    ends = {(status_path(loop, number), done_pattern(loop, number)) for number in range(1, count + 1)}
    return is_named and len(ends) == count


def _phase_name(loop: Loop, number: int) -> str:
    return loop.phases[number - 1].name if 0 < number <= len(loop.phases) else ""


def kickoff(template: str, role_prompts: Sequence[str], values: Mapping[str, str]) -> str:
    """An agent's first prompt in a phase. Those of its roles stand at `{role_prompt}`, else before the template."""
    of_roles = "\n\n".join(prompt.strip() for prompt in role_prompts if prompt.strip())
    # Joined before anything is filled in: values are not filled again.
    whole = template if ROLE_PROMPT in template else "\n\n".join(filter(None, (ROLE_PROMPT * bool(of_roles), template)))
    return fill(whole.replace(ROLE_PROMPT, of_roles), values).strip()
