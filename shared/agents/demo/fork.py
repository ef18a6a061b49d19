"""Muster's own scripted agent: what it prints is the answer."""

from shared.agents.fork import Fork, ForkAnswer, ForkFailed, failed, last_line, no_turn_yet
from shared.system.child_process import ProgramResult


def read(ended: ProgramResult) -> ForkAnswer | ForkFailed | None:
    if ended.status == 0 and ended.out.strip():
        return ForkAnswer(ended.out.strip())
    if "there is no conversation" in ended.err:
        return no_turn_yet()
    return failed(line) if (line := last_line(ended.err)) else None


FORK = Fork(read)
