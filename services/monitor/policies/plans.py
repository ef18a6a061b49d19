"""What is in hand for an agent, in sentences for `muster explain`. Pure."""

from collections.abc import Iterator
from datetime import datetime, tzinfo

from services.monitor.limits.hold import LimitHold
from services.monitor.policies.memory import PolicyMemory
from services.monitor.policies.wake import due_at
from shared.fleet import Agent
from shared.fleet.policies import LimitPolicy


def planned(care: PolicyMemory, declared: Agent | None, parked: str, now: float, zone: tzinfo) -> Iterator[str]:
    """What is waited for, and what is done then; `parked`: why it is left alone."""
    held = care.limits.held
    if held is not None:
        yield _limit(held, declared.watch.limits if declared is not None else LimitPolicy(resume=False), zone)
    elif parked:
        yield f"it is left alone: {parked}"
    if care.troubled.is_held:
        yield "it is held until a person has mended that"
    stall = care.stall
    if stall.stalled:
        yield f"it counts as stalled since {_time(stall.acted_at, zone)}; steps taken: {stall.step}"
    if declared is not None and declared.wake is not None and care.waking.last:
        yield f"it is woken next at {_time(max(now, due_at(care.waking, declared.wake, zone)), zone)}, once it is idle"


def _limit(held: LimitHold, policy: LimitPolicy, zone: tzinfo) -> str:
    reset = f", which resets at {_time(held.resets_at, zone)}" if held.resets_at is not None else ""
    if held.stuck:
        then = f"it was asked {held.tries} times to go on, and a person is needed"
    elif not policy.resume:
        then = "it is left to people"
    elif held.asked:
        then = "it has just been asked to go on"
    elif held.continues:
        then = f"it says that it continues by itself, and is resumed {policy.patience_s:g} s later if it does not"
    else:
        then = f"it is resumed at {_time(held.resume_at, zone)}"
    return f"it is held by {held.named} of the account {held.account!r}{reset}: {then}"


def _time(seconds: float, zone: tzinfo) -> str:
    return f"{datetime.fromtimestamp(seconds, zone):%Y-%m-%d %H:%M:%S %Z}"
