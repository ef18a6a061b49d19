"""A record, and a file as a person left it."""

import textwrap
from datetime import UTC, datetime
from typing import Any

from registry import AgentRecord
from shared.contract.states import Desired, Status

NOW = datetime(2030, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)


def record(**changes: Any) -> AgentRecord:
    given_: dict[str, Any] = {
        "status": Status.RUNNING,
        "since": NOW,
        "reason": "spawned",
        "desired": Desired.RUNNING,
        "backend": "demo",
        "workspace": "/work",
        "session": "builder",
        "pane": "%3",
        "pid": 7,
        "spawn": "s1",
    }
    return AgentRecord(**{**given_, **changes})


EDITED = textwrap.dedent("""\
    # mine, at the top
    version: 1
    note: kept   # why
    agents:
      # about the builder
      builder:
        status: running   # for now
        since: '2030-01-01T12:00:00Z'
        reason: spawned
        desired: running
        owner: Ann        # a key of my own
        backend: demo
        workspace: /work
        spawn: s1
    after: [1, 2]
    """)
