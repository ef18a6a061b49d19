"""Which agents and ended sessions `muster status` shows: names and filters, all of which must hold. Pure."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from registry import EndedSession
from services.cli import exit_codes
from services.cli.words import did_you_mean, plain
from shared.client.snapshot import NOT_STARTED, Snapshot
from shared.contract.events.drift import DriftEvent, DriftResolved
from shared.contract.states import Activity, Status
from shared.errors import MusterError

ANY = "any"
STATUSES = (*(status.value for status in Status), NOT_STARTED)
ACTIVITIES = tuple(activity.value for activity in Activity)
DRIFTS = tuple(kind.name() for kind in DriftEvent.kinds() if kind is not DriftResolved)
NAMES_AT_MOST = 20


class WrongWord(MusterError):
    """A value that no filter has."""

    exit_code = exit_codes.USAGE


@dataclass(frozen=True)
class StatusFilter:
    agents: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    doing: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    wanted: str | None = None
    drift: str | None = None
    """A kind, or ANY of them."""
    ended: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether every agent is shown."""
        return not (self.agents or self.statuses or self.doing or self.backends or self.wanted or self.drift)

    def check(self, snapshot: Snapshot) -> None:
        """Raise a sentence for a name or value that does not exist: a typo must not look like an empty fleet."""
        for status in self.statuses:
            if status not in STATUSES:
                raise WrongWord(f"there is no status {_unknown(status, STATUSES)}")
        for activity in self.doing:
            if activity not in ACTIVITIES:
                raise WrongWord(f"there is nothing an agent does that is called {_unknown(activity, ACTIVITIES)}")
        if self.drift not in (None, ANY, *DRIFTS):
            said = _unknown(str(self.drift), DRIFTS)
            hint = f"; agents come first: muster status {self.drift} --drift" if self.drift in snapshot.agents else ""
            raise WrongWord(f"there is no kind of drift {said}{hint}")
        used = {snapshot.backend(agent) for agent in snapshot.agents}
        for backend in self.backends:
            if backend not in used and backend not in snapshot.fleet.backends:
                raise MusterError(
                    f"there is no backend {_unknown(backend, sorted(used | snapshot.fleet.backends.keys()))}"
                )
        known = [*snapshot.agents, *sorted({each.agent for each in snapshot.history.values()} - set(snapshot.agents))]
        for agent in self.agents:
            if agent not in known:
                raise MusterError(f"there is no agent {_unknown(agent, known)}")

    def agents_in(self, snapshot: Snapshot) -> list[str]:
        return [agent for agent in snapshot.agents if self._takes(snapshot, agent)]

    def _takes(self, snapshot: Snapshot, agent: str) -> bool:
        return (
            self._takes_agent(snapshot, agent)
            and (not self.statuses or snapshot.status(agent) in self.statuses)
            and (not self.doing or snapshot.activity(agent) in self.doing)
            and (not self.backends or snapshot.backend(agent) in self.backends)
        )

    def _takes_agent(self, snapshot: Snapshot, agent: str) -> bool:
        """The filters that are about the agent, not about one of its sessions."""
        record = snapshot.records.get(agent)
        drifts = record.drifts if record is not None else []
        return (
            (not self.agents or agent in self.agents)
            and (self.wanted is None or (record is not None and record.desired == self.wanted))
            and (self.drift is None or (bool(drifts) if self.drift == ANY else self.drift in drifts))
        )

    def ended_in(self, snapshot: Snapshot) -> list[tuple[str, EndedSession]]:
        """Sessions that ended, by their spawn ids, the newest first."""
        found = [
            (spawn, session)
            for spawn, session in snapshot.history.items()
            if self._takes_agent(snapshot, session.agent)
            and (not self.statuses or session.status in self.statuses)
            and (not self.backends or session.backend in self.backends)
        ]
        return sorted(found, key=lambda each: (each[1].ended, each[0]), reverse=True) if self.ended else []


def split(text: str | None) -> tuple[str, ...]:
    """The words of a list with commas."""
    return tuple(word.strip() for word in (text or "").split(",") if word.strip())


def _unknown(given: str, known: Collection[str]) -> str:
    there_are = "there are" if len(known) > 1 else "there is"
    return f"{plain(given)!r}; {did_you_mean(given, known)}{there_are}: {_listed(known)}"


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    more = len(listed) - NAMES_AT_MOST
    shown = ", ".join(listed[:NAMES_AT_MOST]) or "none"
    return f"{shown} and {more} more" if more > 0 else shown
