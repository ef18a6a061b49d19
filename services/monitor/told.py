"""What was told of each agent: a change once, and each time that it asks a person. It survives a restart."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from registry import AgentRecord
from services.monitor.fusion import Verdict
from shared.events import ApprovalNeeded, StatusChanged
from shared.states import Activity
from shared.turn import Turn

TOLD = "told:"
BY_LOOKS = "dialog "
"""How the key of a question begins that only its dialog tells from the next."""
SHOWS_WITHIN_S = 1.5
"""Who asks is told when the dialog is on the screen, so that it can be told with it; after so long, in any case."""


@dataclass(frozen=True)
class Told:
    spawn: str
    status: Activity
    since: float
    asked: str = ""
    """The question that was told of last."""

    @classmethod
    def read(cls, kept: dict[str, Any]) -> "Told":
        return cls(**{**kept, "status": Activity(kept["status"])})


@dataclass(frozen=True)
class Question:
    """What an agent asks a person now."""

    key: str
    """Tells it from the next."""
    since: float
    why: str
    dialog: str = ""
    fingerprint: str = ""


def told_of(turn: Turn, agent: str, spawn: str) -> Told | None:
    """What was last told of this session."""
    kept = turn.recall(f"{TOLD}{agent}")
    told = Told.read(kept) if kept is not None else None
    return told if told is not None and told.spawn == spawn else None


def tell(
    turn: Turn, agent: str, spawn: str, verdict: Verdict, question: Question | None, subagents: dict[str, Activity]
) -> None:
    """Tell what is new about an agent."""
    before = told_of(turn, agent, spawn)
    now = turn.now.timestamp()
    told = before
    if before is None or before.status is not verdict.status:
        winner = verdict.winner
        since = _since(verdict, before, now)
        turn.tell(
            StatusChanged(
                agent=agent,
                spawn=spawn,
                status=verdict.status,
                was=before.status if before is not None else None,
                since=_time(since),
                reason=verdict.reason,
                decided_by=winner.source.value if winner is not None else "",
                rule=winner.rule if winner is not None else "",
                subagents=subagents,
            )
        )
        told = Told(spawn, verdict.status, since, _still_asked(verdict, before))
    if told is not None and question is not None and question.key != told.asked:
        if question.dialog or now - question.since >= SHOWS_WITHIN_S:
            turn.tell(
                ApprovalNeeded(
                    agent=agent,
                    spawn=spawn,
                    since=_time(question.since),
                    reason=question.why,
                    dialog=question.dialog,
                    fingerprint=question.fingerprint,
                )
            )
            told = Told(spawn, told.status, told.since, question.key)
        else:
            turn.again_at(_time(question.since + SHOWS_WITHIN_S))
    if told is not None and told != before:
        turn.remember(f"{TOLD}{agent}", asdict(told))


def _still_asked(verdict: Verdict, before: Told | None) -> str:
    """The question that needs not be told again. One that is known by its looks is over when the agent goes on."""
    asked = before.asked if before is not None else ""
    is_over = verdict.status is not Activity.NEEDS_APPROVAL and asked.startswith(BY_LOOKS)
    return "" if is_over else asked


def _since(verdict: Verdict, before: Told | None, now: float) -> float:
    """When it began, by what decided it; now, where that is older than what was told before: it is so again."""
    at = verdict.winner.at if verdict.winner is not None else now
    return min(at, now) if before is None or at > before.since else now


def tell_end(turn: Turn, agent: str, record: AgentRecord | None) -> None:
    """Of a session that is gone: how it ended, once the record says so, and nothing any more after that."""
    kept = turn.recall(f"{TOLD}{agent}")
    if kept is None:
        return
    told = Told.read(kept)
    if record is not None and record.spawn == told.spawn and record.is_running:
        return  # it will be told soon what became of it
    over = (Activity.DONE, Activity.FAILED)
    if record is not None and record.spawn == told.spawn and record.activity in over and told.status not in over:
        turn.tell(
            StatusChanged(
                agent=agent,
                spawn=told.spawn,
                status=record.activity,
                was=told.status,
                since=record.ended or turn.now,
                reason=record.reason,
                decided_by="processes",
            )
        )
    turn.remember(f"{TOLD}{agent}", None)


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
