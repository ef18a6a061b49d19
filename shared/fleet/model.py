"""What can be declared in a fleet file. Backends are data: how to run an agent's program, never code."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from shared.broker import BadEndpoint, Endpoint
from shared.ids import Id


class Section(BaseModel):
    """A part of the file. Unknown keys are refused: a typo must not pass for a setting."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class TmuxSettings(Section):
    socket: str = Field(default="default", description="A tmux socket name, or a path when it contains a slash.")


class BrokerSettings(Section):
    endpoints: list[str] = Field(
        default=[], description="mqtt://host:port, the first that answers is used; none: a private broker is started."
    )
    port: int | None = Field(
        default=None, ge=1, le=65535, description="The private broker's port; default: a free one."
    )
    websocket_port: int | None = Field(default=None, ge=0, le=65535, description="For browsers; 0: none.")

    @field_validator("endpoints")
    @classmethod
    def _are_addresses(cls, endpoints: list[str]) -> list[str]:
        for url in endpoints:
            try:
                Endpoint.parse(url)
            except BadEndpoint as error:
                raise ValueError(str(error)) from error
        return endpoints


class PollSettings(Section):
    connected_s: float = Field(default=30.0, gt=0, description="How often to look while a broker answers.")
    alone_s: float = Field(default=1.0, gt=0, description="How often to look while none does.")


class RestartPolicy(Section):
    """How often an agent that dies is started again, and when that is given up."""

    first_wait_s: float = Field(default=1.0, ge=0)
    longest_wait_s: float = Field(default=60.0, ge=0)
    burst: int = Field(default=5, ge=0, description="At most this many restarts …")
    burst_s: float = Field(default=60.0, gt=0, description="… within this time.")


class Backend(Section):
    """How to run one kind of agent. `{python}`, `{backends}`, `{agent}` and `{prompt}` in argv are filled in."""

    argv: list[str] = Field(min_length=1)
    env: dict[str, str] = {}


class Agent(Section):
    backend: Id = "demo"
    dir: Path = Field(default=Path(), description="The workspace; relative to the fleet file.")
    prompt: str = ""
    env: dict[str, str] = {}
    enabled: bool = Field(default=True, description="Whether it is to run without being asked.")
    restart: RestartPolicy = RestartPolicy()


class Declaration(Section):
    """The whole file."""

    host: Id | None = Field(default=None, description="This machine's name on the bus; default: its host name.")
    prefix: Id = "muster"
    tmux: TmuxSettings = TmuxSettings()
    broker: BrokerSettings = BrokerSettings()
    polls: PollSettings = PollSettings()
    backends: dict[Id, Backend] = {}
    agents: dict[Id, Agent] = {}

    @field_validator("agents", mode="before")
    @classmethod
    def _bare_agent_means_defaults(cls, agents: Any) -> Any:
        """`builder:` with nothing behind it is an agent with every default."""
        return (
            {name: {} if given is None else given for name, given in agents.items()}
            if isinstance(agents, dict)
            else agents
        )
