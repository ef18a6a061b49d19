"""The service manifest: one row per service, and the roles of people.

Supervision, console scripts, broker roles and rights, compose file and docs follow from these rows; tests check it.
Short-lived programs import this module, so it imports nothing heavy and names topics by their patterns.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class ServiceEntry:
    """One service: a package `services/<name>` that runs as a process of its own."""

    name: str
    does: str
    """One line for people, in the README too."""
    writes: tuple[str, ...]
    """The topics that only this service writes. Retained ones are published again on every connect."""
    follows: tuple[str, ...] = ()
    """The topics whose events it handles, each once and in order."""
    hints: tuple[str, ...] = ()
    """The topics whose messages only bring the next turn forward. They may be lost: a poll must find the same."""
    optional: bool = False
    """Whether the fleet file may switch it off: `<name>: {enabled: false}`."""


STATE, LIFECYCLE, DRIFT, ACTIVITY = (f"agent/{{agent}}/{word}" for word in ("state", "lifecycle", "drift", "activity"))
LOOP = "loop/{loop}/event"

MANIFEST = (
    ServiceEntry(
        "spawner",
        "starts, ends and types into tmux sessions; keeps wanted agents running within their restart limits",
        writes=(LIFECYCLE,),
        follows=(DRIFT,),
    ),
    ServiceEntry(
        "reconciler",
        "compares the registry with tmux, processes and the agents' own files; reports each difference once",
        writes=(DRIFT,),
        hints=(LIFECYCLE, STATE),
    ),
    ServiceEntry(
        "registrar",
        "folds events into the registry, and takes up people's edits of it",
        writes=(STATE,),
        follows=(LIFECYCLE, DRIFT, ACTIVITY),
    ),
    ServiceEntry(
        "monitor",
        "observes what each agent is doing from its hooks, files, processes and screen, and applies the policies",
        writes=(ACTIVITY,),
        hints=(LIFECYCLE, DRIFT),
    ),
    ServiceEntry(
        "handoff",
        "watches git remotes, tells agents of each other's commits and messages, takes loops through their phases",
        writes=(LOOP,),
        hints=(LIFECYCLE,),
        optional=True,
    ),
    ServiceEntry(
        "board",
        "keeps a card per agent in columns that follow from facts, comments on what matters, and serves the page",
        writes=("board/{card}/state", "board/{card}/comment", "board/heartbeat"),
        follows=(LIFECYCLE, DRIFT, ACTIVITY, LOOP),
        hints=(STATE, "service/{service}/state"),
        optional=True,
    ),
)

SERVICES = tuple(entry.name for entry in MANIFEST)

PEOPLE = ("viewer", "operator")
"""The broker roles of people: a viewer reads, an operator may also send commands."""


def entry_of(name: str) -> ServiceEntry:
    return next(entry for entry in MANIFEST if entry.name == name)
