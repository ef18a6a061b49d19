"""Muster's own scripted agent: what it prints is the answer."""

from services.monitor.health.forks.fork import Ended, Failed, Fork, Said, failed, last_line, no_turn_yet


def read(ended: Ended) -> Said | Failed | None:
    if ended.status == 0 and ended.out.strip():
        return Said(ended.out.strip())
    if "there is no conversation" in ended.err:
        return no_turn_yet()
    return failed(line) if (line := last_line(ended.err)) else None


FORK = Fork(read)
