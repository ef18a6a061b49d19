"""What is done about an agent that is said to work and writes nothing: it hangs, since all paint at work. Pure."""

from dataclasses import dataclass

from services.monitor.policies.policy import AgentObservation, PolicyOutcome, restart, stable_id
from shared.contract.events.activity import AgentUnresponsive
from shared.contract.states import Activity
from shared.fleet.policies import Mend, UnresponsivePolicy
from shared.runtime.moments import Moment


@dataclass(frozen=True)
class SilenceMemory:
    """The silence that was told last."""

    spawn: str = ""
    since: Moment = 0.0
    """Since when nothing was written."""


def decide(
    memory: SilenceMemory, observed: AgentObservation, policy: UnresponsivePolicy
) -> PolicyOutcome[SilenceMemory]:
    if policy.after_s == 0 or observed.status is not Activity.WORKING or not observed.paints:
        return PolicyOutcome(SilenceMemory())
    since = max(observed.wrote_at, observed.since)
    silent = SilenceMemory(observed.spawn, since)
    if memory == silent:
        return PolicyOutcome(memory)
    if observed.now < since + policy.after_s:
        return PolicyOutcome(SilenceMemory(), look_at=since + policy.after_s)
    silent_s = observed.now - since
    restarts = policy.then is Mend.RESTART and observed.may_restart and not observed.left_alone
    then = "it is restarted within its restart limits" if restarts else "it is left to people"
    event = AgentUnresponsive(
        agent=observed.agent,
        spawn=observed.spawn,
        silent_s=round(silent_s, 1),
        then="restart" if restarts else "tell",
        reason=f"it is said to work ({observed.reason}), and has written nothing for {silent_s:.0f} s; {then}",
    )
    if not restarts:
        return PolicyOutcome(silent, events=(event,))
    command = restart(observed, stable_id("silence", observed.spawn, since))
    return PolicyOutcome(silent, ((command, "it is said to work, and writes nothing"),), (event,))
