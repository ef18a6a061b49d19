"""Claude Code's fork prints one JSON object, unless it does not find the conversation (2.1.197 and 2.1.325)."""

from shared.agents.fork import Fork, ForkAnswer, ForkFailed, failed, last_line, no_turn_yet
from shared.agents.transcript import json_object
from shared.system.child_process import ProgramResult

LIMIT_STATUS = 429


def read(ended: ProgramResult) -> ForkAnswer | ForkFailed | None:
    found = json_object(ended.out)
    if found is None:
        if "No conversation found" in ended.err:
            return no_turn_yet()
        return failed(line) if (line := last_line(ended.err)) else None
    result = found.get("result")
    text = result if isinstance(result, str) else ""
    if found.get("is_error"):
        said = text or str(found.get("subtype") or "it does not say why")
        return failed(said, limited=True if found.get("api_error_status") == LIMIT_STATUS else None)
    return ForkAnswer(text, found.get("structured_output"))


FORK = Fork(read)
