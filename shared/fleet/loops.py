"""Builder and reviewer loops that git drives."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from shared.fleet.section import MoreThanNoSeconds, Regex, Section
from shared.ids import Id

PathInRepository = Annotated[str, Field(pattern=r"^[^/].*$", max_length=400)]


class CommitPattern(Section):
    """New commits whose subject matches become a message."""

    subject: Regex
    to: Id
    """A role of this loop."""
    text: str = "{author} committed {commit}: {subject}"


class Phase(Section):
    name: str = Field(min_length=1, max_length=200)
    kickoff: Path | None = None
    """The template of its first prompt; default: the loop's."""
    models: dict[Id, str] = {}
    """By role."""


class Loop(Section):
    remote: str = Field(min_length=1)
    """A git remote: a URL or a path."""
    branch: str = "main"
    poll_s: MoreThanNoSeconds = 20.0
    roles: dict[Id, Id] = Field(min_length=1)
    """Which agent plays which role."""
    patterns: dict[Id, CommitPattern] = {}
    inbox: dict[PathInRepository, Id] = {}
    """Files on the branch, and the role that reads each."""
    status_file: PathInRepository | None = None
    done: Regex = r"^STATUS: DONE\b"
    """The line in the status file that ends a phase."""
    kickoff: Path | None = None
    phases: list[Phase] = []
    on_complete: Id | None = None
    """A task that runs after the last phase."""
