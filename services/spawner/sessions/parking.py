"""Accounts whose usage limit is reached: their agents are not started until it lifts, and a death does not count.

The monitor parks and unparks. Each park ends by itself, so that a monitor that died does not block the account.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from services.spawner.view import SpawnerView
from shared.contract.commands import Park, Unpark
from shared.fleet.fleet import account_of, is_concerned
from shared.runtime.memory import MemoryTable
from shared.runtime.turn import PendingCommand

LONGEST_S = 400 * 86_400.0
"""No limit lasts longer; a later date may be one that no calendar has."""


@dataclass(frozen=True)
class Parked:
    account: str
    until: float
    models: tuple[str, ...] | None = None
    """Only agents on these; None: all of the account."""
    reason: str = ""

    @property
    def says(self) -> str:
        until = datetime.fromtimestamp(self.until).astimezone()
        why = f" ({self.reason})" if self.reason else ""
        return f"the usage limit of the account {self.account!r} is reached until {until:%Y-%m-%d %H:%M:%S %Z}{why}"


PARKS = MemoryTable("park:", Parked)


def park(view: SpawnerView, pending: PendingCommand, command: Park) -> None:
    found = Parked(
        command.account,
        min(command.until.timestamp(), view.now + LONGEST_S),
        None if command.models is None else tuple(command.models),
        command.reason,
    )
    view.turn.memory.put(PARKS, found, _name(found.account, found.models))
    view.turn.reply(
        pending, f"no agent of the account {command.account!r} is started until {command.until:%H:%M:%S %Z}"
    )


def unpark(view: SpawnerView, pending: PendingCommand, command: Unpark) -> None:
    models = None if command.models is None else tuple(command.models)
    name = _name(command.account, models)
    was = view.turn.memory.find(PARKS, name) is not None
    view.turn.memory.put(PARKS, None, name)
    said = "may be started again" if was else "were free to be started all the time"
    view.turn.reply(pending, f"the agents of the account {command.account!r} {said}")


def parked(view: SpawnerView, agent: str, overrides: Mapping[str, str] | None = None) -> Parked | None:
    """The park that keeps an agent from being started; of several, the longest. `overrides` of this start, if any."""
    declared = view.fleet.agents.get(agent)
    if declared is None or agent in view.fleet.declared.services:
        return None
    overrides = view.known(agent).overrides if overrides is None else overrides
    account = account_of(view.fleet, agent, overrides.get("backend"))
    model = overrides.get("model") or declared.model
    parks = view.turn.memory.all(PARKS).values()
    found = [each for each in parks if each.account == account and is_concerned(each.models, model)]
    lasting = [each for each in found if each.until > view.now]
    return max(lasting, key=lambda each: each.until, default=None)


def remove_past(view: SpawnerView) -> None:
    for name, each in view.turn.memory.all(PARKS).items():
        if each.until <= view.now:
            view.turn.memory.put(PARKS, None, name)


def _name(account: str, models: tuple[str, ...] | None) -> str:
    return account if models is None else f"{account}:{'|'.join(sorted(models))}"
