"""The card of an agent: what its record, the fleet file and the board's memory say of it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from registry import AgentRecord
from services.board.columns import column_of
from services.board.headlines import headline
from services.board.memory import CardMemory
from shared.contract.states import Activity, CardColumn, CardQuestion, CardState
from shared.fleet import Fleet
from shared.fleet.fleet import SIDE_SERVICE, account_of

NOT_STARTED = "not_started"


@dataclass(frozen=True)
class CardContext:
    """What the cards of all agents depend on."""

    fleet: Fleet
    records: Mapping[str, AgentRecord]
    branches: Mapping[str, str | None] = field(default_factory=dict)
    """The git branch of each agent's workspace."""
    limited: Mapping[str, str] = field(default_factory=dict)
    """The accounts whose usage limit is reached, and the agent that has hit it."""

    @classmethod
    def of(cls, fleet: Fleet, records: Mapping[str, AgentRecord], branches: Mapping[str, str | None]) -> "CardContext":
        limited = {record.account: agent for agent, record in records.items() if record.limit and record.account}
        return cls(fleet, records, branches, limited)

    @property
    def agents(self) -> list[str]:
        """The declared agents in the order of the fleet file, then those that only have a record."""
        return list(dict.fromkeys([*self.fleet.agents, *self.records]))


def loop_of(fleet: Fleet, agent: str) -> str | None:
    """The loop that an agent plays a role in."""
    return next((name for name, loop in fleet.declared.loops.items() if agent in loop.roles.values()), None)


def update(context: CardContext, agent: str, memory: CardMemory, now: datetime) -> tuple[CardState, CardMemory]:
    """The card as it is now, and what to remember of it."""
    record, declared = context.records.get(agent), context.fleet.agents.get(agent)
    backend = record.backend if record is not None else declared.backend if declared is not None else "unknown"
    account = account_of(context.fleet, agent, backend)
    hit_by = context.limited.get(account, "")
    facts = {
        "is_watched": backend != SIDE_SERVICE,
        "starts": declared is not None and context.fleet.starts_by_itself(agent),
    }
    is_parked = bool(hit_by) and (record is None or record.is_running)
    column = column_of(record, is_parked=is_parked, **facts)
    parked_by = hit_by if column is CardColumn.LIMITED and hit_by != agent else ""
    spawn = record.spawn if record is not None else None
    if (memory.column, memory.spawn) != (column, spawn):
        memory = replace(memory, column=column, spawn=spawn, since=_since(record, column, memory, now).timestamp())
    if _is_answered(record, memory):
        memory = replace(memory, question=None, asked_by="")
    holder = _holder(record, context.records.get(hit_by)) if column is CardColumn.LIMITED else None
    loop = loop_of(context.fleet, agent)
    card = CardState(
        card=agent,
        agent=agent,
        column=column,
        since=_time(memory.since),
        headline=headline(record, parked_by=parked_by, **facts),
        reason=_reason(record),
        question=_question(record, memory) if column is CardColumn.NEEDS_YOU else None,
        role=_role(context.fleet, agent, record, loop),
        loop=loop,
        backend=backend,
        model=declared.model if declared is not None else None,
        branch=context.branches.get(agent),
        workspace=record.workspace if record is not None else "",
        status=record.status.value if record is not None else NOT_STARTED,
        activity=record.activity if record is not None and record.is_running else None,
        desired=record.desired if record is not None else None,
        account=account if holder is not None else None,
        limit=holder.limit if holder is not None else None,
        limit_resets=holder.limit_resets if holder is not None else None,
        resumes=record.resumes if record is not None and holder is not None else None,
        last_words=memory.last_words if record is not None and not record.is_running else "",
        drifts=record.drifts if record is not None else [],
        monitoring=memory.is_monitored,
        stopped_by=memory.stopped_by or None,
        stopped_at=_time(memory.stopped_at) if memory.stopped_by else None,
        missed=sum(memory.missed.values()),
        comments=memory.comments,
        notable=memory.notable,
        spawn=spawn,
        session=record.session if record is not None and record.is_running else None,
        started=record.started if record is not None else None,
    )
    return card, memory


def _role(fleet: Fleet, agent: str, record: AgentRecord | None, loop: str | None) -> str:
    """What it is there for: by its record, by the fleet file, or by its loop."""
    declared = fleet.agents.get(agent)
    if role := (record.role if record is not None else "") or (declared.role if declared is not None else ""):
        return role
    roles = fleet.declared.loops[loop].roles if loop is not None else {}
    return next((role for role, player in roles.items() if player == agent), "")


def _since(record: AgentRecord | None, column: CardColumn, memory: CardMemory, now: datetime) -> datetime:
    """When it came into this column, by the facts; not before it came into the last one, and not in the future."""
    if record is None:
        return now
    known = record.activity_since if record.is_running and column is not CardColumn.STARTING else None
    at = min(known or record.since, now)
    if memory.spawn == record.spawn and memory.column is not None:
        # An older fact does not explain the change: the limit of its account began, or is over.
        return at if at > _time(memory.since) else now
    return max(at, min(record.started or record.since, now))


def _holder(record: AgentRecord | None, other: AgentRecord | None) -> AgentRecord | None:
    """Whose limit holds an agent: its own comes before another one of the same account."""
    return record if record is not None and record.limit else other


def _reason(record: AgentRecord | None) -> str:
    if record is None:
        return ""
    return record.activity_reason if record.is_running and record.activity is not None else record.reason


def _question(record: AgentRecord | None, memory: CardMemory) -> CardQuestion | None:
    """What it asks. Its dialog may be told a moment later than that it asks."""
    if record is None or record.activity is not Activity.NEEDS_APPROVAL:
        return None
    if memory.question is not None and memory.asked_by == record.spawn:
        return memory.question
    return CardQuestion(since=record.activity_since or record.since, reason=record.activity_reason)


def _is_answered(record: AgentRecord | None, memory: CardMemory) -> bool:
    """Whether the agent went on after it had asked: what it asks next is another question."""
    if memory.question is None or record is None or record.spawn != memory.asked_by:
        return False  # a record may be told a moment later than a question
    goes_on = record.activity is not Activity.NEEDS_APPROVAL
    return goes_on and record.activity_since is not None and record.activity_since > memory.question.since


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
