"""What a situation needs to be there before the program starts."""

from dataclasses import replace
from pathlib import Path

from tests.real_agents.clis import Claude, Cli, Place
from tests.real_agents.model.quotes import OUTPUT
from tests.real_agents.situations import Situation


def billed(cli: Cli, situation: Situation) -> Cli:
    """The same program with the account that the situation is about."""
    return replace(cli, subscribed=situation.subscribed) if isinstance(cli, Claude) else cli


def furnish(cli: Cli, situation: Situation, place: Place) -> tuple[str, ...]:
    """Make an empty place ready for the situation; gives what the program is to be started with for it."""
    (place.work / "banner.txt").write_text(OUTPUT, encoding="utf-8")
    if not situation.trusted:
        _repository(place.work)
    cli.prepare(place)
    if situation.plans and isinstance(cli, Claude):
        return ("--permission-mode", "plan")
    # Newer ones ask another model before they ask a person, or look at what is allowed.
    settled = situation.asks or situation.allowed
    return ("--permission-mode", "default") if settled and isinstance(cli, Claude) else ()


def _repository(work: Path) -> None:
    """What Codex wants to see of a repository; it asks about no other directory whether to trust it."""
    (work / ".git" / "objects").mkdir(parents=True)
    (work / ".git" / "refs" / "heads").mkdir(parents=True)
    (work / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
