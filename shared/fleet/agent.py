"""Whom the fleet consists of."""

from enum import StrEnum
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from shared.fleet.policy import RestartPolicy, Wake, WatchPolicy
from shared.fleet.section import Section, VariablePattern, Variables
from shared.ids import Id


class Kind(StrEnum):
    PERSISTENT = "persistent"  # kept running
    LOOP = "loop"  # kept running, and works through phases in a role
    TASK = "task"  # one shot: not started again when it ends
    SERVICE = "service"  # a side service: any command, kept running; nobody types into it


class Agent(Section):
    kind: Kind = Kind.PERSISTENT
    backend: Id = "demo"
    dir: Path = Path()
    """The workspace; relative to this file."""
    role: str = Field(default="", max_length=200)
    prompt: str = ""
    prompt_file: Path | None = None
    """The prompt, kept in a file of its own; relative to this file."""
    model: str | None = None
    account: Id | None = None
    """Agents on one account share its usage limits."""
    env: Variables = {}
    env_from: list[VariablePattern] = []
    """Variables that it may see of Muster's own environment."""
    env_file: Path | None = None
    """NAME=value lines, for secrets that should not be in this file; readable by its owner only."""
    enabled: bool = True
    """Whether it is to run without being asked."""
    resume: bool = True
    """Whether a restart takes up the conversation where it ended, if the backend can."""
    resume_prompt: str = ""
    """What it is told then."""
    restart: RestartPolicy = RestartPolicy()
    watch: WatchPolicy = WatchPolicy()
    wake: Wake | None = None

    @model_validator(mode="after")
    def _one_prompt(self) -> Self:
        if self.prompt and self.prompt_file:
            raise ValueError("it has `prompt` and `prompt_file`; keep one of them")
        return self


class SideService(Section):
    """Any command that is kept running beside the agents, a development server, say."""

    argv: list[str] = Field(min_length=1)
    dir: Path = Path()
    """Where it runs; relative to this file."""
    env: Variables = {}
    env_from: list[VariablePattern] = []
    env_file: Path | None = None
    enabled: bool = True
    restart: RestartPolicy = RestartPolicy()
