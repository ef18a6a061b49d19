"""Builder and reviewer loops that git drives."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from shared.fleet.section import MoreThanNoSeconds, Regex, Section
from shared.ids import Id

PATH_IN_REPOSITORY = r"^[^/].*$"
PathInRepository = Annotated[str, Field(pattern=PATH_IN_REPOSITORY, max_length=400)]


class CommitPattern(Section):
    """New commits whose subject matches become a message."""

    subject: Regex
    """Searched in the subject of each new commit."""
    to: Id
    """A role of this loop."""
    text: str = "{author} committed {commit}: {subject}"
    """The message."""


class Phase(Section):
    """One stretch of the work."""

    name: str = Field(min_length=1, max_length=200)
    """What people call it."""
    kickoff: Path | None = None
    """The template of its first prompt; default: the loop's."""
    models: dict[Id, str] = {}
    """By role."""


class Loop(Section):
    """Agents that hand work to each other by commits."""

    remote: str = Field(min_length=1)
    """A git remote: a URL or a path."""
    branch: str = "main"
    """The branch that is watched."""
    poll_s: MoreThanNoSeconds = 20.0
    """How often the remote is asked."""
    roles: dict[Id, Id] = Field(min_length=1)
    """Which agent plays which role."""
    patterns: dict[Id, CommitPattern] = {}
    """Which commits are told to whom."""
    inbox: dict[PathInRepository, Id] = {}
    """Files on the branch, and the role that reads each."""
    status_file: PathInRepository | None = None
    """The file on the branch that says how far the phase is."""
    done: Regex = r"^STATUS: DONE\b"
    """The line in the status file that ends a phase."""
    kickoff: Path | None = None
    """The template of each phase's first prompt."""
    phases: list[Phase] = []
    """In their order."""
    on_complete: Id | None = None
    """A task that runs after the last phase."""
