"""One question to a copy of an agent's conversation, with all that it takes to ask it."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from registry import AgentRecord
from services.monitor.health.question import SCHEMA, question_for
from shared.agents.fork import FORKS, CannotAsk, Fork, OriginalConversation
from shared.agents.hooks.command import GIVEN
from shared.agents.parts import FOLDER
from shared.fleet import Backend, Fleet
from shared.fleet import launch_needs as needs
from shared.fleet.backend import ForkRules
from shared.fleet.launch_needs import fill, spliced

AGENT_MARKS = ("MUSTER_AGENT", "MUSTER_SPAWN")
"""Variables of the agent's own processes; the copy is none of them."""
FLEET = "MUSTER_FLEET"


@dataclass(frozen=True)
class Query:
    """A question that is ready to run. `{scratch}` and `{transcript}` in its words are filled in when it runs."""

    fork: Fork
    original: OriginalConversation
    argv: list[str]
    env: Mapping[str, str] = field(repr=False)
    question: str
    model: str
    timeout_s: float

    @property
    def is_argument(self) -> bool:
        """Whether the question is on the command line; else it is the standard input."""
        return any("{question}" in word for word in self.argv)


@dataclass(frozen=True)
class QueryOptions:
    """What a person asks otherwise than a health check would."""

    question: str | None = None
    model: str | None = None
    timeout_s: float | None = None


def of_session(record: AgentRecord | None, spawn: str) -> AgentRecord | None:
    """The record, if it is already of this session."""
    return record if record is not None and record.spawn == spawn else None


def why_not(fleet: Fleet, agent: str, name: str, record: AgentRecord | None) -> str:
    """Why an agent can't be asked; empty where it can. `name` is its backend."""
    if agent not in fleet.agents:
        return f"{agent} is not in the fleet file, so nobody knows with which environment to ask it; declare it there"
    if fleet.backends[name].ask is None:
        return f"{agent} runs on {name}, and a conversation of that can't be asked; `ask` of the backend would say how"
    if record is None or record.conversation is None:
        return f"no conversation of {agent} is known yet: it has had no turn; ask again after its first one"
    return ""


def query_for(
    fleet: Fleet,
    agent: str,
    name: str,
    record: AgentRecord | None,
    own: Mapping[str, str],
    options: QueryOptions | None = None,
) -> Query:
    """Raises CannotStart or CannotAsk with a sentence. `own` is Muster's environment."""
    options, backend = options or QueryOptions(), fleet.backends[name]
    ask = backend.ask
    if (why := why_not(fleet, agent, name, record)) or ask is None or record is None or record.conversation is None:
        raise CannotAsk(why)
    policy, workspace = fleet.agents[agent].watch.health, Path(record.workspace)
    if not workspace.is_dir():
        raise CannotAsk(f"the workspace {workspace} of {agent} is not a directory any more")
    model = options.model or policy.model or ask.model
    if model.startswith("-"):
        raise CannotAsk(f"{model!r} is no name of a model: a program would take it for an option")
    env = {**needs.variables_of(fleet, agent, backend, own), FLEET: str(fleet.path), GIVEN: "none"}
    env = {key: value for key, value in env.items() if key not in AGENT_MARKS}
    if model and backend.model.env:
        env[backend.model.env] = model
    values = {
        "python": sys.executable,
        "backends": str(FOLDER),
        "agent": agent,
        "session": record.conversation,
        "workspace": str(workspace),
        "model": model,
        "schema": SCHEMA,
    }
    values["binary"] = needs.program_of(fleet, name, backend, values, env.get("PATH"))
    return Query(
        fork=FORKS[ask.kind],
        original=OriginalConversation(
            record.conversation, Path(record.transcript) if record.transcript else None, workspace, env
        ),
        argv=[fill(word, values) for word in _words(backend, ask, model, is_usual=options.question is None)],
        env={key: fill(value, values) for key, value in ask.env.items()},
        question=question_for(options.question),
        model=model,
        timeout_s=options.timeout_s or policy.timeout_s,
    )


def _words(backend: Backend, ask: ForkRules, model: str, *, is_usual: bool) -> list[str]:
    """Only the usual question has a schema for its answer."""
    lists = {"model_args": backend.model.args if model else [], "schema_args": ask.schema_args if is_usual else []}
    return spliced(ask.argv, lists)
