"""Observations and claims for the tests of policies: what matters is said, the rest is as it mostly is."""

from datetime import UTC, datetime
from typing import Any

from services.monitor.limits.claims import LimitClaim
from services.monitor.policies.policy import AgentObservation, PolicyOutcome
from shared.contract.commands import Command, Reply
from shared.contract.states import Activity
from shared.fleet import Agent

NOW = 1_900_000_000.0


def observation(status: Activity = Activity.WAITING, since: float = NOW - 100, **more: Any) -> AgentObservation:
    known: dict[str, Any] = {
        "agent": "builder",
        "spawn": "s1",
        "reason": "its turn ended",
        "now": NOW,
        "declared": Agent(prompt="build"),
        "account": "acme",
        "conversation": "c1",
        "paints": True,
    }
    return AgentObservation(status=status, since=since, **{**known, **more})


def claim(resets_at: float | None = NOW + 600, at: float = NOW - 10, **more: Any) -> LimitClaim:
    return LimitClaim(at, **{"scope": "session", "resets_at": resets_at, "exact_to_s": 60.0, "said": "limit", **more})


def reply(command_id: str, *, ok: bool = True) -> dict[str, Reply]:
    said = "builder has the text" if ok else "the agent works by now"
    when = datetime.fromtimestamp(NOW, UTC)
    return {command_id: Reply(id=command_id, verb="send", ok=ok, said=said, by="spawner", time=when)}


def kinds(outcome: PolicyOutcome[Any]) -> list[str]:
    return [event.kind for event in outcome.events]


def verbs(outcome: PolicyOutcome[Any]) -> list[str]:
    return [command.verb for command, _ in outcome.commands]


def only(outcome: PolicyOutcome[Any]) -> Command:
    ((command, _),) = outcome.commands
    return command
