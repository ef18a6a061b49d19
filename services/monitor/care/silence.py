"""An agent that is said to work and writes nothing: all of them paint while they work, so it hangs. Pure."""

from dataclasses import dataclass, replace

from services.monitor.care.sending import restart
from services.monitor.care.sight import Outcome, Sight, errand_id
from shared.events import AgentUnresponsive
from shared.fleet.watch import Mend, UnresponsivePolicy
from shared.states import Activity


@dataclass(frozen=True)
class Silence:
    spawn: str = ""
    since: float = 0.0
    """Since when nothing was written."""
    told: bool = False


def decide(silence: Silence, sight: Sight, policy: UnresponsivePolicy) -> Outcome[Silence]:
    if policy.after_s == 0 or sight.status is not Activity.WORKING or not sight.draws:
        return Outcome(Silence())
    since = max(sight.wrote_at, sight.since)
    if (silence.spawn, silence.since) != (sight.spawn, since):
        silence = Silence(sight.spawn, since)
    due = since + policy.after_s
    if silence.told or sight.now < due:
        return Outcome(silence, look_at=None if silence.told else due)
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
    after = replace(silence, told=True)
    if not restarts:
        return Outcome(after, tells=(told,))
    command = restart(sight, errand_id("silence", sight.spawn, since))
    return Outcome(after, ((command, "it is said to work, and writes nothing"),), (told,))
