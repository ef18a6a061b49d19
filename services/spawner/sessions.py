"""Making a session for an agent: from the fleet file's words to an argv, with no shell in between."""

import hashlib
import re
import shutil
import stat
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from services.spawner.environment import environment, read_variables
from shared.backends import DIRECTORY
from shared.errors import MusterError
from shared.fleet import Agent, Backend, Deliver, Fleet
from shared.fleet.check import outside

LONGEST_ARGUMENT = 100_000
"""Bytes. Linux takes no more than 128 KB in one argument of a program."""


class CannotStart(MusterError):
    """The agent can't be started as it is declared."""


@dataclass(frozen=True)
class Order:
    """What one start is to be, where it is not as the fleet file says."""

    prompt: str | None = None
    model: str | None = None
    backend: str | None = None
    dir: str | None = None


@dataclass(frozen=True)
class Conversation:
    """The conversation that a start takes up: by the agent's own id, or the newest one."""

    id: str | None = None


@dataclass(frozen=True)
class Launch:
    """All that tmux needs to be told, and what is to be typed afterwards."""

    agent: str
    backend: str
    argv: list[str]
    workspace: Path
    env: dict[str, str]
    conversation: str | None
    resumed: bool
    paste: str
    """The prompt, where it is typed in once the agent is ready."""
    prompt_file: Path | None
    prompt: str


def plan(
    fleet: Fleet,
    agent: str,
    spawn: str,
    own: Mapping[str, str],
    order: Order | None = None,
    resume: Conversation | None = None,
) -> Launch:
    """Work out how to start an agent, or raise CannotStart. `own` is Muster's environment."""
    order = order or Order()
    declared = fleet.agents[agent]
    name, backend = _backend(fleet, agent, order)
    workspace = workspace_of(fleet, agent, order)
    env = _environment(fleet, declared, backend, own)
    resume = resume if can_resume(backend, resume) else None
    prompt = declared.resume_prompt if resume else _prompt(fleet, agent, declared, order)
    heeded = resume is None or backend.resume.takes_prompt
    by_argument = backend.deliver is Deliver.ARG and heeded and len(prompt.encode()) <= LONGEST_ARGUMENT
    model = order.model or declared.model
    conversation = resume.id if resume else conversation_of(backend, spawn)
    prompt_file = fleet.home / "prompts" / f"{agent}.txt"
    values = {
        "python": sys.executable,
        "backends": str(DIRECTORY),
        "agent": agent,
        "prompt": prompt,
        "prompt_file": str(prompt_file),
        "session": conversation or "",
        "model": model or "",
        "workspace": str(workspace),
    }
    values["binary"] = _program(fleet, name, fill(backend.binary, values), env.get("PATH"), backend.install)
    lists = {
        "extra_args": backend.extra_args,
        "resume_args": (backend.resume.args if resume.id else backend.resume.latest) if resume else [],
        "fresh_args": [] if resume else backend.fresh_args,
        "model_args": backend.model.args if model else [],
        "prompt_args": backend.prompt_args if prompt and by_argument else [],
    }
    if model and backend.model.env:
        env[backend.model.env] = model
    needs_file = backend.deliver is Deliver.EXEC or any("{prompt_file}" in word for word in backend.argv)
    return Launch(
        agent=agent,
        backend=name,
        argv=[fill(word, values) for word in spliced(backend.argv, lists)],
        workspace=workspace,
        env=env,
        conversation=conversation,
        resumed=resume is not None,
        paste="" if by_argument or backend.deliver is Deliver.EXEC else prompt,
        prompt_file=prompt_file if needs_file else None,
        prompt=prompt,
    )


def can_resume(backend: Backend, wanted: Conversation | None) -> bool:
    return wanted is not None and bool(backend.resume.args if wanted.id else backend.resume.latest)


def conversation_of(backend: Backend, spawn: str) -> str | None:
    """The id of a new conversation, where Muster may choose it: the same for the same spawn."""
    if not any("{session}" in word for word in backend.fresh_args):
        return None
    return str(uuid.UUID(bytes=hashlib.sha256(spawn.encode()).digest()[:16], version=4))


def _backend(fleet: Fleet, agent: str, order: Order) -> tuple[str, Backend]:
    if order.backend is None:
        return fleet.agents[agent].backend, fleet.profile(agent)
    if order.backend not in fleet.backends or agent in fleet.declared.services:
        known = ", ".join(sorted(fleet.backends))
        raise CannotStart(f"agent {agent!r} can't run on the backend {order.backend!r}; the fleet file has: {known}")
    return order.backend, fleet.backends[order.backend]


def workspace_of(fleet: Fleet, agent: str, order: Order | None = None) -> Path:
    """Where the agent runs. Asked anew at every start: a link may lead elsewhere now."""
    directory = Path(order.dir) if order and order.dir else fleet.agents[agent].dir
    if said := outside(fleet, directory):
        raise CannotStart(f"agent {agent!r} can't be started: {said}")
    workspace = fleet.resolve(directory)
    if not workspace.is_dir():
        raise CannotStart(f"the workspace {workspace} of agent {agent!r} is not a directory; make it or change `dir`")
    return workspace


def _environment(fleet: Fleet, agent: Agent, backend: Backend, own: Mapping[str, str]) -> dict[str, str]:
    allowed = [*fleet.declared.environment.allow, *backend.env_from, *agent.env_from]
    of_file = _variables(fleet.resolve(agent.env_file)) if agent.env_file else {}
    revealed = [{name: value.get_secret_value() for name, value in each.items()} for each in (backend.env, agent.env)]
    return environment(allowed, own, revealed[0], of_file, revealed[1])


def _variables(path: Path) -> dict[str, str]:
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CannotStart(f"the env_file {path} can't be read: {error}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise CannotStart(f"the env_file {path} can be read by others; make it private with: chmod 600 {path}")
    return read_variables(text, str(path))


def _prompt(fleet: Fleet, agent: str, declared: Agent, order: Order) -> str:
    if order.prompt is not None:
        return order.prompt
    if declared.prompt_file is None:
        return declared.prompt
    path = fleet.resolve(declared.prompt_file)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CannotStart(f"the prompt_file {path} of agent {agent!r} can't be read: {error}") from error


def _program(fleet: Fleet, backend: str, binary: str, path: str | None, install: str) -> str:
    if "/" in binary:
        found: str | None = str(fleet.resolve(Path(binary)))
        found = found if Path(found or "").is_file() else None
    else:
        found = shutil.which(binary, path=path)
    if found is None:
        how = f"install it with: {install}" if install else "install it, or change `binary` of the backend"
        raise CannotStart(f"the backend {backend!r} needs the program {binary!r}, and there is none on the PATH; {how}")
    return found


def spliced(argv: Sequence[str], lists: Mapping[str, Sequence[str]]) -> list[str]:
    """Put lists in place of the words that name them."""
    named = {f"{{{name}}}": words for name, words in lists.items()}
    return [each for word in argv for each in named.get(word, [word])]


def fill(word: str, values: Mapping[str, str]) -> str:
    """Put values in place of `{name}`, once; other braces stay, for a command line may need them."""
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), word)
