"""Accounts whose usage limit is reached: their agents are not started until it lifts, and none is blamed for ending.

The monitor asks for it and takes it back. Each park has an end of its own: nobody waits for a monitor that died.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from services.spawner.view import SpawnerView
from shared.contract.commands import Park, Unpark
from shared.fleet.fleet import account_of, is_concerned
from shared.runtime.turn import PendingCommand, Turn

PARK = "park:"
LONGEST_S = 400 * 86_400.0
"""No limit lasts longer, and no calendar has to be asked about what lies beyond."""


@dataclass(frozen=True)
class Parked:
    account: str
    until: float
    models: tuple[str, ...] | None = None
    """Only agents on these; None: all of the account."""
    reason: str = ""

    @classmethod
    def read(cls, kept: dict[str, Any]) -> "Parked":
        models = kept.get("models")
        return cls(kept["account"], kept["until"], None if models is None else tuple(models), kept.get("reason", ""))

    @property
    def says(self) -> str:
        until = datetime.fromtimestamp(self.until).astimezone()
        why = f" ({self.reason})" if self.reason else ""
        return f"the usage limit of the account {self.account!r} is reached until {until:%Y-%m-%d %H:%M:%S %Z}{why}"


def park(view: SpawnerView, pending: PendingCommand, command: Park) -> None:
    found = Parked(
        command.account,
        min(command.until.timestamp(), view.now + LONGEST_S),
        None if command.models is None else tuple(command.models),
        command.reason,
    )
    view.turn.remember(_key(found.account, found.models), asdict(found))
    view.turn.reply(
        pending, f"no agent of the account {command.account!r} is started until {command.until:%H:%M:%S %Z}"
    )


def unpark(view: SpawnerView, pending: PendingCommand, command: Unpark) -> None:
    models = None if command.models is None else tuple(command.models)
    key = _key(command.account, models)
    was = view.turn.recall(key) is not None
    view.turn.remember(key, None)
    said = "may be started again" if was else "were free to be started all the time"
    view.turn.reply(pending, f"the agents of the account {command.account!r} {said}")


def parked(view: SpawnerView, agent: str, order: Mapping[str, str] | None = None) -> Parked | None:
    """What keeps an agent from being started now; of several, what lasts longest. `order`: as it is to be started."""
    declared = view.fleet.agents.get(agent)
    if declared is None or agent in view.fleet.declared.services:
        return None
    order = view.known(agent).order if order is None else order
    account = account_of(view.fleet, agent, order.get("backend"))
    model = order.get("model") or declared.model
    found = [each for each in _all(view.turn) if each.account == account and is_concerned(each.models, model)]
    lasting = [each for each in found if each.until > view.now]
    return max(lasting, key=lambda each: each.until, default=None)


def forget_past(view: SpawnerView) -> None:
    """Keep nothing of what is over."""
    for each in list(_all(view.turn)):
        if each.until <= view.now:
            view.turn.remember(_key(each.account, each.models), None)


def _all(turn: Turn) -> Iterator[Parked]:
    for key in {**turn.memory, **turn.remembered}:
        if key.startswith(PARK) and (kept := turn.recall(key)) is not None:
            yield Parked.read(kept)


def _key(account: str, models: tuple[str, ...] | None) -> str:
    return f"{PARK}{account}" if models is None else f"{PARK}{account}:{'|'.join(sorted(models))}"
