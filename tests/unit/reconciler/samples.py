"""Records, panes and observations for the reconciler's tests: a test names what matters to it."""

from typing import Any

from registry import AgentRecord
from services.reconciler.classification import Examination, Observation
from shared.agents.identity import ConversationIdentity
from shared.contract.states import Status
from shared.system.tmux import Pane
from tests.fakes.records import START, make_pane, make_record

NOW = START


def record(status: Status = Status.RUNNING, **changes: Any) -> AgentRecord:
    return make_record(status, **{"reason": "", "backend": "claude", "session": "builder", **changes})


def pane(spawn: str | None = "s1", *, session: str = "builder", dead: bool = False, **changes: Any) -> Pane:
    known = {"agent": "builder", "session": session, "command": "claude", "dead": dead}
    return make_pane(spawn=spawn, **{**known, **changes})


def observation(found: Pane | None = None, identity: ConversationIdentity | None = None, **changes: Any) -> Observation:
    return Observation(
        found or pane(), Examination(runs_its_backend=True, found="claude", identity=identity), **changes
    )
