"""What services can be asked to do: plain JSON arguments that a person can type, and the replies.

A command never holds a command line, a path or an environment: it names what the fleet file defines.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from shared.ids import Id

MAX_PAYLOAD = 256 * 1024
WAITS_AT_MOST_S = 60
"""A command that waited longer for its owner is answered `expired`: the world has moved on."""


class Command(BaseModel):
    """Fields that every command may carry beside its arguments. Unknown fields are refused: a typo must not act."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    verb: ClassVar[str]
    owner: ClassVar[str]

    id: Id | None = Field(
        default=None, description="Chosen by the sender; the same id acts once and is answered again."
    )
    reply_to: str | None = Field(
        default=None, description="A topic below `<prefix>/<host>/reply/`; default `reply/<id>`."
    )
    expires: AwareDatetime | None = Field(default=None, description="Not carried out after this time.")
    by: str | None = Field(default=None, max_length=200, description="Who asks, for the audit log.")

    def addressee(self) -> str:
        return self.owner

    def concerns(self) -> str | None:
        """The agent that it is about, `*` for all of them: who looks at these should wait."""
        return None


class AgentCommand(Command):
    agent: Id

    def concerns(self) -> str | None:
        return self.agent


class Spawn(AgentCommand):
    """Start the agent, and keep it running. What already runs is left alone, and the reply says so."""

    verb = "spawn"
    owner = "spawner"


class Stop(AgentCommand):
    """End the agent's session, and keep it down."""

    verb = "stop"
    owner = "spawner"

    for_now: bool = Field(default=False, description="Only until the services are started again.")


class StopAll(Command):
    """End every session of this fleet, also of agents that its file no longer declares."""

    verb = "stop_all"
    owner = "spawner"

    for_now: bool = Field(default=False, description="Only until the services are started again.")

    def concerns(self) -> str | None:
        return "*"


class Restart(AgentCommand):
    """End the agent's session and start a new one."""

    verb = "restart"
    owner = "spawner"


class Replay(Command):
    """Publish a service's events again, from its journal. Readers drop what they had, by `seq`."""

    verb = "replay"
    owner = "*"

    service: Id
    epoch: str | None = Field(default=None, description="Refused when the journal is of another epoch.")
    after: int = Field(ge=0)

    def addressee(self) -> str:
        return self.service


VERBS: Mapping[str, type[Command]] = {command.verb: command for command in (Spawn, Stop, StopAll, Restart, Replay)}


class Reply(BaseModel):
    """The answer to a command: `ok`, or an error with a sentence a person understands."""

    model_config = ConfigDict(frozen=True)

    id: str
    verb: str
    ok: bool
    said: str = Field(description="What was done, or what is wrong and what to do about it.")
    code: str = Field(
        default="ok",
        description="`ok`, `malformed`, `unknown_verb`, `unknown_agent`, `unknown_service`, `refused`, `expired`"
        " or `retained`.",
    )
    result: dict[str, Any] = {}
    by: str = Field(description="The service that answers.")
    time: AwareDatetime
