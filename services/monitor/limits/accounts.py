"""What the limits of single agents mean for the others on their account: which wait, what is not started. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from services.monitor.limits.hold import LimitHold
from shared.fleet import Fleet
from shared.fleet.fleet import account_of, is_concerned

CONFIRMED_WITHIN_S = 60.0
"""How long after its reset a limit still holds the others: by then the limited agent is known to go on, or not."""


@dataclass(frozen=True)
class AccountPark:
    """An account, or some of its models, on which nothing is started until a time."""

    account: str
    models: tuple[str, ...] | None
    until: float
    reason: str = ""

    @property
    def key(self) -> str:
        return self.account if self.models is None else f"{self.account}:{'|'.join(self.models)}"


@dataclass(frozen=True)
class Accounts:
    """The holds of limited agents, by agent, and the fleet that says which agents share an account."""

    fleet: Fleet
    holds: Mapping[str, LimitHold]

    @property
    def _declared(self) -> Mapping[str, LimitHold]:
        """Without agents that were only found: they may be logged in as somebody else."""
        return {agent: hold for agent, hold in self.holds.items() if agent in self.fleet.agents}

    def models_of(self, agent: str) -> tuple[str, ...] | None:
        """The models that an agent's limit is of, with the agent's own name for its model; None: the whole account."""
        hold = self.holds[agent]
        if hold.model is None:
            return None
        declared = self.fleet.agents.get(agent)
        return tuple(sorted({hold.model, (declared.model or "").lower() if declared is not None else ""}))

    def concerned(self, agent: str) -> tuple[str, ...]:
        """The other agents of the fleet file that an agent's limit concerns."""
        hold, models = self.holds[agent], self.models_of(agent)
        return tuple(
            name
            for name, declared in self.fleet.agents.items()
            if name != agent
            and name not in self.fleet.declared.services
            and account_of(self.fleet, name) == hold.account
            and is_concerned(models, declared.model)
        )

    def why_held(self, agent: str, account: str, now: float) -> str:
        """Why a limit holds an agent: its own, or another agent's. Empty where none does."""
        if agent in self.holds:
            return f"{self.holds[agent].named} is reached"
        return self.why_held_by_another(agent, account, now)

    def why_held_by_another(self, agent: str, account: str, now: float) -> str:
        """Which other agent's limit holds this one, until that limit is over, or should be."""
        declared = self.fleet.agents.get(agent)
        model = declared.model if declared is not None else None
        for name, hold in self._declared.items():
            lasts = now < hold.resume_at + CONFIRMED_WITHIN_S or hold.is_under_way(now)
            if name == agent or hold.account != account or hold.stuck or not lasts:
                continue
            if is_concerned(self.models_of(name), model):
                return f"the limit of its account {account!r} is reached, as {name} was told"
        return ""

    def may_resume_at(self, agent: str, now: float, last_prompt_at: float, gap_s: float) -> float:
        """When the others of its account let an agent be asked to go on.

        They are asked one after the other, `gap_s` apart, and each is waited for until it is known to go on. One that
        is refused again shows that it is too early for all.
        """
        own = self.holds[agent]
        others = [
            hold
            for name, hold in self.holds.items()
            if name != agent and (hold.account, hold.model) == (own.account, own.model) and not hold.stuck
        ]
        under_way = [now + 1.0 for each in others if each.is_under_way(now)]
        refused = [each.resume_at for each in others if each.tries and not each.command and each.since > own.resume_at]
        return max([last_prompt_at + gap_s if last_prompt_at else 0.0, *under_way, *refused])

    def parks(self, now: float) -> Iterator[AccountPark]:
        """What is not to be started now: each account and group of models once."""
        found: dict[str, AccountPark] = {}
        for agent, hold in self._declared.items():
            until = hold.resume_at
            if hold.stuck or until <= now:
                continue
            resets = datetime.fromtimestamp(hold.resets_at, UTC) if hold.resets_at is not None else None
            when = f", resets {resets:%Y-%m-%d %H:%M:%S %Z}" if resets is not None else ""
            park = AccountPark(hold.account, self.models_of(agent), until, f"{agent} hit {hold.named}{when}")
            if park.key not in found or found[park.key].until < until:
                found[park.key] = park
        yield from found.values()
