"""The processes of a fleet on this host, by the locks that they hold, and the fleet file that they were started with.

A lock also shows an orphan of a supervisor that was killed.
"""

import contextlib
from pathlib import Path

from shared.contract.services import SERVICES
from shared.fleet import BadFleetFile, Declaration, Fleet, load_fleet
from shared.system.lock import holder

SUPERVISOR = "supervisor"
BROKER = "broker"


def programs(fleet: Fleet) -> tuple[str, ...]:
    """What the supervisor runs: the services, and the broker unless people named their own."""
    return fleet.services if fleet.declared.broker.endpoints else (BROKER, *fleet.services)


def pids(fleet: Fleet) -> dict[str, int]:
    """The living processes of this fleet, by program, the supervisor among them."""
    found = {name: holder(fleet.home / "run" / f"{name}.lock") for name in (SUPERVISOR, BROKER, *SERVICES)}
    return {name: pid for name, pid in found.items() if pid is not None}


def down_lock(fleet: Fleet) -> Path:
    """The lock that `muster down` holds from its beginning to its end."""
    return fleet.home / "run" / "down.lock"


def going_down(fleet: Fleet) -> int | None:
    """The process id of the `muster down` that is under way; None if none is."""
    return holder(down_lock(fleet))


def last_good(fleet: Fleet) -> Path:
    """A copy of the fleet file as it was when the services were started."""
    return fleet.home / "run" / "fleet.yaml"


def switched_on_since(fleet: Fleet) -> list[str]:
    """The services that the fleet file has now, and did not have when the services were started."""
    with contextlib.suppress(BadFleetFile):
        return [name for name in fleet.services if name not in load_fleet(last_good(fleet)).services]
    return []


def load_fleet_leniently(path: Path) -> tuple[Fleet, str]:
    """The fleet, and what is wrong with its file: then the file that the services were started with counts."""
    try:
        return load_fleet(path), ""
    except BadFleetFile as fault:
        fleet = Fleet(path, Declaration())
        with contextlib.suppress(BadFleetFile):
            fleet = Fleet(path, load_fleet(last_good(fleet)).declared)
        return fleet, str(fault)
