"""A fake stands for the whole of its port: nothing of the real thing is left that would reach for what is not there."""

import inspect

import pytest

from shared.messaging.bus import Bus
from shared.messaging.outbox import Publisher
from shared.system.processes import Processes
from shared.system.tmux import Tmux
from tests.fakes.bus import FakeBus
from tests.fakes.processes import FakeProcesses
from tests.fakes.tmux import FakeTmux

FROM_THE_SYSTEM = {"arguments", "environment", "cwd", "open_files"}
"""What `Processes` asks of the system. The rest of it is what is made of that, and is meant."""


def methods(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("fake", "port", "wanted"),
    [
        (FakeTmux, Tmux, methods(Tmux)),
        (FakeBus, Bus, methods(Bus)),
        (FakeProcesses, Processes, FROM_THE_SYSTEM),
    ],
)
def test_every_method_is_the_fakes_own(fake: type, port: type, wanted: set[str]) -> None:
    assert issubclass(fake, port), "so that mypy compares the signatures"
    assert wanted - vars(fake).keys() == set()


def test_a_bus_is_a_publisher() -> None:
    publisher: Publisher = FakeBus()
    assert publisher.publish("topic", b"") is None, "it is not up"
