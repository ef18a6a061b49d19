"""A fleet, records and news for the board's tests: a test names what matters to it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from registry import AgentRecord
from services.board.memory import CardMemory
from services.board.news import CardNews
from shared.contract.envelope import Tone, Urgency
from shared.contract.states import Activity, Desired, Status
from shared.fleet import Fleet
from shared.fleet.declaration import Declaration
from tests.fakes.records import START, make_record

NOW = START.timestamp()
AGENTS: dict[str, Any] = {
    "builder": {"backend": "claude", "model": "opus"},
    "reviewer": {"backend": "claude", "role": "reads", "kind": "loop"},
    "sender": {"backend": "codex", "account": "team"},
    "mover": {"backend": "demo", "kind": "task"},
    "sleeper": {"backend": "demo", "enabled": False},
}
LOOPS: dict[str, Any] = {
    "main": {"remote": "x.git", "roles": {"build": "builder", "review": "reviewer"}, "phases": [{"name": "draft"}]}
}
SIDE: dict[str, Any] = {"proxy": {"argv": ["sleep", "1"]}}


def make_fleet(**more: Any) -> Fleet:
    declared = {"host": "box", "agents": AGENTS, "loops": LOOPS, "services": SIDE, **more}
    return Fleet(Path("/nowhere/fleet.yaml"), Declaration.model_validate(declared))


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def doing(activity: Activity | None, since: float = 0.0, reason: str = "", **more: Any) -> AgentRecord:
    """The record of an agent that runs and does this."""
    known = {"backend": "claude", "since": after(-1000), "activity": activity, "activity_since": after(since)}
    return make_record(Status.RUNNING, **{**known, "activity_reason": reason, **more})


def news(about: str = "drift.moved", same: str = "", text: str = "it moved", **more: Any) -> CardNews:
    return CardNews("builder", about, Tone.BAD, more.pop("urgency", Urgency.NEWS), text, same=same, **more)


def known_card(**more: Any) -> CardMemory:
    return CardMemory(**more)


TIMES = st.none() | st.datetimes(datetime(2029, 1, 1), datetime(2031, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
WORDS = st.text(max_size=300) | st.sampled_from(["", " ", "\n", "it uses Bash: ls", "its turn ended"])
RECORDS = st.builds(
    make_record,
    st.sampled_from(Status),
    desired=st.sampled_from(Desired),
    since=TIMES.filter(bool),
    reason=WORDS,
    activity=st.none() | st.sampled_from(Activity),
    activity_since=TIMES,
    activity_reason=WORDS,
    exit_status=st.none() | st.integers(-20, 255),
    limit=st.none() | WORDS,
    account=st.none() | st.sampled_from(["claude", "team"]),
    limit_resets=TIMES,
    spawn=st.sampled_from(["s1", "s2"]),
    started=TIMES,
    backend=st.sampled_from(["claude", "codex", "service", "gone"]),
)
