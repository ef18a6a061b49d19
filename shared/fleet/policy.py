"""How often an agent that dies is started again, and when that is given up."""

from pydantic import Field

from shared.fleet.section import MoreThanNoSeconds, Seconds, Section


class RestartPolicy(Section):
    """How often an agent that dies is started again, and when that is given up."""

    first_wait_s: Seconds = 1.0
    """Doubled with each death of a burst, up to `longest_wait_s`."""
    longest_wait_s: Seconds = 60.0
    """No wait is longer."""
    burst: int = Field(default=5, ge=0)
    """At most this many restarts …"""
    burst_s: MoreThanNoSeconds = 60.0
    """… within this time."""
    sustained: int = Field(default=30, ge=0)
    """And at most this many …"""
    sustained_s: MoreThanNoSeconds = 3600.0
    """… within this longer time."""


class FleetRestarts(Section):
    """The same for all agents together, for what kills them all alike."""

    burst: int = Field(default=20, ge=1)
    """More restarts than this …"""
    burst_s: MoreThanNoSeconds = 10.0
    """… within this time wait for their turn."""
    sustained: int = Field(default=0, ge=0)
    """More than this within `sustained_s`, and who dies next is given up; 0: ten for each agent, at least 100."""
    sustained_s: MoreThanNoSeconds = 3600.0
    """The longer time."""
