"""Whom the fleet consists of."""

from enum import StrEnum
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from shared.fleet.policy import RestartPolicy
from shared.fleet.section import Section, VariablePattern, Variables
from shared.fleet.watch import Wake, WatchPolicy
from shared.ids import Id


class Kind(StrEnum):
    PERSISTENT = "persistent"  # kept running
    LOOP = "loop"  # kept running, and works through phases in a role
    TASK = "task"  # one shot: not started again when it ends
    SERVICE = "service"  # a side service: any command, kept running; nobody types into it


class Agent(Section):
    """One agent; what it does not say, `defaults` says."""

    kind: Kind = Kind.PERSISTENT
    """`persistent` is kept running, `loop` too, but is started anew for each phase of its loop, `task` is not started
    again when it ends."""
    backend: Id = "demo"
    """What runs it: one of `backends`, or one that comes with Muster."""
    dir: Path = Path()
    """The workspace; relative to this file."""
    role: str = Field(default="", max_length=200)
    """What it is there for, in a few words for people."""
    prompt: str = ""
    """What it is told when it starts."""
    prompt_file: Path | None = None
    """The prompt, kept in a file of its own; relative to this file."""
    model: str | None = None
    """By the name that the backend's program knows; default: the program's own choice."""
    account: Id | None = None
    """Agents on one account share its usage limits."""
    env: Variables = {}
    """Variables of its own; `env_file` is for secrets."""
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
    """The command line; no shell reads it."""
    dir: Path = Path()
    """Where it runs; relative to this file."""
    env: Variables = {}
    """Variables of its own."""
    env_from: list[VariablePattern] = []
    """Variables that it may see of Muster's own environment."""
    env_file: Path | None = None
    """NAME=value lines; readable by its owner only."""
    enabled: bool = True
    """Whether it is to run without being asked."""
    restart: RestartPolicy = RestartPolicy()
