"""What the limits of single agents mean for their accounts: who waits, what is not started, which warnings are news.
Pure.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from services.monitor.limits.hold import LimitHold
from shared.fleet import Fleet
from shared.fleet.fleet import account_of, is_concerned

AGAIN_S = 1800.0
NUMBERS = re.compile(r"\d+")

Told = Mapping[str, float]
"""When each warning was last told, by its account and its words but for the numbers."""


def news(told: Told, account: str, words: str, now: float) -> Told | None:
    """What is told after this warning; None where it was told not long ago."""
    key = f"{account}: {NUMBERS.sub('', words)}"[:200]
    if 0 <= now - told.get(key, float("-inf")) < AGAIN_S:
        return None
    recent = {each: at for each, at in told.items() if 0 <= now - at < AGAIN_S}
    return {**recent, key: now}


CONFIRMS_S = 60.0
"""So long past its time a limit may last for those who share it: by then one of them is known to go on, or not."""


@dataclass(frozen=True)
class AccountPark:
    """An account of which nothing is started, or of some of its models."""

    account: str
    models: tuple[str, ...] | None
    until: float
    reason: str = ""

    @property
    def key(self) -> str:
        return self.account if self.models is None else f"{self.account}:{'|'.join(self.models)}"


@dataclass(frozen=True)
class Accounts:
    """The agents that are limited now, by name, and the fleet that they are of."""

    fleet: Fleet
    held: Mapping[str, LimitHold]

    @property
    def _of_the_fleet(self) -> Mapping[str, LimitHold]:
        """Without agents that were only found: they may be logged in as somebody else."""
        return {agent: limited for agent, limited in self.held.items() if agent in self.fleet.agents}

    def models_of(self, agent: str) -> tuple[str, ...] | None:
        """Which models an agent's limit is of, and what it calls its own; None: all of the account."""
        limited = self.held[agent]
        if limited.model is None:
            return None
        declared = self.fleet.agents.get(agent)
        return tuple(sorted({limited.model, (declared.model or "").lower() if declared is not None else ""}))

    def concerned(self, agent: str) -> tuple[str, ...]:
        """The other agents of the fleet file that an agent's limit concerns."""
        limited, models = self.held[agent], self.models_of(agent)
        return tuple(
            name
            for name, declared in self.fleet.agents.items()
            if name != agent
            and name not in self.fleet.declared.services
            and account_of(self.fleet, name) == limited.account
            and is_concerned(models, declared.model)
        )

    def holding(self, agent: str, account: str, now: float) -> str:
        """Why an agent is left alone: its own limit, or another's. Empty where none holds it."""
        return f"{self.held[agent].named} is reached" if agent in self.held else self.shared(agent, account, now)

    def shared(self, agent: str, account: str, now: float) -> str:
        """Which other agent's limit holds this one too; until it is known to be over, or should be."""
        declared = self.fleet.agents.get(agent)
        model = declared.model if declared is not None else None
        for name, limited in self._of_the_fleet.items():
            lasts = now < limited.resume_at + CONFIRMS_S or limited.is_under_way(now)
            if name == agent or limited.account != account or limited.stuck or not lasts:
                continue
            if is_concerned(self.models_of(name), model):
                return f"the limit of its account {account!r} is reached, as {name} was told"
        return ""

    def may_resume_at(self, agent: str, now: float, last_at: float, gap_s: float) -> float:
        """When an agent may be brought to go on, as far as the others of its account are concerned: they take turns,
        one is waited for until it is known to go on, and who was refused again tells that it is too early."""
        mine = self.held[agent]
        others = [
            limited
            for name, limited in self.held.items()
            if name != agent and (limited.account, limited.model) == (mine.account, mine.model) and not limited.stuck
        ]
        under_way = [now + 1.0 for each in others if each.is_under_way(now)]
        refused = [each.resume_at for each in others if each.tries and not each.asked and each.since > mine.resume_at]
        return max([last_at + gap_s if last_at else 0.0, *under_way, *refused])

    def parks(self, now: float) -> Iterator[AccountPark]:
        """What is not to be started now, each account and group of models once."""
        found: dict[str, AccountPark] = {}
        for agent, limited in self._of_the_fleet.items():
            until = limited.resume_at
            if limited.stuck or until <= now:
                continue
            resets = datetime.fromtimestamp(limited.resets_at, UTC) if limited.resets_at is not None else None
            when = f", resets {resets:%Y-%m-%d %H:%M:%S %Z}" if resets is not None else ""
            park = AccountPark(limited.account, self.models_of(agent), until, f"{agent} hit {limited.named}{when}")
            if park.key not in found or found[park.key].until < until:
                found[park.key] = park
        yield from found.values()
