"""An agent that is said to work and writes nothing: all of them paint while they work, so it hangs. Pure."""

from dataclasses import dataclass

from services.monitor.policies.policy import AgentObservation, PolicyOutcome, errand_id, restart
from shared.contract.events.activity import AgentUnresponsive
from shared.contract.states import Activity
from shared.fleet.policies import Mend, UnresponsivePolicy


@dataclass(frozen=True)
class Silence:
    """The silence that was told; an agent at work writes all the time, so that nothing is kept of it before."""

    spawn: str = ""
    since: float = 0.0
    """Since when nothing was written."""


def decide(silence: Silence, sight: AgentObservation, policy: UnresponsivePolicy) -> PolicyOutcome[Silence]:
    if policy.after_s == 0 or sight.status is not Activity.WORKING or not sight.draws:
        return PolicyOutcome(Silence())
    since = max(sight.wrote_at, sight.since)
    now_silent = Silence(sight.spawn, since)
    if silence == now_silent:
        return PolicyOutcome(silence)
    if sight.now < since + policy.after_s:
        return PolicyOutcome(Silence(), look_at=since + policy.after_s)
    silent_s = sight.now - since
    restarts = policy.then is Mend.RESTART and sight.may_restart and not sight.parked
    says = "it is restarted within its restart limits" if restarts else "it is left to people"
    told = AgentUnresponsive(
        agent=sight.agent,
        spawn=sight.spawn,
        silent_s=round(silent_s, 1),
        then="restart" if restarts else "tell",
        reason=f"it is said to work ({sight.reason}), and has written nothing for {silent_s:.0f} s; {says}",
    )
    if not restarts:
        return PolicyOutcome(now_silent, tells=(told,))
    command = restart(sight, errand_id("silence", sight.spawn, since))
    return PolicyOutcome(now_silent, ((command, "it is said to work, and writes nothing"),), (told,))
