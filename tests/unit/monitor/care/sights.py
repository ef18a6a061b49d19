"""Sights for the tests of policies: what matters is said, the rest is as it mostly is."""

from datetime import UTC, datetime
from typing import Any

from services.monitor.care.sight import Outcome, Sight
from services.monitor.limits.claims import Claim
from shared.commands import Command, Reply
from shared.fleet import Agent
from shared.states import Activity

NOW = 1_900_000_000.0


def sight(status: Activity = Activity.WAITING, since: float = NOW - 100, **more: Any) -> Sight:
    known: dict[str, Any] = {
        "agent": "builder",
        "spawn": "s1",
        "reason": "its turn ended",
        "now": NOW,
        "declared": Agent(prompt="build"),
        "account": "acme",
        "conversation": "c1",
        "draws": True,
    }
    return Sight(status=status, since=since, **{**known, **more})


def claim(resets_at: float | None = NOW + 600, at: float = NOW - 10, **more: Any) -> Claim:
    return Claim(at, **{"scope": "session", "resets_at": resets_at, "exact_to_s": 60.0, "said": "limit", **more})


def reply(errand: str, *, ok: bool = True) -> dict[str, Reply]:
    said = "builder has the text" if ok else "the agent works by now"
    when = datetime.fromtimestamp(NOW, UTC)
    return {errand: Reply(id=errand, verb="send", ok=ok, said=said, by="spawner", time=when)}


def kinds(outcome: Outcome[Any]) -> list[str]:
    return [event.kind for event in outcome.tells]


def verbs(outcome: Outcome[Any]) -> list[str]:
    return [command.verb for command, _ in outcome.asks]


def only(outcome: Outcome[Any]) -> Command:
    ((command, _),) = outcome.asks
    return command
