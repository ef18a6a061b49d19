"""The loops of the fleet file: agents that hand work to each other by commits, and go through phases."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from shared.contract.ids import Id
from shared.fleet.section import NO_CONTROL_CHARACTERS, PositiveSeconds, Regex, Seconds, Section, listed

PATH_IN_REPOSITORY = r"^[^/].*$"


def _is_plain(path: str) -> str:
    """Git would find the file by such a path, but reports it under another."""
    if any(part in ("", ".", "..") for part in path.split("/")) or not path.isprintable():
        raise ValueError("a path as git tells it is expected, without `.`, `..`, `//` or a slash at its end")
    return path


PathInRepository = Annotated[str, Field(pattern=PATH_IN_REPOSITORY, max_length=400), AfterValidator(_is_plain)]

OF_LOOP = frozenset({"loop", "branch", "remote", "phase", "number", "phases", "role", "agent", "status_file"})
OF_COMMIT = OF_LOOP | {"commit", "sha", "author", "subject", "pattern"}
OF_INBOX = OF_LOOP | {"commit", "sha", "author", "subject", "path"}
OF_PHASE = frozenset({"phase", "number"})
"""The placeholders of each kind of template."""
IS_SCP_LIKE = re.compile(r"^[^/]+:")
"""`host:path` for ssh: a path on this machine has no colon before its first slash."""


def _is_remote(given: str) -> str:
    """The messages do not repeat the value: it may hold a password."""
    if given.startswith("-"):
        raise ValueError("a git remote is expected, a URL or a path; it can't begin with `-`")
    if re.match(r"^[\w+.-]+::", given):
        raise ValueError("a URL or a path is expected; helpers that run a command are not taken")
    if re.match(r"^\w[\w+.-]*://[^/@]*:[^/@]*@", given):
        raise ValueError("a password must not stand in the URL; leave it to git's credential helper")
    if re.match(r"^https?://(?:[^/@]{20,}|(?:gh[a-z]|glpat|github_pat)[-_][^/@]*)@", given):
        raise ValueError("a token must not stand in the URL; leave it to git's credential helper")
    return given


Remote = Annotated[str, Field(min_length=1, max_length=2000, pattern=NO_CONTROL_CHARACTERS), AfterValidator(_is_remote)]


def _is_branch(given: str) -> str:
    """The rules of `git check-ref-format` that matter here."""
    if re.search(r"\.\.|@\{|//|[ ~^:?*\[\\]|^[-/.]|[/.]$|\.lock$|/\.", given):
        raise ValueError("no branch can be called so; write it as `git branch` shows it")
    return given


Branch = Annotated[str, Field(min_length=1, max_length=200, pattern=NO_CONTROL_CHARACTERS), AfterValidator(_is_branch)]


Targets = Annotated[list[Id], Field(min_length=1), BeforeValidator(listed, json_schema_input_type=Id | list[Id])]
"""One role or agent, or several."""


class CommitPattern(Section):
    """New commits whose subject matches become an event and a message."""

    subject: Regex | None = None
    """Searched in the subject of each new commit; default: the pattern's name and a colon, as in `claim: done`."""
    to: Targets
    """A role of this loop or an agent, or several."""
    text: str = Field(default="{author} committed {commit}: {subject}", min_length=1)
    """The message."""


class InboxFile(Section):
    """A file on the branch that is a message to somebody."""

    to: Targets
    """A role of this loop or an agent, or several."""
    text: str = Field(
        default="{path} is for you, by {author} ({commit}). Act on it, then delete it, commit and push.", min_length=1
    )
    """What its reader is told when it changes."""


def _with_reader(given: Any) -> Any:
    return {"to": given} if isinstance(given, str | list) else given


Inbox = Annotated[InboxFile, BeforeValidator(_with_reader, json_schema_input_type=InboxFile | Id | list[Id])]


class Phase(Section):
    """One stretch of the work."""

    name: str = Field(min_length=1, max_length=200, pattern=NO_CONTROL_CHARACTERS)
    """What people call it."""
    kickoff: Path | None = None
    """The template of its first prompt; default: the loop's."""
    models: dict[Id, str] = {}
    """By role, for agents of kind `loop`."""


class Loop(Section):
    """Agents that hand work to each other by commits."""

    enabled: bool = True
    """Whether it is watched. What is pushed meanwhile is told when it is watched again."""
    remote: Remote
    """A git remote: a URL, or a path from where this file is."""
    branch: Branch = "main"
    """The branch that is watched."""
    poll_s: PositiveSeconds = 20.0
    """How often the remote is asked."""
    roles: dict[Id, Id] = Field(min_length=1)
    """Which agent plays which role."""
    patterns: dict[Id, CommitPattern] = {}
    """Which commits are told to whom."""
    inbox: dict[PathInRepository, Inbox] = {}
    """Files on the branch, and who reads each; `*` stands for any part of a name, `**/` for any directories."""
    when: Literal["idle", "now"] = "idle"
    """`idle`: messages wait until their reader has finished what it does; `now`: they don't."""
    status_file: PathInRepository | None = None
    """The file on the branch that says how far the phase is; {phase} and {number} are filled in."""
    done: Regex = r"^STATUS: DONE\b"
    """The line in the status file that ends a phase; {phase} and {number} are filled in."""
    advance: bool = True
    """Whether that line begins the next phase by itself; else it is only told."""
    grace_s: Seconds = 300.0
    """So long an agent may finish what it does before it is started anew for the next phase."""
    kickoff: Path | None = None
    """The template of each phase's first prompt."""
    role_prompts: dict[Id, Path] = {}
    """By role, the template of what comes before it; or in its place, where it says {role_prompt}."""
    phases: list[Phase] = []
    """In their order."""
    on_complete: Id | None = None
    """A task that runs after the last phase."""


def shown_remote(loop: Loop) -> str:
    """The remote, without a login, for people."""
    return without_login(loop.remote)


def without_login(text: str) -> str:
    """The text without user names, passwords and tokens in its URLs."""
    return re.sub(r"(\w://)[^/\s]*@", r"\1", text)


def subject_of(name: str, pattern: CommitPattern) -> str:
    """The regular expression for the subjects of a pattern's commits."""
    return pattern.subject if pattern.subject is not None else rf"(?i)^{re.escape(name)}(\([^)]*\))?!?:"
