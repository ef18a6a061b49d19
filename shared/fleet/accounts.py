"""Whom a usage limit concerns: agents on one account share it, and of some limits only those on one model. Pure."""

from collections.abc import Collection

from shared.fleet.fleet import Fleet


def account_of(fleet: Fleet, agent: str, backend: str | None = None) -> str:
    """The account that an agent uses: as it is declared, else one for each backend.

    `backend` is what runs it, where that is known; else what is declared.
    """
    declared = fleet.agents.get(agent)
    if declared is not None and declared.account is not None:
        return declared.account
    return backend or (declared.backend if declared is not None else "unknown")


def is_concerned(models: Collection[str] | None, model: str | None) -> bool:
    """Whether an agent on this model is concerned by a limit of these; None: of all, "": of those that name none."""
    if models is None:
        return True
    named = (model or "").lower()
    return any((each.lower() in named) if each else not named for each in models)
