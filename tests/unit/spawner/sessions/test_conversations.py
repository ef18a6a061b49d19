"""Of what the reconciler tells, the spawner takes up one thing: the conversation of an agent's newest session."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from services.spawner.service import Spawner
from services.spawner.sessions.conversations import note_identified
from shared.contract.envelope import AgentEvent, Envelope
from shared.contract.events.drift import Identified, SessionMissing, StaleId
from shared.contract.services import entry_of
from shared.contract.topics import AGENT_DRIFT
from shared.messaging.cursors import ReceivedEvent
from tests.unit.spawner.samples import remembered, view

KNOWN = remembered("s2", conversation="before")


def heard(event: AgentEvent, host: str = "box") -> ReceivedEvent:
    envelope: Envelope[Any] = Envelope(
        type=f"muster.drift.{event.kind}",
        subject=event.agent,
        time=datetime.now(UTC),
        data=event,
        source=f"/{host}/reconciler",
        seq=1,
        epoch="e",
        id="i",
    )
    return ReceivedEvent(host, AGENT_DRIFT, envelope)


def identified(conversation: str = "after", spawn: str = "s2", agent: str = "builder") -> Identified:
    return Identified(agent=agent, spawn=spawn, conversation=conversation)


def test_it_follows_the_drifts() -> None:
    assert AGENT_DRIFT.pattern in entry_of(Spawner.name).follows


def test_the_conversation_that_an_agent_went_on_to_is_remembered(tmp_path: Path) -> None:
    now = view(tmp_path, known={"builder": KNOWN})
    note_identified(now, [heard(identified("between")), heard(identified("after"))])
    assert now.known("builder") == remembered("s2", conversation="after")


@pytest.mark.parametrize(
    "told",
    [
        heard(identified(spawn="s1")),
        heard(identified(), host="elsewhere"),
        heard(identified(agent="nobody")),
        heard(identified("before")),
        heard(SessionMissing(agent="builder", spawn="s2", session="builder")),
        heard(StaleId(agent="builder", spawn="s2", conversation="before", transcript="/gone")),
    ],
    ids=["older spawn", "another host", "unknown agent", "nothing new", "missing", "stale id"],
)
def test_all_else_changes_nothing(tmp_path: Path, told: ReceivedEvent) -> None:
    now = view(tmp_path, known={"builder": KNOWN})
    note_identified(now, [told])
    assert now.turn.memory.changes == {}
