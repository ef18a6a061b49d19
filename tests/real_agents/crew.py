"""A whole fleet with several real agents in it, each with its own HOME, directory and model; some share an account."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fixtures.fleet import RunningFleet
from tests.real_agents.clis import Cli, Place
from tests.real_agents.installs import installed
from tests.real_agents.manned import end_all_in
from tests.real_agents.model import Model


@dataclass(frozen=True)
class Member:
    cli: Cli
    account: str
    claim: str = ""
    """The budget that is spent when its account's is."""


@dataclass(frozen=True)
class Crew:
    fleet: RunningFleet
    models: Mapping[str, Model]
    members: Mapping[str, Member]

    def spend(self, agents: list[str], until: float) -> None:
        """From now on nothing is answered to these, until then."""
        for agent in agents:
            self.models[agent].spent = (self.members[agent].claim, until)


@contextmanager
def crew(members: Mapping[str, Member], room: Path, **settings: Any) -> Iterator[Crew]:
    """The fleet is up and the agents are being started; afterwards nothing of either is left."""
    models: dict[str, Model] = {}
    places: dict[str, Place] = {}
    agents: dict[str, Any] = {}
    backends: dict[str, Any] = {}
    with ExitStack() as stack:
        for name, member in members.items():
            model = models[name] = stack.enter_context(Model().serving())
            place = places[name] = Place(room / name / "home", room / name / "work", model.url)
            place.home.mkdir(parents=True)
            place.work.mkdir()
            member.cli.prepare(place)
            backend = f"{member.cli.name}-{member.cli.version}".replace(".", "-")
            backends[backend] = {"like": member.cli.name, "binary": str(installed(member.cli))}
            env, work = member.cli.environment(place), str(place.work)
            agents[name] = {"backend": backend, "dir": work, "env": env, "account": member.account}
        fleet = RunningFleet(room, agents, backends=backends, **settings)
        try:
            fleet.up()
            yield Crew(fleet, models, members)
        finally:
            fleet.end()
            for place in places.values():
                end_all_in(place.home)
