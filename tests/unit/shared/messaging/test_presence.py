"""Who else speaks as a service, by the states on its topic."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.contract.states import Presence
from shared.contract.topics import Space
from shared.contract.writer import DocumentWriter
from shared.messaging.inbox import MessageArrived
from shared.messaging.presence import OwnPresence, state_of
from tests.fakes.bus import FakeBus

BEFORE, AFTER = timedelta(minutes=-1), timedelta(minutes=1)


@pytest.mark.parametrize(
    ("epoch", "status", "made", "is_other"),
    [
        ("other", Presence.ONLINE, AFTER, True),
        ("own", Presence.ONLINE, AFTER, False),
        ("other", Presence.OFFLINE, AFTER, False),
        ("other", Presence.ONLINE, BEFORE, False),  # its own, from before its journal was lost: the broker kept it
    ],
)
def test_another_fleet_is_known_by_what_it_says_now(
    epoch: str, status: Presence, made: timedelta, is_other: bool
) -> None:
    presence = OwnPresence(DocumentWriter(Space("box"), "spawner", "own"), FakeBus())
    other = DocumentWriter(Space("box"), "spawner", epoch)
    topic, payload = other.state(state_of(other, status, 7), seq=0, time=datetime.now(UTC) + made)
    message = MessageArrived(topic, payload, retained=False, repeated=False, mid=1, qos=1, connection=1)
    state = presence.read(message)
    assert state is not None
    assert presence.is_of_another_fleet(message, state) is is_other
