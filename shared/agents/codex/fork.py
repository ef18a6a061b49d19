"""Codex's fork prints one JSON object per line. `error` is a warning, `turn.failed` the failure (0.166.0)."""

from shared.agents.fork import Fork, ForkAnswer, ForkFailed, failed, last_line, no_turn_yet, objects, text_at
from shared.system.child_process import ProgramResult

NO_TURN = ("thread not loaded", "Session not found")


def read(ended: ProgramResult) -> ForkAnswer | ForkFailed | None:
    answer, why, tries = "", "", ""
    for found in objects(ended.out):
        match found.get("type"):
            case "item.completed" if text_at(found, "item", "type") == "agent_message":
                answer = text_at(found, "item", "text")
            case "turn.failed":
                why = text_at(found, "error", "message") or "it does not say why"
            case "error":
                tries = text_at(found, "message")
    if why:
        return failed(why)
    if answer:
        return ForkAnswer(answer)
    if any(words in ended.err for words in NO_TURN):
        return no_turn_yet()
    said = tries or (last_line(ended.err) if ended.status else "")
    return failed(said) if said else None


FORK = Fork(read)
