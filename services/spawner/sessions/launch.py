"""Planning a session for an agent: from the fleet file to an argv and an environment, with no shell in between."""

import hashlib
import sys
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from shared.agents.hooks.command import GIVEN
from shared.agents.hooks.injection import InjectedHooks, given
from shared.agents.parts import FOLDER
from shared.fleet import Backend, Fleet, PromptDelivery
from shared.fleet import launch_needs as needs
from shared.fleet.launch_needs import TMUX_SETS, CannotStart, fill, matches, spliced


def to_hide(server: Iterable[str], env: Mapping[str, str]) -> list[str]:
    """Variables of the tmux server that the agent must not see."""
    return sorted(name for name in server if name not in env and not matches(name, TMUX_SETS))


__all__ = [
    "CannotStart",
    "Launch",
    "LaunchOverrides",
    "ResumeTarget",
    "can_resume",
    "conversation_of",
    "plan",
    "workspace_of",
]

LONGEST_ARGUMENT = 100_000
"""Bytes. Linux allows 128 KB in one argument."""


@dataclass(frozen=True)
class LaunchOverrides:
    """How one start differs from the fleet file."""

    prompt: str | None = None
    model: str | None = None
    backend: str | None = None
    dir: str | None = None

    def differences(self) -> dict[str, str]:
        """Only what was given, as it is remembered."""
        return {key: value for key, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class ResumeTarget:
    """The conversation that a start resumes: by the agent's own id, or the newest one."""

    id: str | None = None


@dataclass(frozen=True)
class Launch:
    """Everything that a start needs, and what is typed after it."""

    agent: str
    backend: str
    argv: list[str]
    workspace: Path
    env: dict[str, str] = field(repr=False)
    conversation: str | None
    resumed: bool
    paste: str
    """The prompt, if it is typed once the agent is ready."""
    prompt_file: Path | None
    prompt: str
    hooks: InjectedHooks = field(default_factory=InjectedHooks, repr=False)
    """The hooks that the agent is started with."""


def plan(
    fleet: Fleet,
    agent: str,
    spawn: str,
    own: Mapping[str, str],
    overrides: LaunchOverrides | None = None,
    resume: ResumeTarget | None = None,
) -> Launch:
    """Work out how to start an agent, or raise CannotStart. `own` is Muster's environment."""
    overrides = overrides or LaunchOverrides()
    declared = fleet.agents[agent]
    name, backend = _backend(fleet, agent, overrides)
    workspace = workspace_of(fleet, agent, overrides)
    env = needs.variables_of(fleet, agent, backend, own)
    resume = resume if can_resume(backend, resume) else None
    prompt = declared.resume_prompt if resume else _prompt(fleet, agent, overrides)
    heeded = resume is None or backend.resume.takes_prompt
    by_argument = backend.deliver is PromptDelivery.ARG and heeded and _fits(prompt, backend)
    model = overrides.model or declared.model
    conversation = resume.id if resume else conversation_of(backend, spawn)
    prompt_file = fleet.home / "prompts" / f"{agent}.txt"
    values = {
        "python": sys.executable,
        "backends": str(FOLDER),
        "agent": agent,
        "prompt": prompt,
        "prompt_file": str(prompt_file),
        "session": conversation or "",
        "model": model or "",
        "workspace": str(workspace),
    }
    lists = {
        "extra_args": backend.extra_args,
        "resume_args": (backend.resume.args if resume.id else backend.resume.latest) if resume else [],
        "fresh_args": [] if resume else backend.fresh_args,
        "model_args": backend.model.args if model else [],
        "prompt_args": backend.prompt_args if prompt and by_argument else [],
    }
    if model and backend.model.env:
        env[backend.model.env] = model
    hooks = given(backend.hooks, fleet.hooks, [*backend.argv, *backend.extra_args], env)
    env |= hooks.env
    if backend.hooks is None:
        env[GIVEN] = "none"  # what an agent without hooks runs, another agent say, must not tell in its name
    values |= hooks.values
    words = spliced(backend.argv, {**lists, "hooks_args": hooks.args})
    needs_file = backend.deliver is PromptDelivery.EXEC or any("{prompt_file}" in word for word in words)
    values["binary"] = needs.program_of(fleet, name, backend, values, env.get("PATH"))
    if not backend.binary:
        words = ["{binary}", *words[1:]]
    return Launch(
        agent=agent,
        backend=name,
        argv=[fill(word, values) for word in words],
        workspace=workspace,
        env=env,
        conversation=conversation,
        resumed=resume is not None,
        paste="" if by_argument or backend.deliver is PromptDelivery.EXEC else prompt,
        prompt_file=prompt_file if needs_file else None,
        prompt=prompt,
        hooks=hooks,
    )


def can_resume(backend: Backend, wanted: ResumeTarget | None) -> bool:
    return wanted is not None and bool(backend.resume.args if wanted.id else backend.resume.latest)


def conversation_of(backend: Backend, spawn: str) -> str | None:
    """The id of a new conversation, where Muster may choose it. It follows from the spawn id."""
    if not any("{session}" in word for word in backend.fresh_args):
        return None
    return str(uuid.UUID(bytes=hashlib.sha256(spawn.encode()).digest()[:16], version=4))


def _backend(fleet: Fleet, agent: str, overrides: LaunchOverrides) -> tuple[str, Backend]:
    if overrides.backend is None:
        return fleet.agents[agent].backend, fleet.profile(agent)
    if overrides.backend not in fleet.backends or agent in fleet.declared.services:
        known = ", ".join(sorted(fleet.backends))
        raise CannotStart(
            f"agent {agent!r} can't run on the backend {overrides.backend!r}; the fleet file has: {known}"
        )
    return overrides.backend, fleet.backends[overrides.backend]


def _fits(prompt: str, backend: Backend) -> bool:
    """Whether the prompt is short enough for the command line."""
    named = any("{prompt}" in word for word in (*backend.prompt_args, *backend.argv))
    return not named or len(prompt.encode(errors="replace")) <= LONGEST_ARGUMENT


def workspace_of(fleet: Fleet, agent: str, overrides: LaunchOverrides | None = None) -> Path:
    """Where the agent runs."""
    return needs.workspace_of(fleet, agent, Path(overrides.dir) if overrides and overrides.dir else None)


def _prompt(fleet: Fleet, agent: str, overrides: LaunchOverrides) -> str:
    return overrides.prompt if overrides.prompt is not None else needs.prompt_of(fleet, agent)
